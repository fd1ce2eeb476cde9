/** A process that forwards is killed in the middle of an answer; the next one on the same store continues with it. */

import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { connectCaller } from "../client/connect.ts";
import type { Agent } from "../engine/agent.ts";
import { aborted, createGate, type Gate } from "../engine/testing/agents.ts";
import { settle } from "../engine/testing/fake-clock.ts";
import { framesOf, Harness } from "../engine/testing/harness.ts";
import { logViolations } from "../engine/testing/log-invariants.ts";
import { ProtocolError } from "../model/errors.ts";
import type { LogEntry } from "../model/event.ts";
import { textOf } from "../model/message.ts";
import type { FrameStream, Operation, StreamFrame } from "../model/operation.ts";
import { type DragomanServer, serve } from "../server/serve.ts";
import type { TaskStore } from "../store/contract.ts";
import { defineAgent } from "./define.ts";
import { createForwardingAgent, type Peer } from "./forward.ts";

const LEASE = 15_000;
const CHUNKS = ["one ", "two ", "three ", "four ", "five"];

/** Messages that the upstream agent was given, and what holds its chunks back. */
let received: string[] = [];
let gates: Gate[] = [];
let cancelled: Gate;
let upstream: DragomanServer;

const slow = defineAgent({
  name: "Slow",
  description: "Writes when the test lets it.",
  async *run(turn) {
    received.push(turn.text);
    const stopped = aborted(turn).then(() => void cancelled.pass());
    for (const [index, text] of CHUNKS.entries()) {
      await Promise.race([gates[index]?.pass(), stopped]);
      if (turn.signal.aborted) return;
      yield turn.artifact({ artifactId: "words", text, append: index > 0 });
    }
    await gates.at(-1)?.pass();
  },
});

beforeAll(async () => {
  upstream = await serve({ port: 0, store: "memory:", agents: { slow } });
});
afterAll(() => upstream.close());
beforeEach(() => {
  received = [];
  gates = [...CHUNKS, "end"].map(createGate);
  cancelled = createGate();
});

interface Process {
  readonly engine: Harness;
  /** The id of the agent's task is in the store. */
  readonly named: Promise<void>;
  /** No drain and no last word: its connections are gone, and nothing it does reaches the store. */
  kill(): void;
}

async function start(after?: Process, more: Partial<Peer> & { watch?: (operation: Operation) => void } = {}) {
  const { watch, ...overrides } = more;
  const connections = new AbortController();
  const caller = await connectCaller(upstream.url, { binding: "JSONRPC", signal: connections.signal });
  const peer: Peer = {
    can: caller.can,
    recognizesRepeats: caller.recognizesRepeats,
    dispatch(operation, call) {
      watch?.(operation);
      return caller.dispatch(operation, call);
    },
    ...overrides,
  };
  const agent: Agent = createForwardingAgent({ name: "Gateway", description: "Passes on.", peer });
  const named = createGate();
  const wrap = (store: TaskStore): TaskStore => ({
    ...store,
    async write(writes) {
      const results = await store.write(writes);
      if (writes.some((write) => write.kind === "remember" && write.value?.includes('"task":'))) void named.pass();
      return results;
    },
    close: async () => {},
  });
  const engine = await Harness.start({ agent, wrap, ...(after && { after: after.engine }) });
  return {
    engine,
    named: named.reached,
    kill() {
      engine.crash();
      connections.abort();
    },
  };
}

async function startNext(first: Process, more: Parameters<typeof start>[1] = {}) {
  await settle();
  first.kill();
  await first.engine.clock.advance(LEASE + 1);
  return start(first, more);
}

/** Reads until so many chunks have come. */
async function readChunks(stream: FrameStream, count: number): Promise<void> {
  let seen = 0;
  if (count === 0) return;
  for await (const batch of stream) {
    seen += batch.filter(({ event }) => "artifactUpdate" in event).length;
    if (seen >= count) return;
  }
}

function chunksOf(entries: readonly Pick<LogEntry | StreamFrame, "event">[]): string[] {
  return entries.flatMap(({ event }) => ("artifactUpdate" in event ? textOf(event.artifactUpdate.artifact.parts) : []));
}

const stateAtEnd = (log: readonly LogEntry[]) => log.at(-1)?.state;

describe("a killed process", () => {
  test.each([0, 1, 3, 5])(
    "that had shown %i chunks is continued: one message upstream, every chunk once",
    async (shown) => {
      const first = await start();
      const { id } = await first.engine.begin("hello");
      for (const gate of gates.slice(0, shown)) gate.open();
      await readChunks(await first.engine.subscribe(id, 1, { replay: true }), shown);
      await gates[shown]?.reached;
      await first.named;
      const asked: Operation[] = [];
      first.kill();
      // Written while no one was listening.
      gates[shown]?.open();
      await gates[Math.min(shown + 1, CHUNKS.length)]?.reached;
      const second = await startNext(first, { watch: (operation) => void asked.push(operation) });
      for (const gate of gates) gate.open();
      await framesOf(await second.engine.subscribe(id, 1, { replay: true }));
      const log = await second.engine.log(id);
      expect(chunksOf(log).join("")).toBe(CHUNKS.join(""));
      if (shown > 0) expect(chunksOf(log)).toEqual(CHUNKS);
      expect(received).toEqual(["hello"]);
      expect(asked.map(({ kind }) => kind)).toEqual(["subscribe"]);
      expect(stateAtEnd(log)).toBe("TASK_STATE_COMPLETED");
      expect(logViolations(log, { ended: true })).toEqual([]);
      expect((await second.engine.get(id)).artifacts).toMatchObject([{ artifactId: "words" }]);
    },
  );

  test("that had no response from the agent sends again where the agent recognises repeats", async () => {
    const sent = createGate();
    const first = await start(undefined, {
      async dispatch(operation, call) {
        const caller = await connectCaller(upstream.url);
        await caller.dispatch({ ...operation, kind: "stream" } as Extract<Operation, { kind: "stream" }>, call);
        await sent.pass();
        throw new Error("It is killed before this.");
      },
    });
    const { id } = await first.engine.begin("hello");
    await sent.reached;
    const second = await startNext(first);
    for (const gate of gates) gate.open();
    await framesOf(await second.engine.subscribe(id, 1, { replay: true }));
    const log = await second.engine.log(id);
    expect(received).toEqual(["hello"]);
    expect(chunksOf(log)).toEqual(CHUNKS);
  });

  test("that had no response from an agent which does not recognise repeats reports that", async () => {
    const sent = createGate();
    const unsure = {
      recognizesRepeats: false,
      dispatch: async () => {
        await sent.pass();
        throw new Error("It is killed before this.");
      },
    };
    const first = await start(undefined, unsure);
    const { id } = await first.engine.begin("hello");
    await sent.reached;
    const second = await startNext(first, { recognizesRepeats: false });
    await framesOf(await second.engine.subscribe(id, 1, { replay: true }));
    expect((await second.engine.get(id)).status).toMatchObject({
      state: "TASK_STATE_FAILED",
      message: { parts: [{ text: expect.stringContaining("whether the agent received the message is not known") }] },
    });
    expect(received).toEqual([]);
  });

  test("of an agent that cannot be asked about its tasks reports that", async () => {
    const first = await start(undefined, { can: undefined });
    const { id } = await first.engine.begin("hello");
    await gates[0]?.reached;
    const second = await startNext(first, { can: undefined });
    await framesOf(await second.engine.subscribe(id, 1, { replay: true }));
    expect((await second.engine.get(id)).status).toMatchObject({
      state: "TASK_STATE_FAILED",
      message: {
        parts: [{ text: expect.stringMatching(/stopped before .* remote agent cannot be asked about the task/) }],
      },
    });
    expect(received).toEqual(["hello"]);
  });

  test("is continued by reading the task where it cannot be followed any more", async () => {
    const first = await start();
    const { id } = await first.engine.begin("hello");
    gates[0]?.open();
    await readChunks(await first.engine.subscribe(id, 1, { replay: true }), 1);
    first.kill();
    for (const gate of gates) gate.open();
    const caller = await connectCaller(upstream.url);
    const second = await startNext(first, {
      async dispatch(operation, call) {
        if (operation.kind === "subscribe") throw new ProtocolError("UNSUPPORTED_OPERATION", "The task has ended.");
        return caller.dispatch(operation, call);
      },
    });
    await framesOf(await second.engine.subscribe(id, 1, { replay: true }));
    const task = await second.engine.get(id);
    expect(textOf(task.artifacts?.[0]?.parts ?? [])).toBe(CHUNKS.join(""));
    expect(received).toEqual(["hello"]);
  });
});

describe("cancellation", () => {
  test("reaches the agent from the next process", async () => {
    const first = await start();
    const { id } = await first.engine.begin("hello");
    await first.named;
    const second = await startNext(first);
    const task = await second.engine.cancel(id);
    expect(task.status.state).toBe("TASK_STATE_CANCELED");
    await cancelled.reached;
  });

  test("that the killed process was asked for reaches the agent", async () => {
    const first = await start();
    const { id } = await first.engine.begin("hello");
    await first.named;
    first.kill();
    await first.engine.memory.write([{ kind: "request-cancel", id }]);
    const second = await startNext(first);
    await cancelled.reached;
    await framesOf(await second.engine.subscribe(id, 1, { replay: true }));
    expect(stateAtEnd(await second.engine.log(id))).toBe("TASK_STATE_CANCELED");
    expect(received).toEqual(["hello"]);
  });

  test("does not reach the agent when a process only shuts down", async () => {
    const first = await start();
    const { id } = await first.engine.begin("hello");
    gates[0]?.open();
    await readChunks(await first.engine.subscribe(id, 1, { replay: true }), 1);
    await gates[1]?.reached;
    const asked: string[] = [];
    const next = await start(first, { watch: ({ kind }) => void asked.push(kind) });
    await first.engine.engine.close();
    await first.engine.clock.advance(2 * LEASE);
    for (const gate of gates) gate.open();
    await framesOf(await next.engine.subscribe(id, 1, { replay: true }));
    expect(chunksOf(await next.engine.log(id))).toEqual(CHUNKS);
    expect(asked).toEqual(["subscribe"]);
  });
});
