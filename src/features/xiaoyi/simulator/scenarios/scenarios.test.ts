import { afterEach, describe, expect, test } from "vitest";
import type { Clock } from "../../../../core/model/ports.ts";
import { cases } from "../../../../core/model/testing/exploring.ts";
import { systemClock } from "../../../../core/server/clock-and-ids.ts";
import { seededRandom } from "../random.ts";
import { createSimulator } from "../simulator.ts";
import { CloudAgent } from "../testing/cloud-agent.ts";
import { type Flaw, ReferenceAgent } from "../testing/reference-agent.ts";
import { isNote, RULES } from "../violations.ts";
import { runScenario, SCENARIO_NAMES, type ScenarioName, type ScenarioOptions, type ScenarioReport } from "./index.ts";

const SLOW = `slow ${"step ".repeat(100)}`;
const LONG = `slow ${"a rather long story ".repeat(30)}`;
const phrases = {
  plain: "hello",
  streamed: LONG,
  slow: SLOW,
  asking: "ask me",
  reply: "yes",
  long: "a long story ".repeat(1_000),
  memorable: "keep",
  recalling: "recall",
};

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

/** The system's clock, but all that waits can be told that its time is over. */
class SkippableClock implements Clock {
  readonly #waiting = new Set<() => void>();

  now(): number {
    return systemClock.now();
  }

  after(milliseconds: number, run: () => void): () => void {
    const stop = systemClock.after(milliseconds, () => wait());
    const wait = (): void => {
      stop();
      if (this.#waiting.delete(wait)) run();
    };
    this.#waiting.add(wait);
    return () => {
      stop();
      this.#waiting.delete(wait);
    };
  }

  skip(): void {
    for (const wait of [...this.#waiting]) wait();
  }
}

/** What is sent before the agent leaves something out has arrived by then. */
const ARRIVAL_MS = 100;

/** A simulator with an agent, and a scene that waits no longer once the agent did something wrong. */
async function stage(...flaws: readonly Flaw[]) {
  const clock = new SkippableClock();
  const simulator = await createSimulator({ clock: systemClock, random: seededRandom(11) });
  const agent = new ReferenceAgent(simulator, ...flaws);
  agent.onOmission = () => void systemClock.after(ARRIVAL_MS, () => clock.skip());
  const stop = simulator.subscribe((event) => {
    if (event.kind === "violation" && !isNote(event.violation)) clock.skip();
  });
  closing.push(
    stop,
    () => agent.stop(),
    () => simulator.close(),
  );
  const scene: ScenarioOptions = {
    clock,
    random: seededRandom(11),
    phrases,
    expected: (said) => said,
    // Frames that are lost leave no trace but the answer that never comes.
    patienceMs: flaws.includes("loses-frames") ? 1_500 : 20_000,
    // Only these speak after the end.
    quietMs: flaws.some((flaw) => /answers-duplicates|message-ids/.test(flaw)) ? 20_000 : 50,
    // What is wrong shows by chance.
    disconnects: flaws.length === 0 ? cases(100, 20) : 100,
    crowd: cases(1_000, 200),
  };
  return { simulator, scene };
}

async function play(name: ScenarioName, ...flaws: readonly Flaw[]): Promise<ScenarioReport> {
  const { scene, simulator } = await stage(...flaws);
  return runScenario(name, simulator, scene);
}

describe("an agent that does everything right", () => {
  test.each(SCENARIO_NAMES)("passes %s", async (name) => {
    expect(await play(name)).toEqual({ name, outcome: "passed", why: undefined, violations: [], notes: [] });
  });
});

describe("an agent that is wrong", () => {
  test.each<[Flaw, ScenarioName, string | RegExp]>([
    ["answers-duplicates", "duplicates", "two-finals"],
    ["knows-duplicates-by-message-ids", "duplicates", "two-finals"],
    ["takes-replies-for-duplicates", "question", "took too long"],
    // Which of the answers is missed first, and what of an answer comes again first, is up to chance.
    ["loses-frames", "disconnects", /The answer to|was not answered|took too long/],
    ["repeats-frames", "disconnects", /two-finals|content-after-final/],
    ["knows-no-aliases", "cancel", "unknown instead of canceled"],
    ["cannot-stop", "cancel", "continued"],
    ["stops-for-the-next-only", "cancel", "continued"],
    ["remembers-by-device", "clear", "known in the next conversation"],
    ["leaves-answers-open", "normal", "took too long"],
    ["hurries", "reordering", "instead of"],
    ["sends-deltas", "streaming", "instead of"],
    ["stays-away", "kick", "took too long"],
    ["hides-questions", "question", "cannot be read"],
  ])("%s does not pass %s", async (flaw, name, why) => {
    const report = await play(name, flaw);
    expect(report.outcome).toBe("failed");
    expect(report.why === undefined || report.source !== undefined).toBe(true);
    expect([report.why, ...report.violations.map(({ rule }) => rule)].join(" ")).toMatch(why);
  });
});

describe("what no document demands", () => {
  test.each<[Flaw, ScenarioName, RegExp]>([
    ["sends-long-frames", "long", /^Note: text-too-long .*no limit is published/],
    ["knows-no-aliases", "clear", /^Note: cleared content is still known under the old id/],
    ["forgets-nothing", "clear", /^Note: cleared content is still known under the old id/],
    ["ignores-envelopes", "spellings", /^Note: messages in an envelope with msgType are not understood/],
  ])("%s passes %s with a note", async (flaw, name, note) => {
    const report = await play(name, flaw);
    expect(report).toMatchObject({ outcome: "passed", why: undefined, violations: [] });
    expect(report.notes.join("\n")).toMatch(note);
  });

  test("every rule that fails an agent says where it can be read", () => {
    const assumed = Object.entries(RULES).filter(([, rule]) => rule.source === undefined);
    expect(assumed.map(([name]) => name)).toEqual([
      "unknown-msg-type",
      "wrong-agent-id",
      "unknown-session",
      "wrong-host",
      "answer-to-nothing",
      "text-too-long",
      "not-empty",
      "session-id-too-long",
    ]);
  });
});

test("what one scenario leaves unfinished is no concern of the next", async () => {
  const { scene, simulator } = await stage("hides-questions");
  expect(await runScenario("question", simulator, scene)).toMatchObject({ outcome: "failed" });
  expect(await runScenario("normal", simulator, scene)).toMatchObject({ outcome: "passed" });
});

test("what cannot be seen is not taken for right", async () => {
  const agent = await CloudAgent.start();
  const random = seededRandom(3);
  const http = { url: agent.url, credentials: { kind: "none" } as const };
  const simulator = await createSimulator({ clock: systemClock, random, http });
  closing.push(
    () => agent.close(),
    () => simulator.close(),
  );
  const outcomes: Record<string, string> = {};
  for (const name of SCENARIO_NAMES) {
    const report = await runScenario(name, simulator, { clock: systemClock, random, crowd: 20, quietMs: 1 });
    outcomes[name] = report.outcome;
  }
  expect(outcomes).toEqual({
    normal: "passed",
    streaming: "passed",
    "two-messages": "passed",
    long: "not-shown",
    cancel: "not-shown",
    clear: "not-shown",
    question: "not-shown",
    duplicates: "not-shown",
    kick: "not-shown",
    cut: "not-shown",
    disconnects: "not-shown",
    crowd: "passed",
    spellings: "not-shown",
    reordering: "not-shown",
  });
});
