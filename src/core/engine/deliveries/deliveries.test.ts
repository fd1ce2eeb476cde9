import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { ReplyTo } from "../../model/operation.ts";
import { cases } from "../../model/testing/exploring.ts";
import { agentOf, chunk, createGate, echo, inputText, messageAgent, status } from "../testing/agents.ts";
import { promptly, settle } from "../testing/fake-clock.ts";
import { createSharedSqlite, Harness, type HarnessOptions } from "../testing/harness.ts";
import { createStoreGate } from "../testing/stores.ts";
import type { OpenDelivery } from "./open-delivery.ts";
import type { DeliveryRoute } from "./route-worker.ts";

const ROOM = "room:lobby";
const ALICE = { agent: "agent", tenant: "", owner: "alice" };

function replyTo(more: Partial<ReplyTo> = {}): ReplyTo {
  return { id: "reply", route: ROOM, address: '{"post":1}', wants: "outcome", ...more };
}

/** Takes the place of a carrier: notes the state each delivery was called with, and does with it what the test wants. */
class FakeRoute implements DeliveryRoute {
  readonly route: string;
  readonly calls: OpenDelivery[] = [];
  readonly states: string[] = [];
  act: (delivery: OpenDelivery) => Promise<unknown> = (delivery) => delivery.done();

  constructor(route = ROOM) {
    this.route = route;
  }

  async deliver(delivery: OpenDelivery): Promise<void> {
    this.calls.push(delivery);
    this.states.push((await delivery.task())?.status.state.replace("TASK_STATE_", "") ?? "gone");
    await this.act(delivery);
  }
}

async function start(options: HarnessOptions, route = new FakeRoute()) {
  const harness = await Harness.start(options);
  const stop = harness.engine.serveRoute(route);
  return { harness, route, stop };
}

async function pending(harness: Harness) {
  return harness.memory.pendingDeliveries({ limit: 100 });
}

function stored(harness: Harness, taskId: string) {
  return harness.engine.replies.find(taskId, "reply");
}

/** Asks until it is told to end. */
const asker = agentOf(async function* (turn) {
  const text = inputText(turn);
  yield chunk(`part ${text}`, text, false);
  yield text === "end" ? status("TASK_STATE_COMPLETED", "Bye.") : status("TASK_STATE_INPUT_REQUIRED", "More?");
});

const gated = (pass: () => Promise<void>, onCrash: "fail" | "resume" = "fail") =>
  agentOf(
    async function* () {
      yield chunk("a", "text", false);
      await pass();
      yield status("TASK_STATE_COMPLETED", "done");
    },
    { onCrash },
  );

describe("a reply that wants the outcome", () => {
  test("is registered with the message and called once there is one, without a write in between", async () => {
    const held = createStoreGate();
    const gate = createGate();
    const { harness, route } = await start({ agent: gated(gate.pass), wrap: held.wrap });
    const sent = harness.task("hello", { replyTo: replyTo() });
    await gate.reached;
    await settle();
    expect(route.calls).toEqual([]);
    gate.open();
    const { id } = await promptly(sent);
    await settle();
    expect(route.states).toEqual(["COMPLETED"]);
    expect(route.calls[0]?.record).toMatchObject({ ...replyTo(), taskId: id, dialect: "test", cursor: 0 });
    expect(route.calls[0]?.scope).toMatchObject(ALICE);
    expect(await stored(harness, id)).toBeUndefined();
    const kinds = held.gate.groups.map((group) => group.map(({ kind }) => kind));
    expect(kinds.slice(-2)).toEqual([["append"], ["delivery-progress"]]);
    expect(kinds.flat().filter((kind) => kind.startsWith("delivery"))).toEqual(["delivery-progress"]);
  });

  test("is called for an answer that was there before anything was written, and for a plain message", async () => {
    const { harness, route } = await start({ agents: { agent: echo(), plain: messageAgent() } });
    await promptly(harness.task("hello", { replyTo: replyTo() }));
    expect(await promptly(harness.task("hello", { agent: "plain", replyTo: replyTo() }))).toHaveProperty("id");
    await settle();
    expect(route.states).toEqual(["COMPLETED", "COMPLETED"]);
  });

  test("is called for a question and again for what the answer to it leads to, under the same id", async () => {
    const { harness, route } = await start({ agent: asker });
    route.act = async (delivery) => delivery.release((await delivery.read(0))?.at(-1)?.number ?? 0);
    const { id } = await promptly(harness.task("ask", { replyTo: replyTo() }));
    await settle();
    expect(route.states).toEqual(["INPUT_REQUIRED"]);
    await harness.clock.advance(60_000);
    expect(route.calls).toHaveLength(1);
    await promptly(harness.task("end", { taskId: id, replyTo: replyTo({ address: "second" }) }));
    await settle();
    expect(route.states).toEqual(["INPUT_REQUIRED", "COMPLETED"]);
    expect(route.calls[1]?.record).toMatchObject({ address: "second", cursor: 4 });
  });

  test("stays for a node that serves its route, and is called there when it comes", async () => {
    const harness = await Harness.start({ agent: echo() });
    const { id } = await promptly(harness.task("hello", { replyTo: replyTo() }));
    await harness.clock.advance(60_000);
    expect(await stored(harness, id)).toMatchObject({ cursor: 0 });
    const route = new FakeRoute();
    harness.engine.serveRoute(route);
    expect(() => harness.engine.serveRoute(route)).toThrow(TypeError);
    await settle();
    expect(route.states).toEqual(["COMPLETED"]);
  });
});

describe("a reply that wants events", () => {
  test("is called as soon as the message is stored, and reads what follows", async () => {
    const gate = createGate();
    const { harness, route } = await start({ agent: gated(gate.pass) });
    const numbers: number[] = [];
    route.act = async (delivery) => {
      for (const { number } of (await delivery.read(delivery.record.cursor)) ?? []) numbers.push(number);
      await delivery.release(numbers.at(-1) ?? 0);
    };
    const sent = harness.task("hello", { replyTo: replyTo({ wants: "events" }) });
    await gate.reached;
    await settle();
    const before = numbers.length;
    expect(before).toBeGreaterThan(0);
    gate.open();
    const { id } = await promptly(sent);
    await settle();
    expect(numbers).toEqual((await harness.log(id)).map(({ number }) => number));
    expect(numbers.length).toBeGreaterThan(before);
    expect(await pending(harness)).toEqual([]);
  });

  test("keeps its claim for as long as it takes, and is not taken by another node", async () => {
    const { harness, route } = await start({ agent: echo() });
    const gate = createGate();
    route.act = async (delivery) => {
      await gate.pass();
      await delivery.done();
    };
    const { id } = await promptly(harness.task("hello", { replyTo: replyTo({ wants: "events" }) }));
    const { route: other } = await start({ agent: echo(), after: harness });
    await harness.clock.advance(600_000);
    expect([route.calls.length, other.calls.length]).toEqual([1, 0]);
    expect(route.calls[0]?.signal.aborted).toBe(false);
    gate.open();
    await settle();
    expect(await stored(harness, id)).toBeUndefined();
  });
});

describe("a node that died", () => {
  test("leaves its deliveries to the next one, which takes them up where they were noted down", async () => {
    const { harness, route } = await start({ agent: asker });
    route.act = async (delivery) => {
      await delivery.hold(2);
      await new Promise(() => {});
    };
    const { id } = await promptly(harness.task("ask", { replyTo: replyTo({ wants: "events" }) }));
    await settle();
    harness.crash();
    const { route: next } = await start({ agent: asker, after: harness });
    await settle();
    expect(next.calls).toEqual([]);
    await harness.clock.advance(30_000);
    expect(next.calls.map(({ record }) => [record.taskId, record.cursor])).toEqual([[id, 2]]);
    expect(await pending(harness)).toEqual([]);
  });

  test("before there was an outcome: the next one runs the task and delivers how it ended", async () => {
    const gate = createGate();
    const agent = gated(gate.pass, "resume");
    const { harness, route } = await start({ agent });
    await promptly(harness.begin("hello", { replyTo: replyTo() }));
    await gate.reached;
    harness.crash();
    const { route: next } = await start({ agent, after: harness });
    await harness.clock.advance(60_000);
    expect(next.calls).toEqual([]);
    gate.open();
    await settle(40);
    expect(next.states).toEqual(["COMPLETED"]);
    expect(route.calls).toEqual([]);
  });

  test("or is closed: what it was delivering is free at once", async () => {
    const { harness, route } = await start({ agent: echo() });
    route.act = ({ signal }) => new Promise((resolve) => signal.addEventListener("abort", resolve));
    await promptly(harness.task("hello", { replyTo: replyTo({ wants: "events" }) }));
    await settle();
    await promptly(harness.engine.close());
    const { route: next } = await start({ agent: echo(), after: harness });
    await settle();
    expect(next.states).toEqual(["COMPLETED"]);
  });
});

describe("a delivery under way", () => {
  async function open(wants: ReplyTo["wants"] = "events") {
    const { harness, route, stop } = await start({ agent: asker });
    route.act = ({ signal }) => new Promise((resolve) => signal.addEventListener("abort", resolve));
    const { id } = await promptly(harness.task("ask", { replyTo: replyTo({ wants }) }));
    await settle();
    const [delivery] = route.calls;
    if (delivery === undefined) throw new Error("expected a delivery");
    return { harness, route, stop, id, delivery };
  }

  test("that is sent elsewhere ends, and the other route gets what was left", async () => {
    const { harness, id, delivery } = await open();
    const phone = new FakeRoute("phone");
    harness.engine.serveRoute(phone);
    const address = replyTo({ route: "phone", address: "[]" });
    expect(await harness.engine.replies.put(ALICE, id, { ...address, dialect: "test" })).toBe(true);
    await settle();
    expect(phone.states).toEqual(["INPUT_REQUIRED"]);
    expect(phone.calls[0]?.record).toMatchObject({ id: "reply", cursor: 0 });
    expect(delivery.signal.aborted).toBe(true);
    expect(await delivery.hold(1)).toBe(false);
    expect(await harness.engine.replies.put({ ...ALICE, owner: "bob" }, id, { ...address, dialect: "test" })).toBe(
      false,
    );
  });

  test("that is deleted ends", async () => {
    const { harness, id, delivery } = await open();
    await harness.engine.replies.delete(ALICE, id, "reply");
    expect(delivery.signal.aborted).toBe(true);
    expect(await delivery.done()).toBe(false);
    expect(await pending(harness)).toEqual([]);
  });

  test("that is registered again by a further message goes to the newest address", async () => {
    const { harness, route, id, delivery } = await open();
    await promptly(harness.task("end", { taskId: id, replyTo: replyTo({ wants: "events", address: "second" }) }));
    await settle();
    expect(delivery.signal.aborted).toBe(true);
    expect(route.calls.map(({ record }) => record.address)).toEqual([replyTo().address, "second"]);
  });

  test("is released when its route is served no more", async () => {
    const { harness, stop, delivery } = await open();
    await promptly(stop());
    expect(delivery.signal.aborted).toBe(true);
    const next = new FakeRoute();
    harness.engine.serveRoute(next);
    await settle();
    expect(next.calls).toHaveLength(1);
  });
});

describe("a delivery that is replaced", () => {
  test.each(["memory", "sqlite"])("by the next message survives the deletion of the one before (%s)", async (kind) => {
    const shared = kind === "sqlite" ? { shared: await createSharedSqlite() } : undefined;
    const { harness, route } = await start({ agent: asker, ...shared });
    route.act = ({ signal }) => new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
    const wants = "events";
    const { id } = await promptly(harness.task("ask", { replyTo: replyTo({ wants, address: "first" }) }));
    await settle();
    const deleted = harness.engine.replies.delete(ALICE, id, "reply");
    const answered = harness.task("again", { taskId: id, replyTo: replyTo({ wants, address: "second" }) });
    await deleted;
    await promptly(answered);
    await settle();
    expect((await stored(harness, id))?.address).toBe("second");
  });
});

describe("a delivery that fails", () => {
  test("because its route does nothing is attempted again later, not at once", async () => {
    const { harness, route } = await start({ agent: asker });
    route.act = async () => {};
    const { id } = await promptly(harness.task("end", { replyTo: replyTo({ wants: "events" }) }));
    await settle(100);
    expect(route.calls).toHaveLength(1);
    expect(await pending(harness)).toMatchObject([{ taskId: id, attempts: 1, lastError: "nothing was delivered" }]);
    route.act = (delivery) => delivery.done();
    await harness.clock.advance(60_000);
    expect(await pending(harness)).toEqual([]);
  });

  test("is attempted again later, whether the route says so or throws, and is given up in the end", async () => {
    const { harness, route } = await start({ agent: echo(), limits: { pushAttempts: 3 } });
    route.act = async (delivery) => {
      if (route.calls.length === 1) throw new Error("broken");
      await delivery.retry(0, "closed");
    };
    await promptly(harness.task("hello", { replyTo: replyTo() }));
    await settle();
    expect(await pending(harness)).toMatchObject([{ attempts: 1, lastError: "the delivery failed", route: ROOM }]);
    await harness.clock.advance(3_750);
    expect(await pending(harness)).toMatchObject([{ attempts: 2, lastError: "closed" }]);
    await harness.clock.advance(3_600_000);
    expect(route.calls).toHaveLength(3);
    expect(await pending(harness)).toMatchObject([{ attempts: 3, deadAt: expect.any(Number) }]);
    expect(harness.counts).not.toHaveProperty("push_failed");
  });
});

describe("records", () => {
  test("are changed by several nodes without losing anything", async () => {
    const one = await Harness.start({ agent: echo() });
    const two = await Harness.start({ agent: echo(), after: one });
    const record = { space: "phones", key: "user" };
    const add = ({ engine }: Harness, device: string) =>
      engine.records.update(record, (before = "[]") => JSON.stringify([...JSON.parse(before), device].sort()));
    await promptly(Promise.all(["a", "b", "c", "d"].map((device, at) => add(at % 2 === 0 ? one : two, device))));
    expect(await one.engine.records.record("phones", "user")).toBe('["a","b","c","d"]');
    await promptly(two.engine.records.update(record, () => undefined));
    await promptly(two.engine.records.delete("phones", "user"));
    expect(await one.engine.records.records("phones", { limit: 10 })).toEqual([]);
    expect(await promptly(one.engine.records.put({ ...record, value: "1", ifValue: "0" }))).toBe(false);
  });

  test("are written in order, however often one is written in one turn", async () => {
    const { engine } = await Harness.start({ agent: echo() });
    const values = ["1", "2", "3", "4"];
    await promptly(Promise.all(values.map((value) => engine.records.put({ space: "s", key: "k", value }))));
    expect(await engine.records.record("s", "k")).toBe("4");
  });
});

type Step =
  | { readonly do: "send"; readonly text: "ask" | "end"; readonly wants: ReplyTo["wants"] }
  | { readonly do: "answer"; readonly task: number; readonly text: "ask" | "end" }
  | { readonly do: "wait"; readonly milliseconds: number }
  | { readonly do: "crash" };

const text = fc.constantFrom("ask" as const, "end" as const);
const wants = fc.constantFrom("events" as const, "outcome" as const);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant("send" as const), text, wants }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("answer" as const), task: fc.nat(5), text }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant("wait" as const), milliseconds: fc.constantFrom(0, 1_000, 9_000) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("crash" as const) }) },
);

describe("whatever is sent, fails and dies", () => {
  test("every reply is delivered to its end, in order", async () => {
    let crashes = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), fc.infiniteStream(fc.nat(5)), async (steps, rolls) => {
        /** By task, the number up to which its receiver has everything. */
        const delivered = new Map<string, number>();
        const found: string[] = [];
        const act = async (delivery: OpenDelivery) => {
          let { cursor } = delivery.record;
          const { taskId, wants } = delivery.record;
          if (cursor > (delivered.get(taskId) ?? 0)) found.push(`${taskId} goes on after ${cursor}`);
          for (const { number } of (await delivery.read(cursor)) ?? []) {
            const [roll = 0] = rolls.take(1);
            if (roll === 0) return void (await delivery.retry(cursor, "no"));
            if (roll === 1) throw new Error("broken");
            if (number !== cursor + 1) found.push(`${taskId}: ${number} after ${cursor}`);
            delivered.set(taskId, Math.max(number, delivered.get(taskId) ?? 0));
            cursor = number;
            if (roll === 2 && !(await delivery.hold(cursor))) return;
          }
          const ended = (await delivery.task())?.status.state === "TASK_STATE_COMPLETED";
          if (wants === "outcome" && !ended && (await delivery.task())?.status.state !== "TASK_STATE_INPUT_REQUIRED") {
            found.push(`${taskId} has no outcome`);
          }
          await delivery.release(cursor);
        };
        const open = async (after?: Harness) => {
          const bounds = { limits: { pushAttempts: 1_000 }, times: { longestPushRetryMs: 5_000 } };
          const options = { agent: asker, ...bounds, ...(after && { after }) };
          const { harness, route } = await start(options);
          route.act = act;
          return harness;
        };
        let harness = await open();
        const tasks: string[] = [];
        for (const next of steps) {
          if (next.do === "wait") await harness.clock.advance(next.milliseconds);
          else if (next.do === "crash") {
            crashes++;
            harness.crash();
            harness = await open(harness);
          } else if (next.do === "send") {
            tasks.push((await promptly(harness.task(next.text, { replyTo: replyTo({ wants: next.wants }) }))).id);
          } else {
            const taskId = tasks[next.task % Math.max(tasks.length, 1)];
            if (taskId !== undefined) await promptly(harness.task(next.text, { taskId })).catch(() => undefined);
          }
        }
        await harness.clock.advance(1_200_000);
        for (const id of tasks) {
          const end = (await harness.log(id)).length;
          if (delivered.get(id) !== end) found.push(`${id} was delivered up to ${delivered.get(id)} of ${end}`);
        }
        expect(found).toEqual([]);
        expect(await pending(harness)).toEqual([]);
      }),
      { numRuns: cases(1_000, 40) },
    );
    expect(crashes).toBeGreaterThan(0);
  });
});

describe("on several nodes", () => {
  test("what becomes due where its route is not served is delivered at once by the node that serves it", async () => {
    const one = await Harness.start({ agent: echo() });
    const { route } = await start({ agent: echo(), after: one });
    await promptly(one.task("hello", { replyTo: replyTo() }));
    await settle();
    expect(route.states).toEqual(["COMPLETED"]);
  });

  test("what comes with a message for a task of another node is registered in its write, and held from the start", async () => {
    const gate = createGate();
    const writes = createStoreGate();
    const agent = gated(gate.pass);
    const one = await Harness.start({ agent });
    const { harness: two, route } = await start({ agent, after: one, wrap: writes.wrap });
    const { id } = await promptly(one.task("hello", { returnImmediately: true }));
    await gate.reached;
    await settle();
    const cursor = (await one.log(id)).length;
    const push = { id: "hook", url: "https://hook.example/" };
    const answered = two.task("more", { taskId: id, push, replyTo: replyTo() });
    await settle();
    expect(await stored(two, id)).toMatchObject(replyTo());
    expect(await two.memory.delivery(id, "webhooks", "hook")).toMatchObject({ delivery: { address: push.url } });
    expect(await pending(two)).toMatchObject([
      { deliveryId: "hook", route: "webhook" },
      { deliveryId: "reply", route: ROOM, cursor },
    ]);
    expect(route.calls).toEqual([]);
    gate.open();
    expect(await promptly(answered)).toMatchObject({ status: { state: "TASK_STATE_COMPLETED" } });
    await settle();
    expect(route.states).toEqual(["COMPLETED"]);
    const kinds = writes.gate.groups.flat().map(({ kind }) => kind);
    expect(kinds).toEqual(["append", "delivery-progress"]);
  });

  const leave = (two: Harness, taskId: string) => two.task("more", { taskId });
  const repeat = (two: Harness) => two.task("hello", { key: "key", returnImmediately: true });
  test.each([
    ["message that another node leaves", leave],
    ["repeat that another node shows", repeat],
  ])("a %s makes what waits for events due at once", async (_, act) => {
    const gate = createGate();
    const agent = gated(gate.pass);
    const { harness: one, route } = await start({ agent });
    const numbers: number[] = [];
    route.act = async (delivery) => {
      for (const { number } of (await delivery.read(delivery.record.cursor)) ?? []) numbers.push(number);
      await delivery.release(numbers.at(-1) ?? 0);
    };
    const events = replyTo({ wants: "events" });
    const { id } = await promptly(one.task("hello", { key: "key", returnImmediately: true, replyTo: events }));
    await gate.reached;
    await settle();
    const before = numbers.length;
    const two = await Harness.start({ agent, after: one });
    const answered = act(two, id);
    await settle();
    expect(numbers).toHaveLength(before + 1);
    gate.open();
    await promptly(answered);
    await settle();
    expect(numbers).toEqual((await one.log(id)).map(({ number }) => number));
  });
});
