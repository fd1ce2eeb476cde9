import { beforeEach, describe, expect, test } from "vitest";
import { defineAgent } from "../../../core/agents/define.ts";
import { FakeClock, settle } from "../../../core/engine/testing/fake-clock.ts";
import type { Task } from "../../../core/model/task.ts";
import { digest } from "../a2a-lite/digest.ts";
import { asker, createCounter, echo } from "./testing/agents.ts";
import { directRoom, MemoryNetwork } from "./testing/memory-network.ts";
import { AGENT, ALICE, Stage } from "./testing/stage.ts";

let clock: FakeClock;
let network: MemoryNetwork;

beforeEach(() => {
  clock = new FakeClock();
  network = new MemoryNetwork({ clock });
});

const DIRECT = { room: directRoom(ALICE.id, AGENT.id) };

const posted = () => network.posts.filter(({ by }) => by === AGENT.id);
const texts = () => network.textsOf(AGENT.id);
const results = () => texts().filter((text) => text.startsWith("[A2A:result"));
const rest = () => settle(60);
const open = (options: Omit<Parameters<typeof Stage.open>[1], "clock">) => Stage.open(network, { ...options, clock });

/** Like the counter, but continues after a crash. */
function createResumable(statusOf = (_run: number) => "Working") {
  const waiting: (() => void)[] = [];
  let runs = 0;
  const agent = defineAgent({
    name: "Resumable",
    description: "Continues after a crash.",
    onCrash: "resume",
    async *run(turn) {
      runs++;
      yield turn.working(statusOf(runs));
      await new Promise<void>((resolve) => waiting.push(resolve));
      yield turn.artifact({ name: "text", text: "Finished" });
    },
  });
  return { agent, step: () => waiting.pop()?.(), runs: () => runs };
}

/** Leaves the index as if the process had been killed when the engine had the message of the post. */
async function cutOff({ harness }: Stage, { id, room }: { readonly id: string; readonly room: string }): Promise<void> {
  const { records } = harness.engine;
  const target = { space: "a2a-lite:memory:agent:index", key: digest("post", room, id) };
  const { task } = JSON.parse((await records.record(target.space, target.key)) ?? "{}");
  if (task === digest("memory:agent", room, id)) await records.delete(target.space, target.key);
  else await records.put({ ...target, value: JSON.stringify({ task, pending: true }) });
}

describe("a process that ends in the middle of a task", () => {
  test("is followed by one that continues it in the same thread, and posts nothing twice", async () => {
    const { agent, step } = createResumable();
    const first = await open({ agent });
    const asked = network.say(ALICE, "[A2A:task id=t1]\nGo", { thread: "th1" });
    await clock.advance(2_000);
    const before = texts();
    expect(before).toEqual([
      "[A2A:ack task=t1]",
      "[A2A:status task=t1 state=accepted]",
      "[A2A:status task=t1 state=working]\nWorking",
    ]);
    await first.kill();
    await open({ agent, after: first });
    await clock.advance(60_000);
    step();
    await clock.advance(10_000);
    expect(texts().slice(before.length)).toEqual(["[A2A:result task=t1 state=completed]\nFinished"]);
    expect(posted().at(-1)).toMatchObject({ thread: "th1", replyTo: asked.id });
    expect(new Set(posted().flatMap(({ edits = [] }) => edits))).toEqual(new Set([posted()[1]?.id]));
  });

  test("is followed by one that gets again what it had not handled, and handles it once", async () => {
    network = new MemoryNetwork({ clock, acknowledgements: true });
    const first = await open({ agent: echo });
    network.say(ALICE, "[A2A:task id=t1]\nHandled");
    await rest();
    expect(network.unacknowledged(AGENT.id)).toEqual([]);
    const late = network.say(ALICE, "[A2A:task id=t2]\nLate");
    await first.kill();
    expect(network.unacknowledged(AGENT.id)).toEqual([late.id]);
    const second = await open({ agent: echo, after: first });
    network.repeat(late);
    await clock.advance(10_000);
    expect(results()).toEqual([
      "[A2A:result task=t1 state=completed]\nHandled",
      "[A2A:result task=t2 state=completed]\nLate",
    ]);
    expect(network.unacknowledged(AGENT.id)).toEqual([]);
    await second.stop();
  });

  test.each(["ack", "status", "result"])(
    "is followed by one that does not post the %s again that it had posted",
    async (type) => {
      network = new MemoryNetwork({ clock, keys: true });
      const first = await open({ agent: echo });
      const course = ["ack", "status", "result"];
      network.failures.push(...course.slice(0, course.indexOf(type)).map(() => "keep" as const), "lost");
      network.say(ALICE, "[A2A:task id=t1]\nHello");
      await rest();
      expect(texts().at(-1)).toContain(`[A2A:${type} `);
      await first.kill();
      await open({ agent: echo, after: first });
      await clock.advance(60_000);
      expect(texts()).toEqual([
        "[A2A:ack task=t1]",
        "[A2A:status task=t1 state=accepted]",
        "[A2A:result task=t1 state=completed]\nHello",
      ]);
    },
  );

  test("is followed by one that does not repeat a status where posts cannot be edited", async () => {
    network = new MemoryNetwork({ clock, abilities: { edits: false } });
    const { agent, step } = createResumable();
    const first = await open({ agent });
    network.say(ALICE, "[A2A:task id=t1]\nGo");
    await clock.advance(20_000);
    const before = texts();
    expect(before.at(-1)).toBe("[A2A:status task=t1 state=working]\nWorking");
    await first.kill();
    await open({ agent, after: first });
    await clock.advance(60_000);
    step();
    await clock.advance(10_000);
    expect(texts().slice(before.length)).toEqual(["[A2A:result task=t1 state=completed]\nFinished"]);
  });

  test("is followed by one that edits its status, also if it is not connected yet", async () => {
    const { agent } = createResumable((run) => `Working, run ${run}`);
    const first = await open({ agent });
    network.say(ALICE, "[A2A:task id=t1]\nGo");
    await clock.advance(2_000);
    const status = posted()[1];
    await first.kill();
    const second = await open({ agent, after: first, isReachable: false });
    await clock.advance(60_000);
    second.isReachable = true;
    await clock.advance(2_000);
    expect(posted().at(-1)).toMatchObject({
      text: "[A2A:status task=t1 state=working]\nWorking, run 2",
      edits: status?.id,
    });
    expect(posted().filter(({ edits }) => edits === undefined)).toHaveLength(2);
  });

  test.each([
    ["a task", "[A2A:task id=t1]\nPaint"],
    ["chat", "Paint"],
  ])(
    "is followed by one that gets %s again whose task has begun, and does not answer it twice",
    async (_what, text) => {
      const first = await open({ agent: asker });
      const asked = network.say(ALICE, text, DIRECT);
      await rest();
      const before = texts();
      expect(before.at(-1)).toContain("Which colour?");
      await cutOff(first, asked);
      await first.kill();
      const second = await open({ agent: asker, after: first });
      network.repeat(asked);
      await clock.advance(60_000);
      expect(texts()).toEqual(before);
      const answer = network.say(ALICE, text.replace("Paint", "red"), DIRECT);
      await clock.advance(10_000);
      expect(texts().at(-1)).toContain("It is red.");
      const answered = texts();
      await cutOff(second, asked);
      await cutOff(second, answer);
      await second.kill();
      await open({ agent: asker, after: second });
      network.repeat(asked);
      network.repeat(answer);
      await clock.advance(60_000);
      expect(texts()).toEqual(answered);
    },
  );

  test("is followed by one that knows what it asked", async () => {
    const first = await open({ agent: asker });
    network.say(ALICE, "[A2A:task id=t1]\nPaint");
    network.say(ALICE, "Paint", DIRECT);
    await rest();
    const question = posted().find(({ text }) => text.startsWith("[A2A:status task=t1 state=input-required]"));
    const before = texts().length;
    await first.stop();
    await open({ agent: asker, after: first });
    await clock.advance(60_000);
    expect(texts()).toHaveLength(before);
    network.say(ALICE, "red", DIRECT);
    network.say(ALICE, "blue", { replyTo: question?.id });
    await rest();
    const answers = texts()
      .slice(before)
      .filter((text) => !text.includes("state=working"));
    expect(answers.sort()).toEqual(["It is red.", "[A2A:result task=t1 state=completed]\nIt is blue."]);
  });

  test("reads what was posted meanwhile, once, and not what it had served", async () => {
    const { agent, runs, step } = createCounter(1);
    const first = await open({ agent });
    network.say(ALICE, "[A2A:task id=t1]\nCount");
    await rest();
    step();
    await rest();
    expect(results()).toHaveLength(1);
    await first.stop();
    network.say(ALICE, "[A2A:task id=t2]\nCount");
    const second = await open({ agent, after: first });
    await rest();
    step();
    await rest();
    expect(results()).toHaveLength(2);
    await second.stop();
    await open({ agent, after: second });
    await clock.advance(60_000);
    expect([runs(), results().length]).toEqual([2, 2]);
  });

  test("is not confused by a network that repeats old posts", async () => {
    network = new MemoryNetwork({ clock, replays: 100, echo: true, abilities: { history: false } });
    const { agent, runs, step } = createCounter(1);
    const first = await open({ agent });
    const asked = network.say(ALICE, "[A2A:task id=t1]\nCount");
    network.say(ALICE, "[A2A:discover]");
    network.repeat(asked);
    await rest();
    step();
    await rest();
    const before = texts();
    await first.stop();
    const second = await open({ agent, after: first });
    await clock.advance(60_000);
    network.break(AGENT.id);
    await clock.advance(60_000);
    expect(texts()).toEqual(before);
    expect(runs()).toBe(1);
    await second.stop();
  });
});

describe("what is stored of a task", () => {
  const stored = async (stage: Stage, kind: string) => {
    return stage.harness.engine.records.records(`a2a-lite:memory:agent:${kind}`, { limit: 100 });
  };

  test("is one record, and in the index its names and the posts that can be replied to", async () => {
    network = new MemoryNetwork({ clock, abilities: { replies: false, edits: false } });
    const { agent, step } = createResumable();
    const stage = await open({ agent });
    network.say(ALICE, "[A2A:task id=t1]\nGo");
    await clock.advance(20_000);
    step();
    await clock.advance(10_000);
    expect(texts().map((text) => text.slice(0, 11))).toEqual([
      "[A2A:ack ta",
      "[A2A:status",
      "[A2A:status",
      "[A2A:result",
    ]);
    const [record, ...others] = await stored(stage, "records");
    expect(others).toEqual([]);
    expect(JSON.parse(record?.value ?? "")).toMatchObject({ task: record?.key, theirs: "t1", peer: ALICE.id });
    expect(await stored(stage, "index")).toHaveLength(3);
  });

  test("is not what earlier versions have stored, which is ignored: the engine recognises their tasks", async () => {
    const first = await open({ agent: asker });
    const asked = network.say(ALICE, "[A2A:task id=t1]\nPaint");
    await rest();
    const before = texts();
    const { records } = first.harness.engine;
    const known = JSON.stringify({
      task: digest("memory:agent", asked.room, asked.id),
      contextId: "c",
      peer: ALICE.id,
    });
    for (const kind of ["records", "index"]) {
      for (const { key } of await stored(first, kind)) await records.delete(`a2a-lite:memory:agent:${kind}`, key);
    }
    for (const kind of ["served", "requests", "tasks", "talks", "posts", "posted"]) {
      await records.put({ space: `a2a-lite:memory:agent:${kind}`, key: digest(asked.room, asked.id), value: known });
    }
    await first.kill();
    await open({ agent: asker, after: first });
    network.repeat(asked);
    await clock.advance(60_000);
    expect(texts()).toEqual(before);
    network.say(ALICE, "[A2A:task id=t2]\nPaint");
    await clock.advance(10_000);
    expect(texts().at(-1)).toContain("[A2A:status task=t2 state=input-required]");
  });
});

describe("a delivery that follows another before that has ended", () => {
  test("does not repeat its status", async () => {
    network = new MemoryNetwork({ clock, abilities: { edits: false } });
    const stage = await open({ agent: echo });
    const { deliver } = stage.carrier;
    const known = { task: "1", contextId: "c", peer: ALICE.id, theirs: "t1" };
    const address = JSON.stringify({ room: "lobby", direct: false, peer: ALICE, replyTo: "m1", known });
    const task: Task = { id: "1", contextId: "c", status: { state: "TASK_STATE_WORKING" }, history: [], artifacts: [] };
    const numbered = [1, 2].map((number) => ({ number, event: { task }, json: "" }));
    const controllers = [new AbortController(), new AbortController()];
    const [first, second] = controllers.map(({ signal }, at) => ({
      record: { id: "answer", taskId: "1", address, cursor: at },
      scope: { agent: "agent", tenant: "", owner: "alice" },
      signal,
      read: async (after: number) => numbered.filter(({ number }) => number === at + 1 && number > after),
      task: async () => task,
      hold: async () => true,
      release: async () => true,
      retry: async () => "failed" as const,
      giveUp: async () => true,
      done: async () => true,
    }));
    if (first === undefined || second === undefined || deliver === undefined) throw new Error("expected deliveries");
    let later = Promise.resolve();
    const release = async () => {
      controllers[0]?.abort();
      later = deliver(second);
      return true;
    };
    await deliver({ ...first, release });
    await later;
    expect(texts()).toEqual([
      "[A2A:ack task=t1]",
      "[A2A:status task=t1 state=accepted]",
      "[A2A:status task=t1 state=working]",
    ]);
  });
});

describe("a connection that breaks", () => {
  test("is followed by one that gets the answer", async () => {
    const { agent, step } = createCounter(1);
    const stage = await open({ agent });
    network.say(ALICE, "[A2A:task id=t1]\nCount");
    await clock.advance(2_000);
    stage.isReachable = false;
    network.break(AGENT.id);
    step();
    await clock.advance(60_000);
    expect(results()).toEqual([]);
    network.say(ALICE, "[A2A:task id=t2]\nCount");
    stage.isReachable = true;
    await clock.advance(2_000);
    step();
    await clock.advance(2_000);
    expect(results()).toEqual(["[A2A:result task=t1 state=completed]\n1!", "[A2A:result task=t2 state=completed]\n1!"]);
    expect(texts().filter((text) => text === "[A2A:ack task=t1]")).toHaveLength(1);
  });

  test("while a post is under way has it posted again under its key", async () => {
    network = new MemoryNetwork({ clock, keys: true });
    await open({ agent: echo });
    network.failures.push("lost");
    network.say(ALICE, "[A2A:task id=t1]\nHello");
    await clock.advance(10_000);
    expect(texts()).toEqual([
      "[A2A:ack task=t1]",
      "[A2A:status task=t1 state=accepted]",
      "[A2A:result task=t1 state=completed]\nHello",
    ]);
  });
});

describe("own posts", () => {
  test("are recognised where the network delivers them", async () => {
    network = new MemoryNetwork({ clock, echo: true });
    await open({ agent: echo, allowBots: true });
    network.say(ALICE, "<@u-agent> [A2A:discover]", { mentions: [AGENT.id] });
    network.say(ALICE, "Hello", DIRECT);
    await clock.advance(10_000);
    expect(texts()).toHaveLength(2);
  });
});

describe("a result that the network refuses", () => {
  test("does not hold up the next one", async () => {
    const stage = await open({ agent: echo });
    network.say(ALICE, "[A2A:task id=t1]\nHello", { room: "closed" });
    network.say(ALICE, "[A2A:task id=t2]\nHello");
    await clock.advance(60_000);
    expect(results()).toEqual(["[A2A:result task=t2 state=completed]\nHello"]);
    expect(stage.lines.some((line) => line.startsWith("A post was refused."))).toBe(true);
  });
});
