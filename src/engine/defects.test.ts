import { expect, test } from "vitest";
import { ProtocolError } from "../model/errors.ts";
import type { AgentEvent } from "./agent.ts";
import { aborted, agentOf, chunk, createGate, echo, heard, says, status, talker } from "./testing/agents.ts";
import { settle } from "./testing/fake-clock.ts";
import { framesOf, Harness } from "./testing/harness.ts";
import { flaky, type GatedStore, gated } from "./testing/stores.ts";

const soon = async <T>(promise: Promise<T>): Promise<T | "pending"> => {
  await settle(20);
  return Promise.race([promise, settle(5).then(() => "pending" as const)]);
};

test("D1 returnImmediately resume message", async () => {
  const h = await Harness.start({ agent: talker({ onCrash: "resume" }) });
  const out = await h.send("x", { returnImmediately: true });
  if ("task" in out) await h.get(out.task.id);
});
test("D2 returnImmediately fail message: task vanishes", async () => {
  const h = await Harness.start({ agent: talker() });
  const out = await h.send("x", { returnImmediately: true });
  await settle();
  if ("task" in out) await h.get(out.task.id);
});
test("D3 concurrent duplicates of message answer", async () => {
  const h = await Harness.start({ agent: talker() });
  const all = Promise.all([1, 2, 3].map(() => h.send("x", { key: "k", messageId: "m" })));
  const r = await soon(all);
  expect(r).not.toBe("pending");
});
test("D4 concurrent duplicate follow-ups", async () => {
  let turns = 0;
  const h = await Harness.start({
    agent: agentOf(async function* (turn) {
      turns++;
      yield status("TASK_STATE_WORKING");
      if (heard(turn) === "first") {
        yield status("TASK_STATE_INPUT_REQUIRED", "more?");
      }
    }),
  });
  const t = await h.task("first");
  await Promise.all([1, 2, 3].map(() => h.send("again", { taskId: t.id, key: "k", messageId: "m" })));
  expect(turns).toBe(2);
});
test("D5 concurrent duplicate follow-ups to running task", async () => {
  const heardAll: string[] = [];
  const gate = createGate();
  const h = await Harness.start({
    agent: agentOf(async function* (turn) {
      heardAll.push(heard(turn));
      yield status("TASK_STATE_WORKING");
      if (heard(turn) === "first") await gate.pass();
    }),
  });
  const t = await h.begin("first");
  await gate.reached;
  const r = Promise.allSettled([1, 2].map(() => h.send("again", { taskId: t.id, key: "k", messageId: "m" })));
  await settle();
  gate.open();
  expect(await soon(r)).not.toBe("pending");
  expect(heardAll).toEqual(["first", "again"]);
});
test("D5b two keys at once", async () => {
  const heardAll: string[] = [];
  const gate = createGate();
  const h = await Harness.start({
    agent: agentOf(async function* (turn) {
      heardAll.push(heard(turn));
      yield status("TASK_STATE_WORKING");
      if (heard(turn) === "first") await gate.pass();
    }),
  });
  const t = await h.begin("first");
  await gate.reached;
  const a = h.send("a", { taskId: t.id, key: "ka", messageId: "ma" });
  const b = h.send("b", { taskId: t.id, key: "kb", messageId: "mb" });
  await settle();
  const a2 = h.send("a", { taskId: t.id, key: "ka", messageId: "ma" });
  const b2 = h.send("b", { taskId: t.id, key: "kb", messageId: "mb" });
  await settle();
  gate.open();
  expect(await soon(Promise.allSettled([a, b, a2, b2]))).not.toBe("pending");
  expect(heardAll).toEqual(["first", "a", "b"]);
});
test("D5c duplicate while the first is in flight", async () => {
  const heardAll: string[] = [];
  const gate = createGate();
  let g!: GatedStore;
  const h = await Harness.start({
    wrap: (s) => {
      g = gated(s);
      return g.store;
    },
    agent: agentOf(async function* (turn) {
      heardAll.push(heard(turn));
      yield status("TASK_STATE_WORKING");
      if (heard(turn) === "first") await gate.pass();
    }),
  });
  const t = await h.begin("first");
  await gate.reached;
  await settle();
  g.hold();
  const a = h.send("a", { taskId: t.id, key: "ka", messageId: "ma" });
  await g.waiting();
  const a2 = h.send("a", { taskId: t.id, key: "ka", messageId: "ma" });
  await settle();
  g.open();
  await settle();
  gate.open();
  expect(await soon(Promise.all([a, a2]))).not.toBe("pending");
  expect(heardAll).toEqual(["first", "a"]);
  expect((await h.stored(t.id)).status.state).toBe("TASK_STATE_COMPLETED");
});
test("D6 idempotent follow-up races with parking", async () => {
  const heardAll: string[] = [];
  const one = createGate();
  const two = createGate();
  let g!: GatedStore;
  const h = await Harness.start({
    wrap: (s) => {
      g = gated(s);
      return g.store;
    },
    agent: agentOf(async function* (turn) {
      heardAll.push(heard(turn));
      if (heardAll.length > 1) return;
      yield chunk("a", "x", false);
      await one.pass();
      yield status("TASK_STATE_INPUT_REQUIRED", "?");
      await two.pass();
    }),
  });
  g.hold();
  const begun = h.begin("first");
  await g.waiting();
  await g.step();
  const t = await begun;
  await g.waiting(); // chunk in flight
  one.open();
  await settle();
  const a = h.send("a", { taskId: t.id, key: "ka" });
  await settle();
  two.open();
  await settle();
  g.open();
  const r = await soon(a);
  expect(r).not.toBe("pending");
  expect(heardAll).toEqual(["first", "a"]);
});
test("D7 idempotent follow-up races with completion", async () => {
  const one = createGate();
  let g!: GatedStore;
  const heardAll: string[] = [];
  const h = await Harness.start({
    wrap: (s) => {
      g = gated(s);
      return g.store;
    },
    agent: agentOf(async function* (turn) {
      heardAll.push(heard(turn));
      yield chunk("a", "x", false);
      await one.pass();
    }),
  });
  g.hold();
  const begun = h.begin("first");
  await g.waiting();
  await g.step();
  const t = await begun;
  await g.waiting();
  const a = h.send("a", { taskId: t.id, key: "ka" });
  await settle();
  one.open();
  await settle();
  g.open();
  const r = await soon(
    a.then(
      () => "accepted" as const,
      () => "refused" as const,
    ),
  );
  expect(r === "refused" || heardAll.includes("a")).toBe(true);
});
test("D8 turn number kept", async () => {
  const one = createGate();
  const two = createGate();
  let g!: GatedStore;
  const h = await Harness.start({
    wrap: (s) => {
      g = gated(s);
      return g.store;
    },
    agent: agentOf(async function* (turn) {
      if (heard(turn) === "first") {
        await one.pass();
        yield chunk("a", "x", false);
        await two.pass();
      } else {
        await createGate().pass();
      }
    }),
  });
  const t = await h.begin("first");
  await one.reached;
  void h.send("second", { taskId: t.id });
  await settle();
  g.hold();
  one.open();
  await g.waiting();
  two.open();
  await settle();
  g.open();
  await settle();
  const head = await h.memory.head(t.id);
  expect(head?.turn).toBe(2);
});
test("D9 cancel between turns", async () => {
  const one = createGate();
  let secondStarted = false;
  let g!: GatedStore;
  const h = await Harness.start({
    wrap: (s) => {
      g = gated(s);
      return g.store;
    },
    agent: agentOf(async function* (turn) {
      if (heard(turn) === "first") {
        await one.pass();
        return;
      }
      secondStarted = true;
      yield status("TASK_STATE_WORKING");
      await aborted(turn);
    }),
  });
  const t = await h.begin("first");
  await one.reached;
  g.hold();
  void h.send("second", { taskId: t.id }).catch(() => {});
  await g.waiting();
  one.open();
  await settle();
  const cancelled = h.cancel(t.id);
  await settle();
  g.open();
  const r = await soon(cancelled);
  expect([r === "pending", secondStarted]).toEqual([false, false]);
});
test("D10 cancel while discard is in flight", async () => {
  let g!: GatedStore;
  const h = await Harness.start({
    wrap: (s) => {
      g = gated(s);
      return g.store;
    },
    agent: talker(),
  });
  g.hold();
  const s = h.send("x");
  await g.waiting();
  await g.step();
  await g.waiting();
  const id = (await h.list()).tasks[0]!.id;
  const c = h.cancel(id).then(
    () => "ok",
    () => "error",
  );
  const sub = h
    .subscribe(id)
    .then(framesOf)
    .then(
      () => "ok",
      () => "error",
    );
  await settle();
  g.open();
  await s;
  await h.clock.advance(60_000);
  expect(await soon(c)).not.toBe("pending");
  expect(await soon(sub)).not.toBe("pending");
});
test("D11 two engines: reader on A sees what B writes", async () => {
  const agent = agentOf(async function* (turn) {
    yield status("TASK_STATE_WORKING");
    if (heard(turn) === "first") yield status("TASK_STATE_INPUT_REQUIRED", "?");
  });
  const a = await Harness.start({ agent });
  const b = await Harness.start({ agent, after: a });
  const t = await a.begin("first");
  const frames = a.subscribe(t.id, undefined).then(framesOf);
  await settle();
  await b.task("second", { taskId: t.id });
  await a.clock.advance(5_000);
  expect(await soon(frames)).not.toBe("pending");
});
test("D12 compaction under a slow reader", async () => {
  const gate = createGate();
  const h = await Harness.start({
    agent: agentOf(async function* () {
      yield status("TASK_STATE_WORKING");
      await gate.pass();
    }),
    times: { compactAfterMs: 1_000, housekeepingMs: 1_000 },
  });
  const t = await h.begin("x");
  await gate.reached;
  await settle();
  const sub = await h.subscribe(t.id);
  const it = sub[Symbol.asyncIterator]();
  await it.next();
  const other = await h.subscribe(t.id, 1, { replay: true });
  gate.open();
  await settle();
  // drop the tail: nobody else
  await h.clock.advance(10_000);
  expect((await h.memory.head(t.id))?.floor).toBeGreaterThan(0);
  expect(await soon(framesOf({ [Symbol.asyncIterator]: () => it }))).not.toBe("pending");
  expect(await soon(framesOf(other))).not.toBe("pending");
});
test("D13 repeat of an idempotent stream after compaction", async () => {
  const h = await Harness.start({ agent: echo(), times: { compactAfterMs: 1_000, housekeepingMs: 1_000 } });
  await framesOf(await h.stream("x", { key: "k", messageId: "m" }));
  await h.clock.advance(10_000);
  const again = await h.stream("x", { key: "k", messageId: "m" });
  expect(await soon(framesOf(again))).not.toBe("pending");
});
test("D14 giveUp aborts the run", async () => {
  let ab = false;
  let f!: ReturnType<typeof flaky>;
  const h = await Harness.start({
    wrap: (s) => {
      f = flaky(s);
      return f.store;
    },
    agent: agentOf(async function* (turn) {
      yield status("TASK_STATE_WORKING");
      f.fail(100);
      yield chunk("a", "x", false);
      await aborted(turn);
      ab = true;
    }),
  });
  const s = h.send("x").catch((e: unknown) => e);
  await h.clock.advance(20_000);
  const e = await soon(s);
  expect(ProtocolError.is(e) && e.code).toBe("UNAVAILABLE");
  await settle();
  expect(ab).toBe(true);
});
test("D15 after the store recovered the task is not stuck", async () => {
  let f!: ReturnType<typeof flaky>;
  const h = await Harness.start({
    wrap: (s) => {
      f = flaky(s);
      return f.store;
    },
    agent: agentOf(
      async function* (turn) {
        yield status("TASK_STATE_WORKING");
        if (turn.attempt === 1) f.fail(5);
        yield chunk("a", "x", false);
      },
      { onCrash: "resume" },
    ),
  });
  const s = h.send("x").catch(() => "lost");
  await h.clock.advance(60_000);
  expect(await soon(s)).not.toBe("pending");
  const t = (await h.list()).tasks[0]!;
  expect((await h.stored(t.id)).status.state).toBe("TASK_STATE_COMPLETED");
});
test("D16 lost ack", async () => {
  let f!: ReturnType<typeof flaky>;
  const gate = createGate();
  const h = await Harness.start({
    wrap: (s) => {
      f = flaky(s);
      return f.store;
    },
    agent: agentOf(async function* () {
      yield chunk("a", "one ", false);
      await gate.pass();
      yield chunk("a", "two ");
    }),
  });
  const s = h.task("x");
  await gate.reached;
  await settle();
  f.fail(1, "after");
  gate.open();
  await h.clock.advance(1_000);
  const t = await s;
  expect(t.artifacts?.[0]?.parts).toEqual([{ text: "one two " }]);
});
test("D16b lost ack of submit", async () => {
  let f!: ReturnType<typeof flaky>;
  const h = await Harness.start({
    wrap: (s) => {
      f = flaky(s);
      return f.store;
    },
    agent: echo(),
  });
  f.fail(1, "after");
  const s = h.task("x");
  await h.clock.advance(1_000);
  expect((await s).status.state).toBe("TASK_STATE_COMPLETED");
});
test.each([
  ["artifact without parts", { artifact: { artifactId: "a" } }],
  ["back to submitted", { status: "TASK_STATE_SUBMITTED" }],
  ["unknown state", { status: "NONSENSE" }],
])("D17 poison %s", async (_name, event) => {
  const gate = createGate();
  const h = await Harness.start({
    agents: {
      bad: agentOf(async function* () {
        yield status("TASK_STATE_WORKING");
        await gate.pass();
        yield event as AgentEvent;
      }),
      good: agentOf(async function* () {
        yield status("TASK_STATE_WORKING");
        await gate.pass();
        yield chunk("a", "fine", false);
      }),
    },
  });
  const bad = h.task("x", { agent: "bad" });
  const good = h.task("x", { agent: "good" });
  await gate.reached;
  await settle();
  gate.open();
  const [g, b] = await Promise.allSettled([good, bad]);
  expect(g.status === "fulfilled" && g.value.status.state).toBe("TASK_STATE_COMPLETED");
  expect(b.status === "fulfilled" && b.value.status.state).toBe("TASK_STATE_FAILED");
});
test("D18 ten thousand cancelled in the queue", async () => {
  const gate = createGate();
  let runs = 0;
  const h = await Harness.start({
    agent: agentOf(
      async function* () {
        runs++;
        await gate.pass();
        yield status("TASK_STATE_WORKING");
      },
      { concurrency: 1 },
    ),
    limits: { queue: 20_000, tasksPerOwner: 100_000 },
  });
  const first = h.send("x");
  await gate.reached;
  const all = await Promise.all(Array.from({ length: 3_000 }, () => h.begin("y")));
  await Promise.all(all.map(({ id }) => h.cancel(id)));
  gate.open();
  await first;
  await settle();
  expect(await h.task("z")).toMatchObject({ status: { state: "TASK_STATE_COMPLETED" } });
  expect(runs).toBe(2);
});
const fast = { next: () => Promise.resolve({ done: true as const, value: says("hi") }) };
test.each(["resume", "fail"] as const)("D1c fast %s", async (onCrash) => {
  const h = await Harness.start({ agent: agentOf(() => fast, { onCrash }) });
  const out = await h.send("x", { returnImmediately: true });
  await settle();
  if ("task" in out) await h.get(out.task.id);
});
test("says", () => expect(says("x")).toBeDefined());
