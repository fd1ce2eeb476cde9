import { hash } from "node:crypto";
import type { Turn, TurnMemory } from "../engine/agent.ts";
import type { Signal } from "../model/abort.ts";
import type { Caller } from "../model/caller.ts";
import { ProtocolError } from "../model/errors.ts";
import { type StreamEvent, stateOf, type TaskEvent, taskIdOf } from "../model/event.ts";
import type { Message, Part } from "../model/message.ts";
import type {
  CallContext,
  Dispatcher,
  FrameStream,
  OperationKind,
  SendInput,
  StreamFrame,
} from "../model/operation.ts";
import { statusText } from "../model/status-texts.ts";
import { isInterrupted, isTerminal, type Task, type TaskState } from "../model/task.ts";
import { hasStoredFile, inlineStoredFiles } from "./stored-files.ts";

/** Another agent. Leaving one of its streams early does not cancel anything. */
export interface Peer extends Dispatcher {
  /** It is in this process; otherwise it cannot open files of this machine. */
  readonly isLocal?: boolean;
  /** Operations of the dialect in use; if absent, messages can be sent and cancelled, but tasks cannot be queried. */
  readonly can?:
    | { readonly operations: Readonly<Record<OperationKind, boolean>>; readonly chosenIds?: boolean }
    | undefined;
  /** It recognises a repeated send by its idempotency key. */
  readonly recognizesRepeats?: boolean;
}

export function canBeQueried({ can }: Peer): boolean {
  return can !== undefined && (can.operations.subscribe || can.operations.get);
}

/** Key in a turn's memory: the peer's task that waits for input. */
const WAITING = "waiting";
/** Key in a turn's memory: the newest message for the peer. */
const SENT = "sent";

/** The newest message for a peer, as an earlier process or turn left it. */
export type SentMessage = {
  /** Id of the message. */
  readonly message: string;
  /** Id of the peer's task, once the peer has sent it. */
  readonly task?: string;
  /** Position in the peer's log at the time of writing, if the events up to it need not be read again. */
  readonly number?: number;
};

/** Timeout for a cancellation at the peer. */
const CANCEL_MS = 4_000;

interface ChildTaskOptions {
  readonly turn: Pick<Turn, "caller" | "hops"> & { readonly memory: Omit<TurnMemory, "once"> };
  /** Precedes the keys in the turn's memory, so that a turn may have several children. Default: nothing. */
  readonly prefix?: string;
  /** Stored with the peer's task if the peer is in this process. */
  readonly dialect: string;
  /** The id that the peer gives the task because it is chosen here: then the id need not be remembered. */
  readonly givenId?: string | undefined;
  /** The turn ends with the peer's task, and its last event is stored together with those before it. */
  readonly endsTurn?: boolean;
}

type Translate<Item> = (event: TaskEvent, isStale: boolean, number: number | undefined) => readonly Item[];

/** A frame, as `translate` understood it. */
interface TranslatedFrame<Item> {
  readonly event: TaskEvent;
  readonly items: readonly Item[];
}

interface MemoryChange {
  readonly id: string;
  /** The id was not known before. */
  readonly isNew: boolean;
  /** The task began to wait for input, or no longer does. */
  readonly changesWaiting: boolean;
}

/** Frames that arrived together. */
export type ChildFrames<Item> = AsyncGenerator<readonly TranslatedFrame<Item>[], Message | undefined, undefined>;

/**
 * A task at a peer on behalf of a turn. What is needed to find it again after a crash is in the turn's memory: the
 * message before it is sent, unless the peer would recognise a repeat, and the id of the task before anything else is
 * made of the answer.
 */
export class ChildTask {
  readonly #peer: Peer;
  readonly #options: ChildTaskOptions;
  #message = "";
  #id: string | undefined;
  #state: TaskState | undefined;
  /** The message answers a question of the task. */
  #continues = false;
  /** Position in the peer's log: frames up to this one were read before. */
  #after: number | undefined;
  #frames: AsyncIterator<readonly StreamFrame[]> | undefined;
  #left = false;
  #cancelSent = false;

  constructor(peer: Peer, options: ChildTaskOptions) {
    this.#peer = peer;
    this.#options = options;
  }

  /** Id of the peer's task, once known. */
  get id(): string | undefined {
    return this.#id;
  }

  /** The newest state that the peer has sent. */
  get state(): TaskState | undefined {
    return this.#state;
  }

  /** Nothing follows the newest state by itself. */
  get isSettled(): boolean {
    return this.#state !== undefined && (isInterrupted(this.#state) || isTerminal(this.#state));
  }

  sent(): Promise<SentMessage | undefined> {
    return this.#options.turn.memory.get<SentMessage>(this.#key(SENT));
  }

  /** Id of the peer's task if it waits for input. */
  waiting(): Promise<string | undefined> {
    return this.#options.turn.memory.get<string>(this.#key(WAITING));
  }

  /** Sends a message: the first, or the answer to a question if it names a task. */
  async send(input: SendInput, signal: Signal, idempotencyKey: string): Promise<FrameStream> {
    const { message } = input;
    this.#continues = message.taskId !== undefined;
    this.#message = message.messageId;
    const recognized = this.#peer.recognizesRepeats === true;
    if (canBeQueried(this.#peer) && !recognized) {
      const { messageId, taskId } = message;
      // An answer may still be lost: then the task asks again.
      await this.#remember({ message: messageId, task: taskId });
    }
    const call = this.#callOf(signal);
    const isReadable = this.#peer.isLocal === true || !hasStoredFile(message.parts);
    const sent = isReadable ? message : { ...message, parts: await inlineStoredFiles(message.parts) };
    const operation = { kind: "stream", ...input, message: sent } as const;
    return this.#peer.dispatch(operation, recognized ? { ...call, idempotencyKey } : call);
  }

  /**
   * Follows a task that exists: what comes after a number, or the task as it is and what comes next. `known`: what an
   * earlier run has stored of it.
   */
  async attach(
    id: string,
    after: number | undefined,
    signal: Signal,
    known?: Pick<Task, "artifacts">,
  ): Promise<FrameStream> {
    this.#id = id;
    this.#after = after;
    this.#continues = (await this.waiting()) !== undefined;
    const call = this.#callOf(signal);
    try {
      return await this.#peer.dispatch({ kind: "subscribe", id, after, known }, call);
    } catch (error) {
      if (!ProtocolError.is(error) || this.#peer.can?.operations.get !== true) throw error;
      // Whatever the reason: the task has ended, can only be read, or is lost.
      const task = await this.#peer.dispatch({ kind: "get", id }, call);
      return toStream({ task });
    }
  }

  /**
   * Reads until the peer asks for input or the stream ends. Each frame is remembered before it is yielded, and after all
   * before it were. Returns the message of a peer that answered without a task. `isStale`: the frame shows the question
   * that was just answered.
   */
  async *read<Item>(stream: FrameStream, translate: Translate<Item>): ChildFrames<Item> {
    const frames = stream[Symbol.asyncIterator]();
    this.#frames = frames;
    try {
      for (let step = await frames.next(); step.done !== true; step = await frames.next()) {
        const endsAtOnce = this.#options.endsTurn === true && this.#id === undefined && isShortToEnd(step.value);
        let read: TranslatedFrame<Item>[] = [];
        for (const { event, number } of step.value) {
          if ("message" in event) {
            if (read.length > 0) yield read;
            return event.message;
          }
          if (number !== undefined && this.#after !== undefined && number <= this.#after) continue;
          if (this.#id !== undefined && this.#id !== taskIdOf(event)) {
            if (read.length > 0) yield read;
            throw new ProtocolError("INVALID_AGENT_RESPONSE", statusText("taskIdChanged"));
          }
          const state = stateOf(event);
          const isStale = "task" in event && this.#id === undefined && this.#continues && isWaiting(state);
          if (state !== undefined && !isStale) this.#state = state;
          const items = translate(event, isStale, number);
          const change = this.#noteTask(event, endsAtOnce);
          if (change !== undefined) {
            if (read.length > 0) yield read;
            read = [];
            await this.#writeMemory(change, items.length === 0 ? number : undefined);
          }
          read.push({ event, items });
          if (state === "TASK_STATE_INPUT_REQUIRED" && !isStale) {
            yield read;
            return undefined;
          }
        }
        if (read.length > 0) yield read;
        if (this.#left) return undefined;
      }
      return undefined;
    } finally {
      this.#frames = undefined;
      await frames.return?.();
    }
  }

  /** The task as it is at the peer; undefined if its id is not known, or the peer cannot be queried. */
  async get(): Promise<Task | undefined> {
    if (this.#id === undefined || !canBeQueried(this.#peer)) return undefined;
    return this.#peer.dispatch({ kind: "get", id: this.#id }, this.#callOf(AbortSignal.timeout(CANCEL_MS)));
  }

  /** Ends `read`, but not before the id of the task is known; the task continues at the peer. */
  async leave(): Promise<void> {
    this.#left = true;
    if (this.#id !== undefined) await this.#frames?.return?.();
  }

  /** Asks the peer to cancel the task, once and within a time limit. Rejects if it does not confirm that. */
  async cancel(over?: AbortSignal): Promise<void> {
    const id = this.#id ?? this.#options.givenId;
    if (id === undefined || this.#cancelSent || over?.aborted === true) return;
    this.#cancelSent = true;
    await cancelAtPeer(this.#peer, id, this.#options.turn.caller, this.#options.dialect, over);
  }

  /** What has to be remembered before anything of the frame is yielded; undefined if nothing. */
  #noteTask(event: TaskEvent, endsAtOnce: boolean): MemoryChange | undefined {
    const isFirst = this.#id === undefined;
    const isNew = isFirst && !endsAtOnce && this.#options.givenId === undefined && canBeQueried(this.#peer);
    const id = taskIdOf(event);
    this.#id = id;
    const isSettledNow = stateOf(event) !== undefined && this.isSettled;
    const changesWaiting = isSettledNow && (this.#continues || isWaiting(this.#state));
    return isNew || changesWaiting ? { id, isNew, changesWaiting } : undefined;
  }

  /** `number` is set if the frame was translated to nothing. */
  async #writeMemory({ changesWaiting, id, isNew }: MemoryChange, number: number | undefined): Promise<void> {
    if (isNew) {
      await this.#remember({ message: this.#message, task: id, number });
    }
    if (!changesWaiting) return;
    const { memory } = this.#options.turn;
    if (isWaiting(this.#state)) await memory.set(this.#key(WAITING), id);
    else if (this.#continues) await memory.delete(this.#key(WAITING));
  }

  async #remember(sent: SentMessage): Promise<void> {
    await this.#options.turn.memory.set(this.#key(SENT), sent);
  }

  #key(name: string): string {
    return `${this.#options.prefix ?? ""}${name}`;
  }

  #callOf(signal: Signal): CallContext {
    const { dialect, turn } = this.#options;
    return { ...callOf(turn.caller, dialect, signal), hops: turn.hops };
  }
}

/** Id of the peer's task in the memory of a turn, if one is known there. */
export async function findChildId(memory: Pick<TurnMemory, "get">, prefix = ""): Promise<string | undefined> {
  return (await memory.get<SentMessage>(prefix + SENT))?.task ?? (await memory.get<string>(prefix + WAITING));
}

/** Rejects if the peer refuses, or does not answer within a time limit or before `over`. */
export async function cancelAtPeer(
  peer: Peer,
  id: string,
  caller: Caller,
  dialect: string,
  over?: AbortSignal,
): Promise<void> {
  const timeout = AbortSignal.timeout(CANCEL_MS);
  const signal = over === undefined ? timeout : AbortSignal.any([over, timeout]);
  await Promise.race([peer.dispatch({ kind: "cancel", id }, callOf(caller, dialect, signal)), rejection(signal)]);
}

function rejection(signal: Signal): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

/** Callers may choose context ids, and the same id of two owners must not be the same conversation at the peer. */
export function peerContextId(owner: string, contextId: string): string {
  return hash("sha256", JSON.stringify([owner, contextId])).slice(0, 32);
}

function callOf(caller: Caller, dialect: string, signal: Signal): CallContext {
  return { caller, tenant: "", extensions: [], dialect, signal };
}

function isWaiting(state: TaskState | undefined): boolean {
  return state !== undefined && isInterrupted(state);
}

/** What the engine writes in one commit, whatever else it has to write. */
const MAX_SHORT_FRAMES = 8;
const MAX_SHORT_TEXT = 16 * 1024;

/**
 * The frames are a whole short task. They are stored together with its end, so that its id is of no use to anyone: until
 * then the message counts as not answered, and afterwards there is nothing to continue or to cancel.
 */
function isShortToEnd(frames: readonly StreamFrame[]): boolean {
  const last = frames.at(-1);
  if (last === undefined || frames.length > MAX_SHORT_FRAMES || "message" in last.event) return false;
  const state = stateOf(last.event);
  return state !== undefined && isTerminal(state) && frames.every(({ event }) => isShort(event));
}

function isShort(event: StreamEvent): boolean {
  if ("artifactUpdate" in event) return areShort(event.artifactUpdate.artifact.parts);
  if ("statusUpdate" in event) return areShort(event.statusUpdate.status.message?.parts ?? []);
  if ("message" in event) return false;
  const { artifacts = [], status } = event.task;
  return areShort(status.message?.parts ?? []) && artifacts.every(({ parts }) => areShort(parts));
}

function areShort(parts: readonly Part[]): boolean {
  return parts.every((part) => "text" in part && part.text.length <= MAX_SHORT_TEXT);
}

/** A stream of one event. */
export async function* toStream(event: StreamEvent): AsyncGenerator<readonly StreamFrame[], undefined, undefined> {
  yield [{ event, json: JSON.stringify(event) }];
}
