import { createHash } from "node:crypto";
import type { Agent, AgentEvent, MessageDraft, Turn } from "../engine/agent.ts";
import type { Caller } from "../model/caller.ts";
import { type ErrorCode, ProtocolError } from "../model/errors.ts";
import type { TaskArtifactUpdate, TaskEvent } from "../model/event.ts";
import { EXTENSIONS } from "../model/extensions.ts";
import type { JsonObject } from "../model/json.ts";
import type { Message } from "../model/message.ts";
import type {
  CallContext,
  Dispatcher,
  FrameStream,
  OperationKind,
  SendInput,
  StreamFrame,
} from "../model/operation.ts";
import { statusText } from "../model/status-texts.ts";
import { isInterrupted, isTerminal, type TaskState, type TaskStatus } from "../model/task.ts";
import { type AgentDefinition, defineAgent } from "./define.ts";

/** A remote agent. Leaving one of its streams early does not cancel anything. */
export interface Peer extends Dispatcher {
  /** Operations of the dialect in use; if absent, messages can be sent and cancelled, but tasks cannot be queried. */
  readonly can?: { readonly operations: Readonly<Record<OperationKind, boolean>> } | undefined;
  /** It recognises a repeated send by its idempotency key. */
  readonly recognizesRepeats?: boolean;
}

interface ForwardingAgentOptions extends Omit<AgentDefinition, "run"> {
  readonly peer: Peer;
}

/**
 * An agent that forwards every message to a peer, and the peer's answer to the caller.
 *
 * After a crash it queries the peer for the task, and continues where the log ends. If the peer cannot be queried, or
 * never confirmed the message and would not recognise it, `onCrash` decides whether it is sent again.
 */
export function createForwardingAgent({ peer, ...definition }: ForwardingAgentOptions): Agent {
  const policy = definition.onCrash ?? "fail";
  return {
    ...defineAgent({ ...definition, run: () => undefined }),
    get onCrash() {
      return canBeQueried(peer) ? "resume" : policy;
    },
    run: (turn) => new Forwarding(turn, peer, policy).run(),
    async dropped({ caller, memory }) {
      const id = (await memory.get<SentMessage>(SENT))?.task ?? (await memory.get<string>(WAITING));
      if (id !== undefined) await cancelAtPeer(peer, id, caller, AbortSignal.timeout(CANCEL_MS));
    },
  };
}

/** Key in a task's memory: the peer's task that waits for input. */
const WAITING = "waiting";
/** Key in a task's memory: the newest message for the peer, written before it is sent. */
const SENT = "sent";

type SentMessage = {
  readonly message: string;
  /** Id of the peer's task, once the peer has sent it. */
  readonly task?: string;
  /** Position in the peer's log at the time of writing, if the events up to it need not be forwarded. */
  readonly number?: number;
};

/** Error codes of a peer whose task exists but can only be read. */
const CANNOT_FOLLOW: ReadonlySet<string> = new Set<ErrorCode>(["UNSUPPORTED_OPERATION", "METHOD_NOT_FOUND"]);
/** Timeout for a cancellation at the peer. */
const CANCEL_MS = 4_000;

function canBeQueried({ can }: Peer): boolean {
  return can !== undefined && (can.operations.subscribe || can.operations.get);
}

function callOf(caller: Caller, signal: AbortSignal): CallContext {
  return { caller, tenant: "", extensions: [], dialect: "forward", signal };
}

async function cancelAtPeer(peer: Peer, id: string, caller: Caller, signal: AbortSignal): Promise<void> {
  await peer.dispatch({ kind: "cancel", id }, callOf(caller, signal));
}

/** Forwards one message and its answer. */
class Forwarding {
  readonly #turn: Turn;
  readonly #peer: Peer;
  readonly #policy: Agent["onCrash"];
  /** Id of the peer's task, once known. */
  #taskId: string | undefined;
  #continues = false;
  /** Position in the peer's log: frames up to this one need not be forwarded. */
  #after: number | undefined;
  /** No more events follow the newest status. */
  #settled = false;
  #cancelling: Promise<void> | undefined;
  #cancelSent = false;

  constructor(turn: Turn, peer: Peer, policy: Agent["onCrash"]) {
    this.#turn = turn;
    this.#peer = peer;
    this.#policy = policy;
  }

  async *run(): AsyncGenerator<AgentEvent, MessageDraft | undefined, undefined> {
    const { signal } = this.#turn;
    const over = new AbortController();
    const stop = () => {
      this.#cancelling = this.#cancel(over.signal);
    };
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) stop();
    try {
      const frames = await this.#open();
      if (frames === undefined) {
        yield failed(statusText("deliveryUnknown"));
        return undefined;
      }
      const reply = yield* this.#read(frames[Symbol.asyncIterator]());
      if (reply !== undefined || this.#settled || signal.aborted) return reply;
      yield failed(statusText("answerBrokeOff"));
    } catch (error) {
      if (signal.aborted) return undefined;
      if (!ProtocolError.is(error)) throw error;
      yield failed(error.message);
    } finally {
      signal.removeEventListener("abort", stop);
      if (this.#settled) over.abort();
      await this.#cancelling;
      // The id may have arrived after the abort.
      if (signal.aborted) await this.#cancel(over.signal);
    }
    return undefined;
  }

  /** Undefined if an earlier process may have sent the message and the peer cannot be queried. */
  async #open(): Promise<FrameStream | undefined> {
    const { attempt, caller, hops, memory, message, signal, task } = this.#turn;
    const peer = this.#peer;
    const call = { ...callOf(caller, signal), hops };
    const earlier = attempt > 1 ? await memory.get<SentMessage>(SENT) : undefined;
    if (earlier?.message === message.messageId) {
      if (earlier.task !== undefined && canBeQueried(peer)) return this.#reattach(earlier.task, earlier.number, call);
      if (peer.recognizesRepeats !== true && this.#policy === "fail") return undefined;
    }
    const input = await this.#input();
    if (canBeQueried(peer)) await memory.set(SENT, { message: message.messageId });
    const idempotencyKey = peer.recognizesRepeats === true ? `${task.id}/${message.messageId}` : undefined;
    return peer.dispatch(
      { kind: "stream", ...input },
      idempotencyKey === undefined ? call : { ...call, idempotencyKey },
    );
  }

  async #reattach(id: string, number: number | undefined, call: CallContext): Promise<FrameStream> {
    const { checkpoint, memory } = this.#turn;
    this.#taskId = id;
    this.#continues = (await memory.get<string>(WAITING)) !== undefined;
    this.#after = typeof checkpoint === "number" ? checkpoint : number;
    try {
      return await this.#peer.dispatch(
        { kind: "subscribe", id, ...(this.#after === undefined ? undefined : { after: this.#after }) },
        call,
      );
    } catch (error) {
      if (!ProtocolError.is(error) || !CANNOT_FOLLOW.has(error.code)) throw error;
      // The task has ended, or can only be read.
      const task = await this.#peer.dispatch({ kind: "get", id }, call);
      return toStream({ task });
    }
  }

  /** Ends with the stream, or earlier if no more events follow. */
  async *#read(
    frames: AsyncIterator<readonly StreamFrame[]>,
  ): AsyncGenerator<AgentEvent, MessageDraft | undefined, undefined> {
    const { signal } = this.#turn;
    const leave = () => void this.#cancelling?.then(() => frames.return?.());
    signal.addEventListener("abort", leave, { once: true });
    if (signal.aborted) leave();
    try {
      for (let step = await frames.next(); step.done !== true; step = await frames.next()) {
        for (const { event, number } of step.value) {
          if ("message" in event) return toDraft(event.message);
          if (number !== undefined && this.#after !== undefined && number <= this.#after) continue;
          const events = this.#translate(event);
          await this.#remember(event, events.length === 0 ? number : undefined);
          const last = events.pop();
          yield* events;
          // Stored together with the last event of the frame, so that a resumed run continues with the next frame.
          if (last !== undefined) yield number === undefined ? last : { ...last, checkpoint: number };
          if (this.#settled && stateOf(event) === "TASK_STATE_INPUT_REQUIRED") return undefined;
        }
      }
      return undefined;
    } finally {
      signal.removeEventListener("abort", leave);
      await frames.return?.();
    }
  }

  /** The task ends here whether or not the peer cancels it. */
  async #cancel(over: AbortSignal): Promise<void> {
    const { caller, signal } = this.#turn;
    // A run that was only lost here is continued by another process, or by this one later.
    const isLost = ProtocolError.is(signal.reason) && signal.reason.code === "UNAVAILABLE";
    if (this.#taskId === undefined || isLost || this.#cancelSent || over.aborted) return;
    this.#cancelSent = true;
    const limit = AbortSignal.any([over, AbortSignal.timeout(CANCEL_MS)]);
    await cancelAtPeer(this.#peer, this.#taskId, caller, limit).catch(() => {});
  }

  #translate(event: TaskEvent): AgentEvent[] {
    if ("artifactUpdate" in event) {
      const { taskId: _task, contextId: _context, ...update } = event.artifactUpdate;
      return toArtifact(update);
    }
    if ("statusUpdate" in event) return this.#toStatus(event.statusUpdate.status);
    const { artifacts = [], status } = event.task;
    // The snapshot may still show the question that was just answered, and what was forwarded before it.
    if (this.#taskId === undefined && this.#continues && isInterrupted(status.state)) return [];
    return [...artifacts.flatMap((artifact) => toArtifact({ artifact })), ...this.#toStatus(status)];
  }

  #toStatus({ message, state }: TaskStatus): AgentEvent[] {
    this.#settled = isInterrupted(state) || isTerminal(state);
    if (state === "TASK_STATE_SUBMITTED") return [];
    if (state === "TASK_STATE_CANCELED" && this.#turn.signal.aborted) return [];
    const hasMessage = message !== undefined && message.parts.length > 0;
    return [{ status: state, ...(hasMessage ? { message: toDraft(message) } : undefined) }];
  }

  /** Called before anything of the frame is forwarded. `number` is set if nothing of it is. */
  async #remember(event: TaskEvent, number: number | undefined): Promise<void> {
    const { memory, message } = this.#turn;
    const id = taskIdOf(event);
    if (this.#taskId === undefined && canBeQueried(this.#peer)) {
      const sent: SentMessage = {
        message: message.messageId,
        task: id,
        ...(number === undefined ? undefined : { number }),
      };
      await memory.set(SENT, sent);
    }
    this.#taskId = id;
    const state = stateOf(event);
    if (state === undefined || !this.#settled) return;
    if (isInterrupted(state)) await memory.set(WAITING, id);
    else if (this.#continues) await memory.delete(WAITING);
  }

  async #input(): Promise<SendInput> {
    const { acceptedOutputModes, caller, history, memory, message, task } = this.#turn;
    const metadata = withoutHops(this.#turn.metadata);
    const isFirst = history.length === 0;
    const waiting = isFirst ? undefined : await memory.get<string>(WAITING);
    this.#continues = waiting !== undefined;
    const { contextId: _own, referenceTaskIds: _unknown, taskId: _here, ...fields } = message;
    const outgoing = { ...fields, contextId: peerContextId(caller.owner, task.contextId) };
    return {
      ...(waiting === undefined
        ? { message: outgoing, chosenId: isFirst ? task.id : `${task.id}&${message.messageId}` }
        : { message: { ...outgoing, taskId: waiting } }),
      ...(acceptedOutputModes.length === 0 ? undefined : { configuration: { acceptedOutputModes } }),
      ...(metadata === undefined ? undefined : { metadata }),
    };
  }
}

function taskIdOf(event: TaskEvent): string {
  if ("task" in event) return event.task.id;
  return "statusUpdate" in event ? event.statusUpdate.taskId : event.artifactUpdate.taskId;
}

function stateOf(event: TaskEvent): TaskState | undefined {
  if ("task" in event) return event.task.status.state;
  return "statusUpdate" in event ? event.statusUpdate.status.state : undefined;
}

async function* toStream(event: TaskEvent): AsyncGenerator<readonly StreamFrame[], undefined, undefined> {
  yield [{ event, json: JSON.stringify(event) }];
}

/** Callers may choose context ids, and the same id of two owners must not be the same conversation at the peer. */
function peerContextId(owner: string, contextId: string): string {
  return createHash("sha256")
    .update(JSON.stringify([owner, contextId]))
    .digest("hex")
    .slice(0, 32);
}

/** Removes the hops of the incoming request; the peer receives them incremented. */
function withoutHops(metadata: JsonObject | undefined): JsonObject | undefined {
  if (metadata?.[EXTENSIONS.hops] === undefined) return metadata;
  const { [EXTENSIONS.hops]: _hops, ...rest } = metadata;
  return Object.keys(rest).length === 0 ? undefined : rest;
}

function toArtifact(update: Omit<TaskArtifactUpdate, "taskId" | "contextId">): AgentEvent[] {
  return update.artifact.parts.length === 0 ? [] : [update];
}

function failed(text: string): AgentEvent {
  return { status: "TASK_STATE_FAILED", message: { parts: [{ text }] } };
}

/** Without ids and references, which belong to the peer. */
function toDraft({ extensions, metadata, parts }: Message): MessageDraft {
  return {
    parts,
    ...(metadata === undefined ? undefined : { metadata }),
    ...(extensions === undefined ? undefined : { extensions }),
  };
}
