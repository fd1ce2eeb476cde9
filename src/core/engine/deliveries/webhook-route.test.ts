import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { backoffDelay } from "../../model/backoff.ts";
import { textOf } from "../../model/message.ts";
import type { PendingDelivery } from "../../store/contract.ts";
import { agentOf, chunk, createGate, echo, inputText, messageAgent, status, textDraft } from "../testing/agents.ts";
import { promptly, settle } from "../testing/fake-clock.ts";
import { callOf, Harness, type HarnessOptions } from "../testing/harness.ts";
import { FAILED, Receivers } from "../testing/receivers.ts";
import { FlakyStore } from "../testing/stores.ts";
import type { PushAttempt, PushOutcome } from "./push-sender.ts";

const HOOK = "https://hook.example/a";
const OTHER = "https://other.example/b";

async function start(options: HarnessOptions) {
  let now = () => 0;
  const receivers = new Receivers(() => now());
  const harness = await Harness.start({ pushSender: receivers, ...options });
  now = () => harness.clock.now();
  return { harness, receivers };
}

function register(harness: Harness, taskId: string, url: string, id = url) {
  const operation = { kind: "push-create" as const, taskId, config: { id, url } };
  return promptly(harness.engine.agent("agent").dispatch(operation, callOf()));
}

function remove(harness: Harness, taskId: string, id: string) {
  return promptly(harness.engine.agent("agent").dispatch({ kind: "push-delete", taskId, id }, callOf()));
}

async function deliveries(harness: Harness): Promise<readonly PendingDelivery[]> {
  return harness.memory.pendingDeliveries({ limit: 1_000 });
}

/** Goes on when it is told to, any number of times. */
const asker = agentOf(async function* (turn) {
  for (let at = 0; at < Number(inputText(turn)); at++) yield chunk(`part ${at}`, String(at), false);
  yield status("TASK_STATE_INPUT_REQUIRED", "More?");
});

const silent = (pass: () => Promise<void>) =>
  agentOf(
    // biome-ignore lint/correctness/useYield: an agent that only answers yields nothing.
    async function* () {
      await pass();
      return textDraft("A plain answer.");
    },
  );

describe("events", () => {
  test("are sent one by one and in order to a config that came with the message", async () => {
    const { harness, receivers } = await start({ agent: echo() });
    const { id } = await promptly(harness.task("hello", { push: { url: HOOK } }));
    await settle();
    expect(receivers.received.map(({ number, kind, task }) => [number, kind, task])).toEqual([
      [1, "task", id],
      [2, "statusUpdate", id],
      [3, "artifactUpdate", id],
      [4, "statusUpdate", id],
    ]);
    expect(receivers.maxConcurrent).toBe(1);
    expect(harness.counts.push_delivered).toBe(4);
    expect(await deliveries(harness)).toEqual([]);
  });

  test("are sent to each config from where it began", async () => {
    const { harness, receivers } = await start({ agent: asker });
    const { id } = await promptly(harness.task("0", { push: { url: HOOK } }));
    await settle();
    await register(harness, id, OTHER);
    await settle();
    expect(receivers.numbers(HOOK)).toEqual([1, 2]);
    expect(receivers.numbers(OTHER)).toEqual([]);
    await promptly(harness.task("1", { taskId: id }));
    await settle();
    expect(receivers.numbers(HOOK)).toEqual([1, 2, 3, 4, 5]);
    expect(receivers.numbers(OTHER)).toEqual([3, 4, 5]);
  });

  test("are never sent to an address that may not be called: it is not even registered", async () => {
    const { harness } = await start({ agent: echo() });
    const push = { url: "https://forbidden.example/" };
    await expect(harness.send("hello", { push })).rejects.toMatchObject({ code: "INVALID_PARAMS" });
    const { id } = await promptly(harness.task("hello"));
    await expect(register(harness, id, push.url)).rejects.toMatchObject({ code: "INVALID_PARAMS" });
    expect((await harness.list()).totalSize).toBe(1);
  });

  test("are not sent for a task that had ended before", async () => {
    const { harness, receivers } = await start({ agent: echo() });
    const { id } = await promptly(harness.task("hello"));
    await register(harness, id, HOOK);
    await harness.clock.advance(60_000);
    expect(receivers.received).toEqual([]);
  });

  test("of a long log are all sent, and others get their turn between them", async () => {
    const { harness, receivers } = await start({ agent: asker, limits: { pushConcurrency: 1, mergeAfter: 1_000 } });
    await promptly(harness.task("100", { push: { url: HOOK } }));
    await promptly(harness.task("0", { push: { url: OTHER } }));
    await settle(1_000);
    expect(receivers.numbers(HOOK)).toEqual(Array.from({ length: 103 }, (_, at) => at + 1));
    const after = receivers.received.findIndex(({ url }) => url === OTHER);
    expect(after).toBeGreaterThan(0);
    expect(after).toBeLessThan(103);
  });

  test("that show the whole task leave out chunks that others have passed", async () => {
    const { harness, receivers } = await start({ agent: asker });
    receivers.whole = true;
    const texts: string[] = [];
    receivers.answer = async ({ task }) => {
      const { artifacts = [], status } = await task();
      texts.push(`${status.state} ${artifacts.map(({ parts }) => textOf(parts)).join()}`);
      return { ok: true };
    };
    await promptly(harness.task("5", { push: { url: HOOK } }));
    await settle();
    expect(receivers.numbers()[0]).toBe(1);
    expect(receivers.numbers().at(-1)).toBe(8);
    expect(receivers.received.length).toBeLessThan(8);
    expect(texts[0]).toBe("TASK_STATE_SUBMITTED ");
    expect(texts.at(-1)).toBe("TASK_STATE_INPUT_REQUIRED 0,1,2,3,4");
  });

  test("whose log was reduced meanwhile are sent as the task they came to", async () => {
    const { harness, receivers } = await start({ agent: echo() });
    receivers.answer = () => FAILED;
    const { id } = await promptly(harness.task("hello", { push: { url: HOOK } }));
    await settle();
    await harness.memory.compact(0, 10);
    receivers.answer = () => ({ ok: true });
    await harness.clock.advance(10_000);
    expect(receivers.received.map(({ number, kind }) => [number, kind])).toEqual([
      [1, "task"],
      [4, "task"],
    ]);
    expect(receivers.received[1]?.task).toBe(id);
    expect(await deliveries(harness)).toEqual([]);
  });
});

describe("a task that may still be taken back", () => {
  test("is not announced, and leaves nothing when it is answered by a message", async () => {
    const { harness, receivers } = await start({ agent: messageAgent() });
    expect(await promptly(harness.send("hello", { push: { url: HOOK } }))).toHaveProperty("message");
    await harness.clock.advance(60_000);
    expect(receivers.received).toEqual([]);
    expect(await deliveries(harness)).toEqual([]);
  });

  test("is announced after a while, and then stays", async () => {
    const gate = createGate();
    const { harness, receivers } = await start({ agent: silent(gate.pass) });
    const sent = harness.send("hello", { push: { url: HOOK } });
    await gate.reached;
    await harness.clock.advance(900);
    expect(receivers.received).toEqual([]);
    await harness.clock.advance(200);
    expect(receivers.numbers()).toEqual([1, 2]);
    gate.open();
    expect(await promptly(sent)).toMatchObject({ task: { status: { state: "TASK_STATE_COMPLETED" } } });
    await settle();
    expect(receivers.numbers()).toEqual([1, 2, 3]);
  });
});

describe("a failure", () => {
  test("is repeated within ten seconds, then ever later, and nothing overtakes it", async () => {
    const { harness, receivers } = await start({ agent: echo() });
    receivers.answer = () => (receivers.received.length <= 4 ? FAILED : { ok: true });
    await promptly(harness.task("hello", { push: { url: HOOK } }));
    await harness.clock.advance(120_000);
    expect(receivers.numbers()).toEqual([1, 1, 1, 1, 1, 2, 3, 4]);
    const times = receivers.received.slice(0, 5).map(({ at }) => at);
    const waits = times.slice(1).map((at, index) => at - (times[index] ?? 0));
    // The test's chance is a half: three quarters of 5, 10, 20 and 40 s.
    expect(waits).toEqual([3_750, 7_500, 15_000, 30_000]);
    expect(harness.counts).toMatchObject({ push_failed: 4, push_delivered: 4 });
  });

  test("no longer counts once something is delivered", async () => {
    const { harness, receivers } = await start({ agent: echo(), limits: { pushAttempts: 3 } });
    receivers.answer = () => (receivers.received.length % 3 === 0 ? { ok: true } : FAILED);
    await promptly(harness.task("hello", { push: { url: HOOK } }));
    await harness.clock.advance(300_000);
    expect(receivers.numbers()).toEqual([1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4]);
    expect(harness.counts.push_dead).toBeUndefined();
  });

  test("that goes on gives the config up, until somebody asks for it", async () => {
    const { harness, receivers } = await start({ agent: asker, limits: { pushAttempts: 12 } });
    receivers.answer = () => FAILED;
    const { id } = await promptly(harness.task("0", { push: { id: "mine", url: HOOK } }));
    await harness.clock.advance(24 * 3_600_000);
    expect(receivers.numbers()).toEqual(Array.from({ length: 12 }, () => 1));
    expect(harness.counts).toMatchObject({ push_failed: 12, push_dead: 1 });
    expect(await deliveries(harness)).toMatchObject([
      { taskId: id, deliveryId: "mine", cursor: 0, attempts: 12, lastError: "HTTP 503", deadAt: expect.any(Number) },
    ]);
    await promptly(harness.task("0", { taskId: id }));
    await harness.clock.advance(24 * 3_600_000);
    expect(receivers.received).toHaveLength(12);
    receivers.answer = () => ({ ok: true });
    expect(await harness.memory.redeliver({})).toHaveLength(1);
    await harness.clock.advance(10_000);
    expect(receivers.numbers().slice(12)).toEqual([1, 2, 3, 4]);
  });

  test("that no further try can mend gives the config up at once", async () => {
    const { harness, receivers } = await start({ agent: echo() });
    receivers.answer = () => ({ ok: false, reason: "no words", final: true });
    await promptly(harness.task("hello", { push: { url: HOOK } }));
    await harness.clock.advance(60_000);
    expect(receivers.received).toHaveLength(1);
    expect(await deliveries(harness)).toMatchObject([{ attempts: 1, lastError: "no words" }]);
  });

  test("is put on record for every try, and so is success", async () => {
    const tries: PushAttempt[] = [];
    const { harness, receivers } = await start({
      agent: asker,
      limits: { pushAttempts: 3 },
      onPushTry: (tried) => tries.push(tried),
    });
    const answers: PushOutcome[] = [FAILED, { ok: true }, { ok: true }, FAILED, FAILED, FAILED];
    receivers.answer = () => answers.shift() ?? { ok: true };
    const { id } = await promptly(harness.task("0", { push: { id: "mine", url: HOOK } }));
    await harness.clock.advance(60_000);
    await promptly(harness.task("0", { taskId: id }));
    await harness.clock.advance(60_000);
    expect(tries.map(({ event, attempt, result, reason }) => [event, attempt, result, reason])).toEqual([
      [1, 1, "failed", "HTTP 503"],
      [1, 2, "delivered", undefined],
      [2, 1, "delivered", undefined],
      [3, 1, "failed", "HTTP 503"],
      [3, 2, "failed", "HTTP 503"],
      [3, 3, "given-up", "HTTP 503"],
    ]);
    expect(tries.at(-1)).toMatchObject({
      delivery: { id: "mine", taskId: id },
      scope: { agent: "agent", tenant: "", owner: "alice" },
      lane: "hook.example",
    });
  });

  test("is also a receiver that does not answer in time, or a sender that throws", async () => {
    const { harness, receivers } = await start({ agent: echo() });
    const signals: AbortSignal[] = [];
    receivers.answer = (_, signal) => {
      signals.push(signal);
      if (signals.length === 1) return new Promise<PushOutcome>(() => {});
      if (signals.length === 2) throw new Error("broken");
      return { ok: true };
    };
    await promptly(harness.task("hello", { push: { url: HOOK } }));
    await harness.clock.advance(9_900);
    expect(signals.map(({ aborted }) => aborted)).toEqual([false]);
    await harness.clock.advance(200);
    expect(signals[0]?.aborted).toBe(true);
    expect(await deliveries(harness)).toMatchObject([{ attempts: 1, lastError: "no answer in time" }]);
    await harness.clock.advance(30_000);
    expect(receivers.numbers()).toEqual([1, 1, 1, 2, 3, 4]);
  });

  test("waits by chance between a half and the whole, never longer than the bound", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 50 }), fc.double({ min: 0, max: 1, noNaN: true }), (failures, chance) => {
        const wait = backoffDelay(failures, 5_000, 3_600_000, chance);
        const whole = Math.min(5_000 * 2 ** (failures - 1), 3_600_000);
        expect(wait).toBeGreaterThanOrEqual(whole / 2);
        expect(wait).toBeLessThanOrEqual(whole);
      }),
    );
    expect(backoffDelay(1, 5_000, 3_600_000, 1)).toBeLessThanOrEqual(10_000);
  });
});

describe("a slow receiver", () => {
  test("keeps neither tasks nor other receivers waiting, and a host is not overrun", async () => {
    const { harness, receivers } = await start({ agent: echo(), limits: { pushPerHost: 2, pushConcurrency: 4 } });
    const gate = createGate();
    let slow = 0;
    let mostSlow = 0;
    receivers.answer = async ({ config }) => {
      if (config.url === HOOK) {
        mostSlow = Math.max(mostSlow, ++slow);
        await gate.pass();
        slow--;
      }
      return { ok: true };
    };
    const all = Array.from({ length: 5 }, () => promptly(harness.task("slow", { push: { url: HOOK } })));
    const quick = promptly(harness.task("quick", { push: { url: OTHER } }));
    for (const task of [...(await Promise.all(all)), await quick])
      expect(task.status.state).toBe("TASK_STATE_COMPLETED");
    await settle();
    expect(receivers.numbers(OTHER)).toEqual([1, 2, 3, 4]);
    expect(receivers.numbers(HOOK)).toEqual([1, 1]);
    gate.open();
    await settle(100);
    expect(receivers.numbers(HOOK)).toHaveLength(20);
    expect(mostSlow).toBe(2);
  });
});

describe("a config", () => {
  test("that is deleted is sent nothing more, not even what was left", async () => {
    const { harness, receivers } = await start({ agent: echo() });
    const gate = createGate();
    receivers.answer = async () => {
      await gate.pass();
      return { ok: true };
    };
    const { id } = await promptly(harness.task("hello", { push: { id: "mine", url: HOOK } }));
    await gate.reached;
    await remove(harness, id, "mine");
    gate.open();
    await harness.clock.advance(60_000);
    expect(receivers.numbers()).toEqual([1]);
  });

  test("that is replaced tells the new address what the old one was not known to have", async () => {
    const { harness, receivers } = await start({ agent: asker });
    receivers.answer = ({ config }) => (config.url === HOOK ? FAILED : { ok: true });
    const { id } = await promptly(harness.task("0", { push: { id: "mine", url: HOOK } }));
    await settle();
    await register(harness, id, OTHER, "mine");
    await settle();
    expect(receivers.numbers(OTHER)).toEqual([1, 2]);
  });
});

describe("an engine", () => {
  test("that takes over from one that died sends what that one had not noted down", async () => {
    const { harness, receivers } = await start({ agent: asker });
    const gate = createGate();
    receivers.answer = async ({ frame }) => {
      if (frame.number === 2) await gate.pass();
      return { ok: true };
    };
    await promptly(harness.task("3", { push: { url: HOOK } }));
    await gate.reached;
    harness.crash();
    const later = new Receivers();
    const next = await Harness.start({ agent: asker, after: harness, pushSender: later });
    await settle();
    // It is not known yet that its holder is dead.
    expect(later.received).toEqual([]);
    await next.clock.advance(30_000);
    expect(later.numbers()).toEqual([2, 3, 4, 5, 6]);
  });

  test("that is closed leaves what it was sending to the next, at once", async () => {
    const { harness, receivers } = await start({ agent: asker });
    receivers.answer = () => new Promise<PushOutcome>(() => {});
    await promptly(harness.task("1", { push: { url: HOOK } }));
    await settle();
    await promptly(harness.engine.close());
    const later = new Receivers();
    await Harness.start({ agent: asker, after: harness, pushSender: later });
    await settle();
    expect(later.numbers()).toEqual([1, 2, 3, 4]);
    expect((await deliveries(harness)).length).toBe(0);
  });

  test("without push sends nothing, and keeps it for one that does", async () => {
    const harness = await Harness.start({ agent: echo() });
    await promptly(harness.task("hello", { push: { url: HOOK } }));
    harness.crash();
    const off = new Receivers();
    await Harness.start({ agent: echo(), after: harness, pushSender: off, push: false });
    const on = new Receivers();
    await Harness.start({ agent: echo(), after: harness, pushSender: on });
    await settle();
    expect(off.received).toEqual([]);
    expect(on.numbers()).toEqual([1, 2, 3, 4]);
  });

  test("finds what no commit announced", async () => {
    const { harness, receivers } = await start({ agent: asker });
    const { id } = await promptly(harness.task("0", { push: { url: HOOK } }));
    await settle();
    expect(await harness.memory.redeliver({ taskId: id, from: 2 })).toHaveLength(1);
    await settle();
    expect(receivers.numbers()).toEqual([1, 2]);
    await harness.clock.advance(5_000);
    expect(receivers.numbers()).toEqual([1, 2, 2]);
  });

  test("goes on when the store has failed it for a while", async () => {
    const flaky = new FlakyStore();
    const { harness, receivers } = await start({ agent: asker, wrap: flaky.wrap });
    const gate = createGate();
    receivers.answer = async () => {
      await gate.pass();
      return { ok: true };
    };
    await promptly(harness.task("0", { push: { url: HOOK } }));
    await gate.reached;
    flaky.fail(5);
    gate.open();
    await harness.clock.advance(120_000);
    expect(flaky.failures).toBe(5);
    expect([...new Set(receivers.numbers())]).toEqual([1, 2]);
    expect(await deliveries(harness)).toEqual([]);
  });
});
