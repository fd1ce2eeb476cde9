import { createHash } from "node:crypto";
import type { Agent, AgentEvent, MessageDraft } from "../engine/agent.ts";
import type { Caller } from "../model/caller.ts";
import { ProtocolError } from "../model/errors.ts";
import type { StreamEvent, TaskArtifactUpdate } from "../model/event.ts";
import { EXTENSIONS, type Hops } from "../model/extensions.ts";
import type { JsonObject } from "../model/json.ts";
import type { Message } from "../model/message.ts";
import type { CallContext, Dispatcher, SendInput, StreamFrame } from "../model/operation.ts";
import { statusText } from "../model/status-texts.ts";
import { isInterrupted, isTerminal, type TaskStatus } from "../model/task.ts";
import { type AgentDefinition, defineAgent } from "./define.ts";
import type { AgentTurn } from "./turn.ts";

interface ForwardingAgentOptions extends Omit<AgentDefinition, "run"> {
  /** Who answers. Leaving one of its streams early stops nothing. */
  readonly peer: Dispatcher;
}

/** An agent that passes every message on to a peer, and what the peer answers back to the caller. */
export function createForwardingAgent({ peer, ...definition }: ForwardingAgentOptions): Agent {
  return {
    ...defineAgent({ ...definition, run: (turn) => new Forwarding(turn, peer).run() }),
    async dropped({ caller, memory }) {
      const waiting = await memory.get<string>(WAITING);
      if (waiting === undefined) return;
      await peer.dispatch({ kind: "cancel", id: waiting }, callOf(caller, AbortSignal.timeout(CANCEL_MS)));
    },
  };
}

/** In a task's memory: the peer's task that waits for the answer to a question. */
const WAITING = "waiting";
/** How long a peer may take to answer a cancellation. */
const CANCEL_MS = 4_000;

function callOf(caller: Caller, signal: AbortSignal, hops?: Hops): CallContext {
  return { caller, tenant: "", extensions: [], dialect: "forward", signal, ...(hops && { hops }) };
}

/** One message and its answer. */
class Forwarding {
  readonly #turn: AgentTurn;
  readonly #peer: Dispatcher;
  /** The peer's task, as far as it is known. */
  #taskId: string | undefined;
  #continues = false;
  /** The last thing heard is a state in which nothing more is to come. */
  #settled = false;

  constructor(turn: AgentTurn, peer: Dispatcher) {
    this.#turn = turn;
    this.#peer = peer;
  }

  async *run(): AsyncGenerator<AgentEvent, MessageDraft | undefined, undefined> {
    const turn = this.#turn;
    try {
      const call = callOf(turn.caller, turn.signal, turn.hops);
      const frames = await this.#peer.dispatch({ kind: "stream", ...(await this.#input()) }, call);
      const reply = yield* this.#listen(frames[Symbol.asyncIterator]());
      if (reply !== undefined || this.#settled || turn.signal.aborted) return reply;
      yield turn.failed(statusText("answerBrokeOff"));
    } catch (error) {
      if (!ProtocolError.is(error)) throw error;
      if (!turn.signal.aborted) yield turn.failed(error.message);
    }
    return undefined;
  }

  /** Ends with the stream, or earlier when the engine has heard enough. */
  async *#listen(
    frames: AsyncIterator<readonly StreamFrame[]>,
  ): AsyncGenerator<AgentEvent, MessageDraft | undefined, undefined> {
    const { signal } = this.#turn;
    const over = new AbortController();
    const stop = () => void this.#stop(frames, over.signal);
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) stop();
    try {
      for (let step = await frames.next(); step.done !== true; step = await frames.next()) {
        for (const { event } of step.value) {
          if ("message" in event) return toDraft(event.message);
          yield* this.#tell(event);
        }
      }
      return undefined;
    } finally {
      signal.removeEventListener("abort", stop);
      over.abort();
      await frames.return?.();
    }
  }

  async #stop(frames: AsyncIterator<unknown>, over: AbortSignal): Promise<void> {
    if (this.#taskId !== undefined) {
      // Whatever the peer makes of it, the task here ends.
      const call = callOf(this.#turn.caller, AbortSignal.any([over, AbortSignal.timeout(CANCEL_MS)]));
      await this.#peer.dispatch({ kind: "cancel", id: this.#taskId }, call).catch(() => {});
    }
    await frames.return?.();
  }

  async *#tell(event: Exclude<StreamEvent, { message: Message }>): AsyncGenerator<AgentEvent, void, undefined> {
    if ("artifactUpdate" in event) {
      yield* toArtifact(event.artifactUpdate);
    } else if ("statusUpdate" in event) {
      this.#taskId = event.statusUpdate.taskId;
      yield* this.#status(event.statusUpdate.status);
    } else {
      const { artifacts = [], id, status } = event.task;
      const isFirst = this.#taskId === undefined;
      this.#taskId = id;
      for (const artifact of artifacts) yield* toArtifact({ artifact });
      // A question that has just been answered may still show.
      if (!(isFirst && this.#continues && isInterrupted(status.state))) yield* this.#status(status);
    }
  }

  async *#status({ message, state }: TaskStatus): AsyncGenerator<AgentEvent, void, undefined> {
    const { memory, signal } = this.#turn;
    const waits = isInterrupted(state);
    this.#settled = waits || isTerminal(state);
    if (state === "TASK_STATE_SUBMITTED" || (state === "TASK_STATE_CANCELED" && signal.aborted)) return;
    if (waits && this.#taskId !== undefined) await memory.set(WAITING, this.#taskId);
    else if (isTerminal(state) && this.#continues) await memory.delete(WAITING);
    const said = message === undefined || message.parts.length === 0 ? undefined : { message: toDraft(message) };
    yield { status: state, ...said };
  }

  async #input(): Promise<SendInput> {
    const { acceptedOutputModes, caller, history, memory, message, task } = this.#turn;
    const metadata = withoutHops(this.#turn.metadata);
    const isFirst = history.length === 0;
    const waiting = isFirst ? undefined : await memory.get<string>(WAITING);
    this.#continues = waiting !== undefined;
    const { contextId: _own, referenceTaskIds: _unknown, taskId: _here, ...words } = message;
    const said = { ...words, contextId: peerContextId(caller.owner, task.contextId) };
    return {
      ...(waiting === undefined
        ? { message: said, chosenId: isFirst ? task.id : `${task.id}&${message.messageId}` }
        : { message: { ...said, taskId: waiting } }),
      ...(acceptedOutputModes.length === 0 ? undefined : { configuration: { acceptedOutputModes } }),
      ...(metadata === undefined ? undefined : { metadata }),
    };
  }
}

/** Callers may choose the ids of contexts, and the same id of two owners must not be the same conversation to a peer. */
function peerContextId(owner: string, contextId: string): string {
  return createHash("sha256")
    .update(JSON.stringify([owner, contextId]))
    .digest("hex")
    .slice(0, 32);
}

/** Those of the request that came here; the peer gets them as one call further. */
function withoutHops(metadata: JsonObject | undefined): JsonObject | undefined {
  if (metadata?.[EXTENSIONS.hops] === undefined) return metadata;
  const { [EXTENSIONS.hops]: _hops, ...rest } = metadata;
  return Object.keys(rest).length === 0 ? undefined : rest;
}

function* toArtifact(update: Omit<TaskArtifactUpdate, "taskId" | "contextId">): Generator<AgentEvent, void, undefined> {
  const { append, artifact, lastChunk, metadata } = update;
  if (artifact.parts.length === 0) return;
  yield {
    artifact,
    ...(append === undefined ? undefined : { append }),
    ...(lastChunk === undefined ? undefined : { lastChunk }),
    ...(metadata === undefined ? undefined : { metadata }),
  };
}

/** Ids and references are the peer's own. */
function toDraft({ extensions, metadata, parts }: Message): MessageDraft {
  return {
    parts,
    ...(metadata === undefined ? undefined : { metadata }),
    ...(extensions === undefined ? undefined : { extensions }),
  };
}
