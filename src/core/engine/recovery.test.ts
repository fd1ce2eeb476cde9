import { describe, expect, test } from "vitest";
import type { TaskStore } from "../store/contract.ts";
import type { Agent, Turn } from "./agent.ts";
import { aborted, agentOf, chunk, createGate, inputText, status } from "./testing/agents.ts";
import { promptly, settle } from "./testing/fake-clock.ts";
import { framesOf, Harness } from "./testing/harness.ts";
import { logViolations, snapshotViolations, viewViolations } from "./testing/log-invariants.ts";
import { createStoreGate } from "./testing/stores.ts";

const LEASE = 15_000;

interface Life {
  readonly text: string;
  readonly attempt: number;
  readonly history: readonly string[];
  readonly computed: number;
}

/** Writes two chunks and stays there in its first life; notes what it knew in each. */
function mortal(onCrash: Agent["onCrash"], lives: Life[] = []): { readonly agent: Agent; readonly lives: Life[] } {
  let computed = 0;
  const agent = agentOf(
    async function* (turn: Turn) {
      const value = await turn.memory.once("value", () => ++computed);
      lives.push({
        text: inputText(turn),
        attempt: turn.attempt,
        history: turn.history.map(({ messageId }) => messageId),
        computed: value,
      });
      yield chunk("a", "one ", true);
      yield chunk("a", "two ", true);
      if (turn.attempt === 1 && inputText(turn) === "hello") await new Promise(() => {});
      yield chunk("a", "three", true);
    },
    { onCrash },
  );
  return { agent, lives };
}

/** The first engine is gone without a word; another takes over once its lease ran out. */
async function successor(first: Harness, agent: Agent, more: object = {}): Promise<Harness> {
  await settle();
  first.crash();
  await first.clock.advance(LEASE + 1);
  const second = await Harness.start({ agent, after: first, ...more });
  await settle(20);
  return second;
}

describe("a task whose process died", () => {
  test("is failed with a reason when its agent did not declare itself repeatable", async () => {
    const { agent, lives } = mortal("fail");
    const first = await Harness.start({ agent });
    const { id } = await first.begin("hello");
    const second = await successor(first, agent);
    const task = await second.get(id);
    expect(task.status).toMatchObject({
      state: "TASK_STATE_FAILED",
      message: { parts: [{ text: expect.stringMatching(/stopped before the task was finished/) }] },
    });
    expect(task.artifacts?.[0]?.parts).toEqual([{ text: "one two " }]);
    expect(lives).toHaveLength(1);
    expect(second.counts).toMatchObject({ runs_failed_by_crash: 1 });
    expect(logViolations(await second.log(id), { ended: true })).toEqual([]);
  });

  test("before anything of it was written has left no trace, and no caller was answered", async () => {
    let begun = 0;
    const agent = agentOf(async function* () {
      begun++;
      yield chunk("a", "one", true);
    });
    const first = await Harness.start({ agent });
    let answered = false;
    const note = () => {
      answered = true;
    };
    first.send("hello").then(note, note);
    first.stream("hello").then(async (stream) => framesOf(stream).then(note), note);
    // Before the turn of the event loop in which the messages came is over.
    first.crash();
    await settle();
    expect([begun, answered]).toEqual([2, false]);
    const second = await successor(first, agent);
    expect((await second.memory.stats()).tasks).toBe(0);
    expect(begun).toBe(2);
  });

  test("is resumed with its message, memory and attempt; artifacts begin anew", async () => {
    const { agent, lives } = mortal("resume");
    const first = await Harness.start({ agent });
    const { id } = await first.begin("hello", { messageId: "question" });
    const second = await successor(first, agent);
    const task = await second.get(id);
    expect(task.status.state).toBe("TASK_STATE_COMPLETED");
    expect(task.artifacts).toEqual([{ artifactId: "a", parts: [{ text: "one two three" }] }]);
    expect(lives).toEqual([
      { text: "hello", attempt: 1, history: [], computed: 1 },
      { text: "hello", attempt: 2, history: [], computed: 1 },
    ]);
    expect(second.counts).toMatchObject({ runs_resumed: 1 });
    const log = await second.log(id);
    expect(logViolations(log, { ended: true })).toEqual([]);
    expect(snapshotViolations(log, await second.stored(id))).toEqual([]);
    expect(log.some(({ event }) => "statusUpdate" in event && event.statusUpdate.metadata?.attempt === 2)).toBe(true);
  });

  test("that continues from what it remembers continues its artifact, and so does a later turn", async () => {
    const words = ["one ", "two ", "three "];
    const agent = agentOf(
      async function* (turn: Turn) {
        if (inputText(turn) === "more") {
          yield chunk("a", "four", true);
          return;
        }
        for (let at = (await turn.memory.get<number>("at")) ?? 0; at < words.length; at++) {
          if (at === 2 && turn.attempt === 1) await new Promise(() => {});
          yield chunk("a", words[at] as string, true);
          await turn.memory.set("at", at + 1);
        }
        yield status("TASK_STATE_INPUT_REQUIRED", "And?");
      },
      { onCrash: "resume" },
    );
    const first = await Harness.start({ agent });
    const { id } = await first.begin("hello");
    const second = await successor(first, agent);
    expect((await second.get(id)).artifacts).toEqual([{ artifactId: "a", parts: [{ text: words.join("") }] }]);
    await second.send("more", { taskId: id });
    const text = `${words.join("")}four`;
    expect((await second.get(id)).artifacts).toEqual([{ artifactId: "a", parts: [{ text }] }]);
  });

  test("is resumed from its newest checkpoint, which is in the store with its event and shown to no one", async () => {
    const words = ["one ", "two ", "three"];
    const agent = agentOf(
      async function* (turn: Turn) {
        for (let at = (turn.checkpoint as number | undefined) ?? 0; at < words.length; at++) {
          if (at === 2 && turn.attempt === 1) await new Promise(() => {});
          yield { ...chunk("a", words[at] as string, at > 0), checkpoint: at + 1 };
        }
      },
      { onCrash: "resume" },
    );
    const first = await Harness.start({ agent });
    const { id } = await first.begin("hello");
    const second = await successor(first, agent);
    const log = await second.log(id);
    expect(log.flatMap(({ event }) => ("artifactUpdate" in event ? event.artifactUpdate.artifact.parts : []))).toEqual(
      words.map((text) => ({ text })),
    );
    expect((await second.get(id)).artifacts).toEqual([{ artifactId: "a", parts: [{ text: words.join("") }] }]);
    expect(log.map(({ json }) => json).join()).not.toContain("checkpoint");
    expect(snapshotViolations(log, await second.stored(id))).toEqual([]);
  });

  test("is followed across the crash by number, each event once", async () => {
    const { agent } = mortal("resume");
    const first = await Harness.start({ agent });
    const { id } = await first.begin("hello");
    await settle();
    const seen = [];
    const iterator = (await first.subscribe(id, 1, { replay: true }))[Symbol.asyncIterator]();
    for (let last = 1; last < 3; last = seen.at(-1)?.number ?? 0) {
      const read = await promptly(iterator.next());
      if (read.done !== true) seen.push(...read.value);
    }
    const second = await successor(first, agent);
    seen.push(...(await promptly(framesOf(await second.subscribe(id, seen.at(-1)?.number, { replay: true })))));
    const log = await second.log(id);
    expect(viewViolations(seen, log, 1)).toEqual([]);
    expect(seen).toHaveLength(log.length - 1);
  });

  test("is taken over by the process that remains when the lease runs out", async () => {
    const { agent } = mortal("resume");
    const first = await Harness.start({ agent });
    const second = await Harness.start({ agent, after: first });
    const { id } = await first.begin("hello");
    await settle();
    first.crash();
    await first.clock.advance(2 * LEASE);
    expect((await second.get(id)).status.state).toBe("TASK_STATE_COMPLETED");
  });

  test("is left alone while its process lives", async () => {
    const { agent, lives } = mortal("resume");
    const first = await Harness.start({ agent });
    const { id } = await first.begin("hello");
    await Harness.start({ agent, after: first });
    await first.clock.advance(10 * LEASE);
    expect(lives).toHaveLength(1);
    expect((await first.get(id)).status.state).not.toBe("TASK_STATE_COMPLETED");
  });

  test("is given up after too many lives", async () => {
    const agent = agentOf(
      async function* () {
        yield status("TASK_STATE_WORKING");
        await new Promise(() => {});
      },
      { onCrash: "resume" },
    );
    const snapshots: string[] = [];
    const wrap = (store: TaskStore): TaskStore => ({
      ...store,
      snapshot(id, options) {
        snapshots.push(id);
        return store.snapshot(id, options);
      },
    });
    let life = await Harness.start({ agent, limits: { attempts: 3 } });
    const { id } = await life.begin("hello");
    for (let crash = 0; crash < 2; crash++) life = await successor(life, agent, { limits: { attempts: 3 } });
    life = await successor(life, agent, { limits: { attempts: 3 }, wrap });
    // It may be the reading that ends the processes.
    expect(snapshots).toEqual([]);
    expect((await life.get(id)).status).toMatchObject({
      state: "TASK_STATE_FAILED",
      message: { parts: [{ text: expect.stringContaining("3 times") }] },
    });
    expect(logViolations(await life.log(id), { ended: true })).toEqual([]);
  });

  test("keeps the messages that waited, and answers only those that were not answered", async () => {
    const told: string[] = [];
    const gate = createGate();
    const held = createStoreGate();
    const agent = agentOf(
      async function* (turn) {
        told.push(inputText(turn));
        yield status("TASK_STATE_WORKING");
        if (inputText(turn) === "first") {
          yield chunk("a", "x", false);
          await gate.pass();
        } else if (inputText(turn) === "second" && turn.attempt === 1) await new Promise(() => {});
      },
      { onCrash: "resume" },
    );
    const first = await Harness.start({ agent, wrap: held.wrap });
    const { id } = await first.begin("first");
    await gate.reached;
    await settle();
    await first.begin("second", { taskId: id });
    await first.begin("third", { taskId: id });
    held.gate.hold();
    gate.open();
    await settle();
    held.gate.open();
    const second = await successor(first, agent);
    expect((await second.get(id)).status.state).toBe("TASK_STATE_COMPLETED");
    expect(told).toEqual(["first", "second", "second", "third"]);
    expect(logViolations(await second.log(id), { ended: true })).toEqual([]);
  });

  test("remembers which message it was at, also when the store was busy as the turn began", async () => {
    const begins = createGate();
    const ends = createGate();
    const told: string[] = [];
    const held = createStoreGate();
    const agent = agentOf(
      async function* (turn) {
        told.push(inputText(turn));
        if (inputText(turn) === "first") {
          await begins.pass();
          yield chunk("a", "x", false);
          await ends.pass();
        } else if (turn.attempt === 1) await new Promise(() => {});
      },
      { onCrash: "resume" },
    );
    const first = await Harness.start({ agent, wrap: held.wrap });
    const { id } = await first.begin("first");
    await begins.reached;
    await first.begin("second", { taskId: id });
    await settle();
    held.gate.hold();
    begins.open();
    await held.gate.waiting();
    ends.open();
    await settle();
    held.gate.open();
    const second = await successor(first, agent);
    expect(told).toEqual(["first", "second", "second"]);
    expect((await second.get(id)).status.state).toBe("TASK_STATE_COMPLETED");
  });

  test("that was to be cancelled is cancelled", async () => {
    const { agent } = mortal("resume");
    const first = await Harness.start({ agent });
    const { id } = await first.begin("hello");
    await settle();
    first.crash();
    await first.memory.write([{ kind: "request-cancel", id }]);
    await first.clock.advance(LEASE + 1);
    const second = await Harness.start({ agent, after: first });
    await settle();
    expect((await second.get(id)).status.state).toBe("TASK_STATE_CANCELED");
  });

  test("of an agent that is not served here waits for one that does", async () => {
    const { agent } = mortal("resume");
    const first = await Harness.start({ agent });
    const { id } = await first.begin("hello");
    await settle();
    first.crash();
    await first.clock.advance(LEASE + 1);
    await Harness.start({ agents: { other: agent }, after: first });
    await settle();
    expect((await first.memory.head(id))?.attempt).toBe(1);
    const third = await Harness.start({ agent, after: first });
    await settle(20);
    expect((await third.get(id)).status.state).toBe("TASK_STATE_COMPLETED");
  });

  test("and lives after all is fenced: it may not write, is told, and the log stays whole", async () => {
    const gate = createGate();
    let told = false;
    const agent = agentOf(
      async function* (turn) {
        yield chunk("a", "one ", false);
        if (turn.attempt === 1) {
          await gate.pass();
          yield chunk("a", "from the grave");
          await aborted(turn);
          told = true;
        }
        yield chunk("a", "two");
      },
      { onCrash: "resume" },
    );
    const first = await Harness.start({ agent, times: { leaseMs: Number.MAX_SAFE_INTEGER } });
    const answer = first.task("hello");
    await gate.reached;
    await settle();
    const { id } = (await first.list()).tasks[0] ?? { id: "" };
    // Its beats are years apart, but it took its lease with the usual time to live.
    const [lease] = await stolen(first, id);
    expect(lease?.fence).toBeGreaterThan(1);
    gate.open();
    await expect(promptly(answer)).rejects.toMatchObject({ code: "UNAVAILABLE" });
    await settle();
    expect(told).toBe(true);
    expect(first.counts.runs_fenced).toBe(1);
    expect(logViolations(await first.log(id))).toEqual([]);
    expect(JSON.stringify(await first.stored(id))).not.toContain("grave");
  });
});

/** Another node that took the task's lease, as after a long pause of the first. */
async function stolen(harness: Harness, id: string) {
  const head = await harness.memory.head(id);
  const fence = (head?.fence ?? 0) + 1;
  await harness.memory.heartbeat(head?.node ?? "", -1);
  const leases = await harness.memory.claim("thief", ["agent"], 10);
  expect(leases.map((lease) => lease.fence)).toEqual([fence]);
  return leases;
}

describe("what had not begun when the process died", () => {
  const busyWith = (gate: ReturnType<typeof createGate>, told: string[], onCrash: Agent["onCrash"]) =>
    agentOf(
      async function* (turn) {
        told.push(inputText(turn));
        yield status("TASK_STATE_WORKING");
        if (inputText(turn) === "first") await gate.pass();
        yield chunk("a", inputText(turn), false);
      },
      { concurrency: 1, onCrash },
    );

  test.each(["fail", "resume"] as const)("is run for the first time, not failed (%s)", async (onCrash) => {
    const gate = createGate();
    const told: string[] = [];
    const agent = busyWith(gate, told, onCrash);
    const first = await Harness.start({ agent });
    const running = await first.begin("first");
    await gate.reached;
    const waiting = await first.begin("second");
    expect((await first.memory.head(waiting.id))?.attempt).toBe(0);
    gate.open();
    const second = await successor(first, busyWith(createGate(), told, "fail"));
    expect((await second.get(waiting.id)).status.state).toBe("TASK_STATE_COMPLETED");
    expect(told.filter((text) => text === "second")).toHaveLength(1);
    expect(logViolations(await second.log(waiting.id))).toEqual([]);
    expect(running.id).not.toBe(waiting.id);
  });

  test("counts as begun as soon as it has left the line", async () => {
    const gate = createGate();
    const told: string[] = [];
    const stays = createGate();
    const agent = agentOf(
      async function* (turn) {
        told.push(inputText(turn));
        yield status("TASK_STATE_WORKING");
        await (inputText(turn) === "first" ? gate : stays).pass();
      },
      { concurrency: 1 },
    );
    const first = await Harness.start({ agent });
    await first.begin("first");
    await gate.reached;
    const waiting = await first.begin("second");
    gate.open();
    await stays.reached;
    await settle();
    expect((await first.memory.head(waiting.id))?.attempt).toBe(1);
    const second = await successor(first, agent);
    expect((await second.get(waiting.id)).status.state).toBe("TASK_STATE_FAILED");
    expect(told).toEqual(["first", "second"]);
  });
});

test("a cancellation that was under way is carried out by the successor", async () => {
  const deaf = agentOf(
    async function* () {
      yield status("TASK_STATE_WORKING");
      await new Promise(() => {});
    },
    { onCrash: "resume" },
  );
  const first = await Harness.start({ agent: deaf });
  const { id } = await first.begin("hello");
  await settle();
  void first.cancel(id).catch(() => undefined);
  await settle();
  const second = await successor(first, deaf);
  expect((await second.get(id)).status.state).toBe("TASK_STATE_CANCELED");
});

test("a resumed run is given what came with the message", async () => {
  const seen: unknown[] = [];
  const agent = agentOf(
    async function* (turn) {
      seen.push([turn.metadata, turn.acceptedOutputModes, turn.caller.authenticated]);
      yield status("TASK_STATE_WORKING");
      if (turn.attempt === 1) await new Promise(() => {});
    },
    { onCrash: "resume" },
  );
  const first = await Harness.start({ agent });
  const input = {
    message: { messageId: "m", role: "ROLE_USER" as const, parts: [{ text: "hello" }] },
    configuration: { returnImmediately: true, acceptedOutputModes: ["text/plain"] },
    metadata: { priority: 3 },
  };
  const caller = { owner: "alice", authenticated: true };
  await first.engine
    .agent("agent")
    .dispatch({ kind: "send", ...input }, { caller, tenant: "", extensions: [], dialect: "test" });
  await successor(first, agent);
  expect(seen).toEqual([
    [{ priority: 3 }, ["text/plain"], true],
    [{ priority: 3 }, ["text/plain"], true],
  ]);
});
