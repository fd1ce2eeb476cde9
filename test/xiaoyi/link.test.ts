import { describe, expect, it } from "vitest";
import { connect } from "../../src/client.ts";
import { cases } from "../../src/core/model/testing/exploring.ts";
import { systemClock } from "../../src/core/server/clock-and-ids.ts";
import {
  createSimulator,
  describeViolation,
  runScenario,
  SCENARIO_NAMES,
  type ScenarioName,
  type SimulatorOptions,
  seededRandom,
} from "../../src/features/xiaoyi/simulator/index.ts";
import { defineAgent, type ServeOptions } from "../../src/index.ts";
import { closeLater, createFolder, startServer } from "../support/lifecycle.ts";

const DESCRIPTION = {
  name: "Parrot",
  description: "Says back what it hears.",
  version: "1.0.0",
  skills: [{ id: "say", name: "Say", description: "Says it back.", tags: ["test"] }],
};

/** Conversation → what the parrot last heard there. */
const memory = new Map<string, string>();

/** Says back what it hears: at once, in pieces, or after asking; or what it heard before. */
const parrot = defineAgent({
  ...DESCRIPTION,
  onCrash: "resume",
  async *run(turn) {
    if (turn.text === "ask") {
      yield turn.inputRequired("Really?");
      return;
    }
    if (turn.text === "a file please") {
      const raw = Buffer.from("content").toString("base64");
      yield turn.artifact({ name: "file", parts: [{ raw, filename: "note.txt", mediaType: "text/plain" }] });
      return;
    }
    const { contextId } = turn.task;
    const text = turn.text === PHRASES.recalling ? (memory.get(contextId) ?? "nothing") : turn.text;
    memory.set(contextId, text);
    if (!turn.text.startsWith("slowly")) {
      yield turn.artifact({ name: "answer", text });
      return;
    }
    yield* turn.stream("answer", slowly(turn.text, turn.signal));
  },
});

async function* slowly(text: string, signal: AbortSignal): AsyncGenerator<string> {
  for (const piece of text.match(/.{1,8}/gsu) ?? []) {
    if (signal.aborted) return;
    yield piece;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

const SLOWLY = `slowly ${"and surely ".repeat(40)}`;
const PHRASES = {
  plain: "hello",
  streamed: SLOWLY,
  slow: SLOWLY,
  asking: "ask",
  reply: "yes",
  long: "a long story ".repeat(1_000),
  memorable: "keep",
  recalling: "recall",
};
/** As quick as can be: what is to be seen here is that nothing depends on the pace. */
const RECONNECT = { baseMs: 4, capMs: 16, resetAfterMs: 0 };

interface Surroundings extends Partial<SimulatorOptions> {
  readonly render?: "phone" | "spec";
  readonly serving?: Partial<ServeOptions>;
}

async function connected({ render = "phone", serving, ...options }: Surroundings = {}) {
  const random = seededRandom(20_261_115);
  const profile = render === "phone" ? "phone-2026-04" : "spec";
  const simulator = await createSimulator({ clock: systemClock, random, profile, ...options });
  closeLater(() => simulator.close());
  const { accessKey: ak, agentId, apiKey = "", secretKey: sk, uid = "" } = simulator.agent;
  const [url = "", second] = simulator.linkUrls;
  const backup = second === undefined ? undefined : { backup: { url: second } };
  const link = { agent: "parrot", agentId, ak, sk, url, render, uid, apiKey, uploadUrl: simulator.origin };
  const xiaoyi = { links: [{ ...link, ...backup, reconnect: RECONNECT }] };
  const serveAgain = () => startServer({ agents: { parrot }, grpcPort: false, ...serving, xiaoyi });
  return { random, simulator, server: await serveAgain(), serveAgain };
}

/** How long something wrong may follow an end, which comes 300 ms after what it ends. */
const QUIET_MS = 350;

async function play(name: ScenarioName, surroundings: Surroundings = {}) {
  const { random, simulator } = await connected(surroundings);
  const report = await runScenario(name, simulator, {
    clock: systemClock,
    random,
    phrases: PHRASES,
    disconnects: cases(100, 15),
    crowd: cases(1_000, 200),
    quietMs: QUIET_MS,
    expected: (said) => (said === "yes" && surroundings.render !== "spec" ? "Really?\n\nyes" : said),
  });
  return { ...report, violations: report.violations.map(describeViolation) };
}

const passed = (name: ScenarioName) => ({ name, outcome: "passed", why: undefined, violations: [], notes: [] });

describe("an agent on the link", () => {
  it.each(SCENARIO_NAMES)("%s", async (name) => {
    expect(await play(name)).toEqual(passed(name));
  });

  it.each(["streaming", "question", "kick", "disconnects"] as const)(
    "as the documents print it: %s",
    { timeout: 120_000 },
    async (name) => {
      expect(await play(name, { render: "spec" })).toEqual(passed(name));
    },
  );

  it.each(["duplicate", "partition"] as const)("with two servers that %s", async (spread) => {
    expect(await play("kick", { hosts: 2, spread })).toEqual(passed("kick"));
    expect(await play("cancel", { hosts: 2, spread })).toEqual(passed("cancel"));
  });

  it("answers in full however often the connection is torn", async () => {
    const { random, simulator } = await connected({ silenceMs: 3_000 });
    let talking = true;
    let answered = 0;
    const talk = async () => {
      const phone = simulator.addPhone();
      for (let turn = 0; talking; turn++) {
        await simulator.ready();
        const task = phone.say(turn % 2 === 0 ? SLOWLY : `hello ${turn}`);
        await task.waitUntilSettled();
        // What was said into a connection that broke at that moment never came to the agent.
        if (task.shown === 0) continue;
        expect([task.ending, task.screen().text]).toEqual(["final", task.userText]);
        answered++;
      }
    };
    const tear = async () => {
      for (let torn = 0; torn < cases(30, 10); torn++) {
        await simulator.ready();
        // An end comes 300 ms after what it ends.
        await new Promise((resolve) => setTimeout(resolve, random() * 500));
        simulator.faults.cut();
      }
      talking = false;
    };
    await Promise.all([tear(), talk(), talk()]);
    expect(answered).toBeGreaterThan(2);
    // Of the last words on a torn connection nobody knows whether they were heard, so they may be said again.
    const others = simulator.violations.filter(({ rule }) => rule !== "two-finals" && rule !== "content-after-final");
    expect(others).toEqual([]);
  });

  it.each(["kick", "drop"] as const)(
    "answers in full if the platform ends the connection without having read the answer: %s",
    async (how) => {
      const { server, simulator } = await connected();
      const client = await connect(server.url);
      await simulator.ready();
      const task = simulator.phone.say("hello");
      simulator.faults.freeze();
      const isDone = async () => (await client.get(task.id).catch(() => undefined))?.status.state;
      while ((await isDone()) !== "TASK_STATE_COMPLETED") await new Promise((resolve) => setTimeout(resolve, 5));
      simulator.faults[how]();
      await task.waitUntilSettled();
      expect([task.ending, task.screen().text, task.finals]).toEqual(["final", "hello", 1]);
      expect(simulator.violations).toEqual([]);
    },
  );

  it("sends files that the platform then has", async () => {
    const { simulator } = await connected();
    await simulator.ready();
    const task = simulator.phone.say("a file please");
    await task.waitUntilSettled();
    expect(task.screen().files).toEqual([{ name: "note.txt", mimeType: "text/plain", shown: true }]);
    expect(simulator.violations).toEqual([]);
  });

  it("has tasks that can be read elsewhere", async () => {
    const { server, simulator } = await connected();
    await simulator.ready();
    const task = simulator.phone.say("hello");
    await task.waitUntilSettled();
    const client = await connect(server.url);
    const read = await client.get(task.id);
    expect(read).toMatchObject({
      id: task.id,
      contextId: task.conversationId,
      status: { state: "TASK_STATE_COMPLETED" },
    });
    const metrics = await (await fetch(`${server.url}/metrics`)).text();
    expect(metrics).toContain("dragoman_xiaoyi_links_up 1\n");
  });

  it("sends nothing more to a platform that replaces one that closed the link", async () => {
    const { simulator } = await connected();
    const { agent } = simulator;
    const port = Number(new URL(simulator.origin).port);
    let current = simulator;
    for (let day = 1; day < 6; day++) {
      await current.ready();
      await current.phone.say("hello").waitUntilSettled();
      await current.close();
      expect(current.violations).toEqual([]);
      const next = await createSimulator({ clock: systemClock, random: seededRandom(day), port, agents: [agent] });
      closeLater(() => next.close());
      current = next;
    }
  });

  it("is cancelled everywhere", async () => {
    const { server, simulator } = await connected();
    await simulator.ready();
    const task = simulator.phone.say(SLOWLY);
    await task.waitUntil(({ shown }) => shown > 2);
    expect(await simulator.phone.cancel()).toBe("canceled");
    const client = await connect(server.url);
    expect((await client.get(task.id)).status.state).toBe("TASK_STATE_CANCELED");
  });

  it.each(["given", "left-out"] as const)("hears once what comes many times, with message ids %s", async (ids) => {
    const heard: string[] = [];
    let hasHeard = (): void => {};
    const counting = defineAgent({
      ...DESCRIPTION,
      async *run(turn) {
        heard.push(turn.text);
        hasHeard();
        await again;
        yield turn.artifact({ name: "answer", text: turn.text });
      },
    });
    const { simulator } = await connected({ serving: { agents: { parrot: counting } } });
    await simulator.ready();
    simulator.style = { ...simulator.style, messageIds: ids };
    simulator.faults.duplicate(3);
    const first = new Promise<void>((resolve) => {
      hasHeard = resolve;
    });
    let answer = (): void => {};
    const again = new Promise<void>((resolve) => {
      answer = resolve;
    });
    const task = simulator.phone.say("hello");
    await first;
    simulator.faults.repeatLast();
    answer();
    await task.waitUntilSettled();
    await simulator.phone.say("goodbye").waitUntilSettled();
    expect(heard).toEqual(["hello", "goodbye"]);
    expect(simulator.violations).toEqual([]);
  });

  const onDisk = (): Partial<ServeOptions> => ({ store: `sqlite:${createFolder()}/data.db` });

  it("starts a new context if the conversation was cleared, also by an earlier process", async () => {
    const { serveAgain, server, simulator } = await connected({ serving: onDisk() });
    const { phone } = simulator;
    await simulator.ready();
    await phone.say("hello").waitUntilSettled();
    const { conversationId } = phone;
    expect(await phone.clear()).toBe("cleared");
    await server.close();
    const { url } = await serveAgain();
    await simulator.ready();
    // Its task is the first of a conversation; the next one must not have the id of the first of the other.
    await phone.say("in another conversation").waitUntilSettled();
    // Should the platform go on under the old id after all.
    phone.conversationId = conversationId;
    const task = phone.say("hello again");
    await task.waitUntilSettled();
    expect((await (await connect(url)).get(task.id)).contextId).not.toBe(conversationId);
  });

  it("continues where an earlier process ended", async () => {
    const { serveAgain, server, simulator } = await connected({ serving: onDisk() });
    await simulator.ready();
    const task = simulator.phone.say(SLOWLY);
    await task.waitUntil(({ shown }) => shown > 2);
    await server.close();
    await serveAgain();
    await task.waitUntilSettled();
    expect([task.ending, task.screen().text, task.finals]).toEqual(["final", SLOWLY, 1]);
    expect(simulator.violations).toEqual([]);
  });
});

it("an agent whose credentials are wrong is refused with a hint in the log, and everything else is served", async () => {
  const simulator = await createSimulator({ clock: systemClock, random: seededRandom(1) });
  closeLater(() => simulator.close());
  const lines: string[] = [];
  const note = (_fields: unknown, message: string) => void lines.push(message);
  const [url = ""] = simulator.linkUrls;
  const { accessKey: ak, agentId } = simulator.agent;
  const server = await startServer({
    agents: { parrot },
    grpcPort: false,
    log: { debug: note, info: note, warn: note, error: note },
    xiaoyi: {
      links: [{ agent: "parrot", agentId, ak, sk: "wrong", url, reconnect: { ...RECONNECT, maxTries: 2 } }],
    },
  });
  while (!lines.some((line) => line.includes("Gave up"))) await new Promise((resolve) => setTimeout(resolve, 5));
  expect(lines[0]).toContain("Xiaoyi refused the credentials of the link.");
  expect(lines).toHaveLength(2);
  expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
});
