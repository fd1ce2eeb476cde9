import { afterEach, describe, expect, test } from "vitest";
import { systemClock } from "../../server/node-ports.ts";
import { seededRandom } from "../chance.ts";
import { createSimulator, type Simulator } from "../simulator.ts";
import { CloudAgent } from "../testing/cloud-agent.ts";
import { type Flaw, ModelAgent } from "../testing/model-agent.ts";
import { runScenario, SCENARIO_NAMES, type ScenarioName, type ScenarioReport } from "./index.ts";

const SLOW = "slow one two three four five six seven eight nine ten ";
const LONG = `slow ${"a rather long story ".repeat(30)}`;
const phrases = { plain: "hello", streamed: LONG, slow: SLOW, asking: "ask me", reply: "yes" };

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

/** Flaws that show by an answer that never comes: nobody waits for it as long as for one that is only late. */
const STALLING: ReadonlySet<Flaw> = new Set(["takes-replies-for-duplicates", "loses-frames", "stays-away"]);

async function play(name: ScenarioName, ...flaws: readonly Flaw[]): Promise<ScenarioReport> {
  const random = seededRandom(11);
  const simulator: Simulator = await createSimulator({ clock: systemClock, random });
  const agent = new ModelAgent(simulator, ...flaws);
  closing.push(
    () => agent.stop(),
    () => simulator.close(),
  );
  return runScenario(name, simulator, {
    clock: systemClock,
    random,
    phrases,
    expected: (said) => said,
    patienceMs: flaws.some((flaw) => STALLING.has(flaw)) ? 1_500 : 20_000,
    quietMs: 50,
  });
}

describe("an agent that does everything right", () => {
  test.each(SCENARIO_NAMES)("passes %s", { timeout: 60_000 }, async (name) => {
    expect(await play(name)).toEqual({ name, outcome: "passed", why: undefined, violations: [] });
  });
});

describe("an agent that is wrong", () => {
  test.each<[Flaw, ScenarioName, string | RegExp]>([
    ["answers-duplicates", "duplicates", "two-finals"],
    ["takes-replies-for-duplicates", "question", "took too long"],
    // Which of the answers is missed first, and what of an answer comes again first, is up to chance.
    ["loses-frames", "disconnects", /The answer to|was not answered|took too long/],
    ["repeats-frames", "disconnects", /two-finals|content-after-final/],
    ["knows-no-aliases", "cancel", "unknown instead of canceled"],
    ["cannot-stop", "cancel", "went on"],
    ["hurries", "reordering", "instead of"],
    ["sends-deltas", "streaming", "instead of"],
    ["stays-away", "kick", "took too long"],
    ["hides-questions", "question", "cannot be read"],
  ])("%s does not pass %s", { timeout: 60_000 }, async (flaw, name, why) => {
    const report = await play(name, flaw);
    expect(report.outcome).toBe("failed");
    expect([report.why, ...report.violations.map(({ rule }) => rule)].join(" ")).toMatch(why);
  });
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
    cancel: "not-shown",
    clear: "passed",
    question: "not-shown",
    duplicates: "not-shown",
    kick: "not-shown",
    cut: "not-shown",
    disconnects: "not-shown",
    crowd: "passed",
    spellings: "passed",
    reordering: "not-shown",
  });
});
