import { describe, expect, test } from "vitest";
import type { FrameStream } from "../../model/operation.ts";
import type { TaskStore } from "../../store/contract.ts";
import { agentOf, chunk, createGate, echo, inputText, status } from "../testing/agents.ts";
import { promptly, settle } from "../testing/fake-clock.ts";
import { framesOf, Harness } from "../testing/harness.ts";
import { viewViolations } from "../testing/log-invariants.ts";
import { overrideStore } from "../testing/stores.ts";

const counting = (count: number, gate = createGate()) => ({
  gate,
  agent: agentOf(async function* () {
    for (let index = 0; index < count; index++) {
      yield chunk("a", `${index} `, index > 0);
      if (index === Math.floor(count / 2)) await gate.pass();
    }
  }),
});

/** Wake-ups go nowhere. */
const mute = (inner: TaskStore): TaskStore =>
  overrideStore(inner, { wakeups: { publish: () => {}, subscribe: () => () => {} } });

const REPLAY = { replay: true };

describe("a stream", () => {
  test("shows the whole log, in order, and ends with the task", async () => {
    const { agent, gate } = counting(20);
    gate.open();
    const harness = await Harness.start({ agent });
    const frames = await promptly(framesOf(await harness.stream("hello")));
    const first = frames[0]?.event;
    const id = first !== undefined && "task" in first ? first.task.id : "";
    const log = await harness.log(id);
    expect(viewViolations(frames, log, 0)).toEqual([]);
    expect(frames).toHaveLength(log.length);
    expect(harness.engine.load.streams).toBe(0);
  });

  test("of a task that asks ends with the question; the next one begins with the task as it stands", async () => {
    const harness = await Harness.start({
      agent: agentOf(async function* (turn) {
        if (inputText(turn) === "hello") yield status("TASK_STATE_INPUT_REQUIRED", "who?");
        else yield chunk("a", inputText(turn), false);
      }),
    });
    const frames = await promptly(framesOf(await harness.stream("hello")));
    expect(frames.map(({ number }) => number)).toEqual([1, 2]);
    const first = frames[0]?.event;
    const id = first !== undefined && "task" in first ? first.task.id : "";
    const next = await promptly(framesOf(await harness.stream("me", { taskId: id })));
    expect(next[0]?.event).toMatchObject({ task: { id, status: { state: "TASK_STATE_WORKING" } } });
    expect(next.map(({ number }) => number)).toEqual([3, 4, 5]);
  });

  test.each([{}, { key: "key" }])("begins with all that the agent says at once (%j)", async (options) => {
    const harness = await Harness.start({ agent: echo() });
    const stream = await promptly(harness.stream("hello", options));
    const { value } = await promptly(stream[Symbol.asyncIterator]().next());
    expect(value.at(-1)).toMatchObject({ event: { statusUpdate: { status: { state: "TASK_STATE_COMPLETED" } } } });
  });

  test("whose reader goes away leaves the task at work and the place free", async () => {
    const { agent, gate } = counting(10);
    const harness = await Harness.start({ agent });
    const stream = await promptly(harness.stream("hello"));
    const iterator = stream[Symbol.asyncIterator]();
    for (let read = await promptly(iterator.next()); ; read = await promptly(iterator.next())) {
      if (read.done === true || (read.value.at(-1)?.number ?? 0) >= 7) break;
    }
    const pending = iterator.next();
    await iterator.return?.();
    expect(await promptly(pending)).toMatchObject({ done: true });
    expect(harness.engine.load.streams).toBe(0);
    gate.open();
    await settle();
    expect((await harness.list()).tasks[0]?.status.state).toBe("TASK_STATE_COMPLETED");
  });

  test("is refused by an agent that does not stream", async () => {
    const agent = echo();
    const harness = await Harness.start({ agent: { ...agent, profile: { ...agent.profile, streaming: false } } });
    await expect(harness.stream("hello")).rejects.toMatchObject({ code: "UNSUPPORTED_OPERATION" });
  });
});

describe("subscribing", () => {
  test("begins with the task as it is now and goes on from there", async () => {
    const { agent, gate } = counting(10);
    const harness = await Harness.start({ agent });
    const { id } = await harness.begin("hello");
    await gate.reached;
    await settle();
    const stream = await harness.subscribe(id);
    gate.open();
    const frames = await promptly(framesOf(stream));
    const log = await harness.log(id);
    const at = frames[0]?.number ?? 0;
    expect(frames[0]?.event).toMatchObject({ task: { artifacts: [{ parts: [{ text: "0 1 2 3 4 5 " }] }] } });
    expect(viewViolations(frames.slice(1), log, at)).toEqual([]);
    expect(frames.at(-1)?.number).toBe(log.length);
  });

  test.each([true, false])("works from any number, also when the task has ended: %s", async (ended) => {
    const { agent, gate } = counting(10);
    const harness = await Harness.start({ agent });
    const { id } = await harness.begin("hello");
    await gate.reached;
    await settle();
    if (ended) gate.open();
    await settle();
    const known = (await harness.log(id)).length;
    const streams: FrameStream[] = [];
    for (let after = 1; after <= known; after++) {
      streams.push(await harness.subscribe(id, after, REPLAY), await harness.subscribe(id, after));
    }
    gate.open();
    const views = await promptly(Promise.all(streams.map(framesOf)));
    const log = await harness.log(id);
    views.forEach((frames, index) => {
      const after = Math.floor(index / 2) + 1;
      if (index % 2 === 1) {
        const snapshot = frames.shift();
        expect(snapshot?.number).toBe(after);
        expect(snapshot?.event).toHaveProperty("task.id", id);
      }
      expect(viewViolations(frames, log, after)).toEqual([]);
      expect(frames).toHaveLength(log.length - after);
    });
  });

  test.each([0, -1, 1.5, Number.NaN, 99])("from %d, which is no number of the task, is refused", async (after) => {
    const harness = await Harness.start({ agent: echo() });
    const { id } = await harness.task("hello");
    for (const options of [{}, REPLAY]) {
      await expect(harness.subscribe(id, after, options)).rejects.toMatchObject({ code: "INVALID_PARAMS" });
    }
  });

  test("to a task that has ended is refused without a number", async () => {
    const harness = await Harness.start({ agent: echo() });
    const { id } = await harness.task("hello");
    await expect(harness.subscribe(id)).rejects.toMatchObject({ code: "UNSUPPORTED_OPERATION" });
  });

  test("stays open while the task waits for its caller", async () => {
    const harness = await Harness.start({
      agent: agentOf(async function* (turn) {
        yield inputText(turn) === "hello" ? status("TASK_STATE_INPUT_REQUIRED", "who?") : status("TASK_STATE_WORKING");
      }),
    });
    const { id } = await harness.task("hello");
    const frames = framesOf(await harness.subscribe(id, 1, REPLAY));
    await settle();
    await harness.task("me", { taskId: id });
    expect((await promptly(frames)).map(({ number }) => number)).toEqual([2, 3, 4, 5]);
  });
});

describe("lost wake-ups", () => {
  test("cost time and nothing else", async () => {
    const { agent, gate } = counting(30);
    const harness = await Harness.start({ agent, wrap: mute });
    const { id } = await harness.begin("hello");
    await gate.reached;
    await settle();
    const views = [framesOf(await harness.subscribe(id, 1, REPLAY)), framesOf(await harness.subscribe(id, 5, REPLAY))];
    gate.open();
    await harness.clock.advance(20_000);
    const log = await harness.log(id);
    const [one, two] = await promptly(Promise.all(views));
    expect(viewViolations(one ?? [], log, 1)).toEqual([]);
    expect(viewViolations(two ?? [], log, 5)).toEqual([]);
    expect(one).toHaveLength(log.length - 1);
    expect(harness.counts.wakeups_missed).toBeGreaterThan(0);
  });

  test("keep neither a blocking send nor a cancellation waiting for ever", async () => {
    const harness = await Harness.start({ agent: echo(), wrap: mute });
    const answer = harness.task("hello", { key: "k", messageId: "m" });
    const again = harness.task("hello", { key: "k", messageId: "m" });
    await harness.clock.advance(5_000);
    expect((await promptly(answer)).status.state).toBe("TASK_STATE_COMPLETED");
    expect((await promptly(again)).status.state).toBe("TASK_STATE_COMPLETED");
  });
});

describe("a slow reader", () => {
  test("is given everything in the end, and nothing is kept for it meanwhile", async () => {
    let reads = 0;
    const { agent, gate } = counting(3_000);
    const harness = await Harness.start({
      agent,
      limits: { mergeAfter: 100_000, pendingEvents: 50 },
      wrap: (inner) =>
        overrideStore(inner, {
          read(cursors, limit) {
            reads++;
            return inner.read(cursors, limit);
          },
        }),
    });
    gate.open();
    const { id } = await harness.begin("hello");
    const stream = await harness.subscribe(id, 1, REPLAY);
    await settle(200);
    const log = await harness.log(id);
    expect(log.length).toBeGreaterThan(3_000);
    const readsBefore = reads;
    const frames = await promptly(framesOf(stream));
    expect(viewViolations(frames, log, 1)).toEqual([]);
    expect(frames).toHaveLength(log.length - 1);
    // What it missed came from the store, so it was not buffered here.
    expect(reads).toBeGreaterThan(readsBefore);
  });

  test("in the same log does not hold up a quick one", async () => {
    const { agent, gate } = counting(1_000);
    const harness = await Harness.start({ agent });
    const { id } = await harness.begin("hello");
    await gate.reached;
    await settle();
    await harness.subscribe(id);
    const quick = framesOf(await harness.subscribe(id));
    gate.open();
    expect((await promptly(quick)).length).toBeGreaterThan(1);
  });
});

describe("a compacted log", () => {
  const times = { compactAfterMs: 1_000, housekeepingMs: 1_000 };

  test("reads as the same task; an older cursor gives the task as it is and ends", async () => {
    const { agent, gate } = counting(10);
    gate.open();
    const harness = await Harness.start({ agent, times });
    const before = await harness.task("hello");
    const { length } = await harness.log(before.id);
    await harness.clock.advance(5_000);
    expect((await harness.memory.head(before.id))?.floor).toBe(length);
    expect(await harness.get(before.id)).toEqual(before);
    expect((await harness.list()).tasks).toEqual([before]);
    for (const options of [{}, REPLAY]) {
      const frames = await promptly(framesOf(await harness.subscribe(before.id, 3, options)));
      expect(frames).toEqual([expect.objectContaining({ number: length, event: { task: before } })]);
      const atEnd = await promptly(framesOf(await harness.subscribe(before.id, length, options)));
      expect(atEnd).toHaveLength(options === REPLAY ? 0 : 1);
    }
  });

  test("under a reader that had not come so far ends the stream", async () => {
    const { agent, gate } = counting(10);
    const harness = await Harness.start({ agent, times });
    const { id } = await harness.begin("hello");
    await gate.reached;
    await settle();
    const late = await harness.subscribe(id, 1, REPLAY);
    const later = await harness.subscribe(id);
    await later[Symbol.asyncIterator]().next();
    gate.open();
    await harness.clock.advance(10_000);
    expect((await harness.memory.head(id))?.floor).toBeGreaterThan(0);
    const frames = await promptly(framesOf(late));
    expect(frames.at(-1)?.event).toMatchObject({ task: { status: { state: "TASK_STATE_COMPLETED" } } });
    await promptly(framesOf(later));
  });

  test("may be gone altogether", async () => {
    const harness = await Harness.start({ agent: echo(), times: { ...times, pruneAfterMs: 2_000 } });
    const { id } = await harness.task("hello");
    await harness.clock.advance(10_000);
    await expect(harness.get(id)).rejects.toMatchObject({ code: "TASK_NOT_FOUND" });
    await expect(harness.subscribe(id, 1)).rejects.toMatchObject({ code: "TASK_NOT_FOUND" });
  });
});
