import { describe, expect, it } from "vitest";
import type { AgentEvent, AgentRun } from "../engine/agent.ts";
import { ProtocolError } from "../model/errors.ts";
import type { StreamEvent } from "../model/event.ts";
import type { JsonValue } from "../model/json.ts";
import type { CallContext, Operation, OperationKind, OperationOf, OutcomeOf, StreamFrame } from "../model/operation.ts";
import type { TaskState } from "../model/task.ts";
import { createForwardingAgent, type Peer } from "./forward.ts";
import { runToEnd, statesOf, turnOf } from "./testing/turns.ts";

const PLACE = { taskId: "theirs", contextId: "c" };

const task = (state: TaskState): StreamEvent => ({ task: { id: "theirs", contextId: "c", status: { state } } });
const status = (state: TaskState, text?: string): StreamEvent => {
  const message = { messageId: "m", role: "ROLE_AGENT", parts: [{ text: text ?? "" }] } as const;
  return { statusUpdate: { ...PLACE, status: text === undefined ? { state } : { state, message } } };
};
const chunk = (text: string, append = true): StreamEvent => ({
  artifactUpdate: { ...PLACE, artifact: { artifactId: "a", parts: [{ text }] }, append },
});

function framesOf(events: readonly StreamEvent[]): StreamFrame[] {
  return events.map((event) => ({ event, json: JSON.stringify(event) }));
}

function abilities(...kinds: readonly OperationKind[]): NonNullable<Peer["can"]> {
  const operations = Object.fromEntries(kinds.map((kind) => [kind, true])) as Record<OperationKind, boolean>;
  return { operations };
}

/** Answers with the next of the given lists of events; an error instead of one is thrown. */
class ScriptedPeer implements Peer {
  readonly can = abilities("send", "stream", "cancel");
  readonly sent: OperationOf<"stream">[] = [];
  readonly calls: CallContext[] = [];
  readonly cancelled: string[] = [];
  readonly #script: (readonly (StreamEvent | ProtocolError)[])[];

  constructor(...script: (readonly (StreamEvent | ProtocolError)[])[]) {
    this.#script = script;
  }

  async dispatch<O extends Operation>(operation: O, call: CallContext): Promise<OutcomeOf<O>>;
  async dispatch(operation: Operation, call: CallContext) {
    this.calls.push(call);
    if (operation.kind === "cancel") this.cancelled.push(operation.id);
    if (operation.kind !== "stream") return undefined;
    this.sent.push(operation);
    const events = this.#script.shift() ?? [];
    return (async function* () {
      for (const event of events) {
        if (ProtocolError.is(event)) throw event;
        yield framesOf([event]);
      }
    })();
  }
}

/** A peer that does what the test says, by the kind of operation. */
function peerOf(does: {
  readonly stream: (call: CallContext) => Promise<AsyncIterable<readonly StreamFrame[]>>;
  readonly cancel?: (id: string) => Promise<never>;
}): Peer {
  return {
    can: abilities("stream", "cancel"),
    dispatch: <O extends Operation>(operation: O, call: CallContext) => {
      const outcome = operation.kind === "cancel" ? does.cancel?.(operation.id) : does.stream(call);
      return outcome as Promise<OutcomeOf<O>>;
    },
  };
}

const agentOf = (peer: Peer) => createForwardingAgent({ name: "Peer", description: "Elsewhere.", peer });

describe("a message", () => {
  it("is passed on, and what comes back is returned", async () => {
    const peer = new ScriptedPeer([
      task("TASK_STATE_SUBMITTED"),
      status("TASK_STATE_WORKING", "Thinking"),
      chunk("Hel", false),
      chunk("lo"),
      status("TASK_STATE_COMPLETED", "Done"),
    ]);
    const { answer, events } = await runToEnd(agentOf(peer), { text: "Hi" });
    expect(answer).toBeUndefined();
    expect(events).toEqual([
      { status: "TASK_STATE_WORKING", message: { parts: [{ text: "Thinking" }] } },
      { artifact: { artifactId: "a", parts: [{ text: "Hel" }] }, append: false },
      { artifact: { artifactId: "a", parts: [{ text: "lo" }] }, append: true },
      { status: "TASK_STATE_COMPLETED", message: { parts: [{ text: "Done" }] } },
    ]);
    expect(peer.sent).toMatchObject([
      { chosenId: "task-1", message: { messageId: "message-1", role: "ROLE_USER", parts: [{ text: "Hi" }] } },
    ]);
    expect(peer.sent[0]?.message).not.toHaveProperty("taskId");
  });

  it("is passed on with its hops, whichever agents it came through", async () => {
    const hops = { hops: 2, ancestors: ["a", "b", "self"] };
    const came = { hops: 2, ancestors: ["a", "b"] };
    const turn = { ...turnOf(), metadata: { kept: 1, "urn:dragoman:ext:hops:v1": came }, hops };
    const peer = new ScriptedPeer([status("TASK_STATE_COMPLETED")]);
    await agentOf(peer).run(turn).next();
    expect(peer.calls[0]).toMatchObject({ caller: turn.caller, hops });
    expect(peer.sent[0]?.metadata).toEqual({ kept: 1 });
  });

  it.each([
    ["a short task that has ended already", [task("TASK_STATE_SUBMITTED"), status("TASK_STATE_COMPLETED")], []],
    ["a task that continues", [task("TASK_STATE_WORKING"), chunk("Hel")], ["theirs"]],
    ["a long task", [chunk("x".repeat(20_000), false), status("TASK_STATE_COMPLETED")], ["theirs"]],
    ["a task that asks", [status("TASK_STATE_INPUT_REQUIRED", "Which?")], ["theirs"]],
  ])(
    "whose first answer is %s is remembered by the id of that task before anything is shown",
    async (_, events, ids) => {
      const remembered: unknown[] = [];
      const peer = peerOf({
        stream: async () =>
          (async function* () {
            yield framesOf(events);
          })(),
      });
      const { memory } = turnOf();
      const set = async (key: string, value: JsonValue) => {
        const { task = undefined } = value as { task?: string };
        if (key === "sent" && task !== undefined) remembered.push(task);
      };
      const agent = agentOf({ ...peer, can: abilities("stream", "cancel", "get") });
      const shown = await agent.run({ ...turnOf(), memory: { ...memory, set } }).next();
      expect(shown.done).toBe(false);
      expect(remembered).toEqual(ids);
    },
  );

  it("is in a conversation of its owner's own", async () => {
    const contexts = new Set<string | undefined>();
    for (const owner of ["alice", "bob", "alice"]) {
      const peer = new ScriptedPeer([status("TASK_STATE_COMPLETED")]);
      await agentOf(peer)
        .run({ ...turnOf(), caller: { owner, authenticated: true } })
        .next();
      contexts.add(peer.sent[0]?.message.contextId);
    }
    expect(contexts.size).toBe(2);
    expect(contexts).not.toContain("context-1");
  });

  it("may be answered by a message alone", async () => {
    const words = { messageId: "m", role: "ROLE_AGENT", parts: [{ text: "Hello" }], metadata: { a: 1 } } as const;
    const { answer, events } = await runToEnd(agentOf(new ScriptedPeer([{ message: words }])));
    expect(events).toEqual([]);
    expect(answer).toEqual({ parts: [{ text: "Hello" }], metadata: { a: 1 } });
  });

  it("fails with the peer's words, wherever they come", async () => {
    const refused = peerOf({
      stream: () => Promise.reject(new ProtocolError("UNAVAILABLE", "The agent is not connected.")),
    });
    const broken = new ScriptedPeer([chunk("half"), new ProtocolError("INTERNAL_ERROR", "Out of paper.")]);
    const silent = new ScriptedPeer([chunk("half")]);
    for (const [peer, why] of [
      [refused, "The agent is not connected."],
      [broken, "Out of paper."],
      [silent, "The agent's answer broke off."],
    ] as const) {
      const { events } = await runToEnd(agentOf(peer));
      expect(events.at(-1)).toEqual({ status: "TASK_STATE_FAILED", message: { parts: [{ text: why }] } });
    }
  });

  it("is canceled where the peer canceled it", async () => {
    const { events } = await runToEnd(
      agentOf(new ScriptedPeer([chunk("half"), status("TASK_STATE_CANCELED", "Enough.")])),
    );
    expect(events.at(-1)).toEqual({ status: "TASK_STATE_CANCELED", message: { parts: [{ text: "Enough." }] } });
  });

  it("throws what no peer may see", async () => {
    const odd = peerOf({ stream: () => Promise.reject(new Error("secret")) });
    await expect(runToEnd(agentOf(odd))).rejects.toThrow("secret");
  });
});

describe("a question", () => {
  it("is shown, and its answer goes to the peer's task; what follows that is a new one", async () => {
    const peer = new ScriptedPeer(
      [task("TASK_STATE_SUBMITTED"), status("TASK_STATE_INPUT_REQUIRED", "When?")],
      [task("TASK_STATE_INPUT_REQUIRED"), status("TASK_STATE_COMPLETED")],
      [status("TASK_STATE_COMPLETED")],
    );
    const agent = agentOf(peer);
    const first = turnOf();
    const asked = await collect(agent.run(first));
    expect(statesOf(asked)).toEqual(["INPUT_REQUIRED"]);
    const later = (messageId: string) => {
      const message = { ...first.message, messageId };
      return { ...first, message, history: [first.message] };
    };
    expect(statesOf(await collect(agent.run(later("message-2"))))).toEqual(["COMPLETED"]);
    await collect(agent.run(later("message-3")));
    expect(peer.sent.map(({ chosenId, message }) => [chosenId, message.taskId])).toEqual([
      ["task-1", undefined],
      [undefined, "theirs"],
      ["task-1&message-3", undefined],
    ]);
  });
});

describe("cancellation", () => {
  it("of a task that waits for its caller travels, too", async () => {
    const peer = new ScriptedPeer([status("TASK_STATE_INPUT_REQUIRED", "When?")]);
    const agent = agentOf(peer);
    const turn = turnOf();
    await collect(agent.run(turn));
    await agent.dropped?.({ ...turn.task, caller: turn.caller, memory: turn.memory });
    await agent.dropped?.({ ...turn.task, caller: turn.caller, memory: turnOf().memory });
    expect(peer.cancelled).toEqual(["theirs"]);
  });

  it("travels, and ends the answer", async () => {
    const abort = new AbortController();
    const cancelled: string[] = [];
    let left = false;
    const peer = peerOf({
      async stream() {
        let release = (): void => {};
        const never = new Promise<void>((resolve) => {
          release = resolve;
        });
        let begun = false;
        const iterator: AsyncIterator<readonly StreamFrame[], undefined> = {
          async next() {
            if (!begun) {
              begun = true;
              return { done: false, value: framesOf([task("TASK_STATE_WORKING")]) };
            }
            await never;
            return { done: true, value: undefined };
          },
          async return() {
            left = true;
            release();
            return { done: true, value: undefined };
          },
        };
        return { [Symbol.asyncIterator]: () => iterator };
      },
      async cancel(taskId) {
        cancelled.push(taskId);
        throw new ProtocolError("TASK_NOT_CANCELABLE", "Too late.");
      },
    });
    const run = agentOf(peer).run(turnOf({ signal: abort.signal }));
    expect((await run.next()).value).toEqual([{ status: "TASK_STATE_WORKING" }]);
    const end = run.next();
    abort.abort();
    expect(await end).toMatchObject({ value: { status: "TASK_STATE_CANCELED" } });
    expect(JSON.stringify(await end)).toContain("The remote agent did not cancel its task");
    expect(await run.next()).toEqual({ done: true, value: undefined });
    expect([cancelled, left]).toEqual([["theirs"], true]);
  });

  it("before the agent has named its task says that nothing is known of it", async () => {
    const abort = new AbortController();
    const peer = peerOf({
      stream: ({ signal }) =>
        new Promise((_resolve, reject) => {
          signal?.addEventListener("abort", () => reject(new ProtocolError("UNAVAILABLE", "Given up.")));
          abort.abort();
        }),
      cancel: async () => {
        throw new Error("There is nothing to cancel.");
      },
    });
    const end = agentOf(peer)
      .run(turnOf({ signal: abort.signal }))
      .next();
    expect(await end).toMatchObject({ value: { status: "TASK_STATE_CANCELED" } });
    expect(JSON.stringify(await end)).toContain("has not sent the id of a task");
  });
});

async function collect(run: AgentRun): Promise<AgentEvent[]> {
  const events: AgentEvent[] = [];
  for (let step = await run.next(); step.done !== true; step = await run.next()) events.push(...[step.value].flat());
  return events;
}
