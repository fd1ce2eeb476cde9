/** One message to an agent that dialled us, until its answer has ended. */

import { toPublicError } from "../../../../../core/dialects/shared/errors.ts";
import { FrameQueue } from "../../../../../core/dialects/shared/frame-queue.ts";
import type { Signal } from "../../../../../core/model/abort.ts";
import { ProtocolError } from "../../../../../core/model/errors.ts";
import { isObject } from "../../../../../core/model/json.ts";
import type { Clock } from "../../../../../core/model/ports.ts";
import type { Artifact } from "../../../../../core/model/task.ts";
import { createDeferred } from "../../../../../core/wire/link.ts";
import type { AgentResponse } from "../../../codec/call/agent-frames.ts";
import { AnswerDecoder, type AnswerScope } from "../../../codec/call/decode-answer.ts";
import type { AnswerFrame } from "../../../codec/call/decode-frame.ts";
import { decodeError, isSuccess } from "../../../codec/errors.ts";

/** How long after its last frame a task is considered ended if the agent sent a terminal state but not `final`. */
const SETTLE_MS = 5_000;
/** Maximum delay for the first pieces of reasoning, which arrives word by word and is buffered. */
const GATHER_MS = 250;
/** Each piece is a message in the history of the task, so those after the first few wait longer and longer. */
const MAX_GATHER_MS = 8_000;
const QUICK_PIECES = 4;
/**
 * Maximum length of an answer, in characters: it is stored to find what is new in an answer that is repeated in full.
 */
const MAX_ANSWER_LENGTH = 64 * 1024 * 1024;

export class PendingCall {
  readonly taskId: string;
  readonly sessionId: string;
  readonly frames: FrameQueue;
  /** The agent has received the message: it acknowledged it, or sent a frame about the task. */
  delivered = false;
  readonly #answer: AnswerDecoder;
  readonly #encode: () => object;
  #params: object | undefined;
  readonly #clock: Clock;
  readonly #onEnd: (call: PendingCall) => void;
  readonly #sent = createDeferred();
  #wasSent = false;
  #failure: ProtocolError | undefined;
  #cancelTimer: (() => void) | undefined;
  #cancelFlush: (() => void) | undefined;
  #pieces = 0;
  #ended = false;

  /** `known`: artifacts of the answer that an earlier process has received. */
  constructor(
    scope: AnswerScope,
    encode: () => object,
    clock: Clock,
    onEnd: (call: PendingCall) => void,
    known?: readonly Artifact[],
  ) {
    this.taskId = scope.taskId;
    this.sessionId = scope.contextId;
    this.#encode = encode;
    this.#clock = clock;
    this.#onEnd = onEnd;
    this.#answer = new AnswerDecoder(scope, known);
    this.frames = new FrameQueue(() => this.#finish());
    const { contextId, taskId } = scope;
    this.frames.put([{ task: { id: taskId, contextId, status: { state: "TASK_STATE_SUBMITTED" } } }], 0);
  }

  /**
   * The params of the message; undefined if encoding them failed the call. They are encoded once, when the message is
   * first sent: before that, the URL at which the agent can fetch its files is unknown.
   */
  params(): object | undefined {
    try {
      this.#params ??= this.#encode();
    } catch (problem) {
      this.fail(ProtocolError.is(problem) ? problem : toPublicError(problem));
    }
    return this.#params;
  }

  /** The answer ended with a question to the caller: the task waits for input. */
  get endsWithQuestion(): boolean {
    return this.#answer.endsWithQuestion;
  }

  get wasSent(): boolean {
    return this.#wasSent;
  }

  /** The call has a deadline by which the agent must respond. */
  get isWaiting(): boolean {
    return this.#cancelTimer !== undefined;
  }

  /** Resolves when the message was sent; rejects if it could not be sent. */
  async sent(): Promise<void> {
    await this.#sent.promise;
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** The message was sent, possibly again. */
  markSent(): void {
    this.#stopWaiting();
    this.#wasSent = true;
    this.#sent.resolve();
  }

  /** The call fails if the agent sends nothing by then. */
  expectWithin(milliseconds: number, otherwise: string): void {
    this.#after(milliseconds, () => {
      if (this.#answer.isSettling) this.#settle();
      else this.fail(new ProtocolError("UNAVAILABLE", otherwise));
    });
  }

  /** `size` is the size of the frame on the wire. */
  receive(frame: AnswerFrame, size: number): void {
    this.delivered = true;
    this.#stopWaiting();
    const roomy = this.frames.put(this.#answer.decode(frame), size);
    this.#flushLater();
    if (!roomy || this.#answer.ended) this.#finish();
    else if (this.#answer.isSettling) this.#after(SETTLE_MS, () => this.#settle());
    else if (this.#answer.length > MAX_ANSWER_LENGTH) {
      this.fail(new ProtocolError("RESOURCE_EXHAUSTED", `The agent wrote more than ${MAX_ANSWER_LENGTH} characters.`));
    }
  }

  fail(error: ProtocolError): void {
    this.#failure ??= error;
    this.frames.fail(error);
    this.#finish();
  }

  /** A running timer is not restarted, so that buffered reasoning is shown in time however slowly more arrives. */
  #flushLater(): void {
    if (!this.#answer.holdsReasoning) {
      this.#cancelFlush?.();
      this.#cancelFlush = undefined;
    } else {
      this.#cancelFlush ??= this.#clock.after(gatherTime(this.#pieces), () => {
        this.#cancelFlush = undefined;
        this.#pieces++;
        this.frames.put(this.#answer.flush(), 0);
      });
    }
  }

  #settle(): void {
    this.frames.put(this.#answer.settle(), 0);
    this.#finish();
  }

  #after(milliseconds: number, run: () => void): void {
    this.#stopWaiting();
    this.#cancelTimer = this.#clock.after(milliseconds, run);
  }

  #stopWaiting(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
  }

  #finish(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#stopWaiting();
    this.#cancelFlush?.();
    this.frames.end();
    this.#sent.resolve();
    this.#onEnd(this);
  }
}

/**
 * Agents answer only the newest message of a conversation, so each message is sent after the previous one was answered.
 */
export class PendingCalls {
  readonly #calls = new Map<string, PendingCall>();
  readonly #sessions = new Map<string, PendingCall[]>();

  get size(): number {
    return this.#calls.size;
  }

  get(taskId: string): PendingCall | undefined {
    return this.#calls.get(taskId);
  }

  /** Returns true if the call can be sent now. */
  add(call: PendingCall): boolean {
    this.#calls.set(call.taskId, call);
    const queue = this.#sessions.get(call.sessionId);
    if (queue === undefined) this.#sessions.set(call.sessionId, [call]);
    else queue.push(call);
    return queue === undefined;
  }

  /** Returns the next call of the session, if it was waiting for this one. */
  remove(call: PendingCall): PendingCall | undefined {
    this.#calls.delete(call.taskId);
    const queue = this.#sessions.get(call.sessionId) ?? [];
    const place = queue.indexOf(call);
    queue.splice(place, 1);
    if (queue.length === 0) this.#sessions.delete(call.sessionId);
    return place === 0 ? queue[0] : undefined;
  }

  /** Calls that are not waiting for another. */
  begun(): PendingCall[] {
    return [...this.#sessions.values()].flatMap(([first]) => first ?? []);
  }
}

export function abandonedError(): ProtocolError {
  return new ProtocolError("UNAVAILABLE", "The caller did not wait for the answer.");
}

interface PendingCancellation {
  readonly settle: (state: string) => void;
  readonly fail: (error: ProtocolError) => void;
}

/** Cancel requests that wait for their response, by task. */
export class PendingCancellations {
  readonly #open = new Map<string, PendingCancellation>();

  open(taskId: string, signal: Signal): Promise<string> {
    return new Promise<string>((resolve, reject) => {
      const close = () => {
        signal.removeEventListener("abort", onAbort);
        if (this.#open.get(taskId) === pending) this.#open.delete(taskId);
      };
      const pending: PendingCancellation = {
        settle: (state) => {
          close();
          resolve(state);
        },
        fail: (error) => {
          close();
          reject(error);
        },
      };
      const onAbort = () => pending.fail(abandonedError());
      signal.addEventListener("abort", onAbort);
      this.#open.set(taskId, pending);
    });
  }

  /** Returns whether the response answered a pending request. */
  answer({ error, ids, result }: AgentResponse): boolean {
    const pending = ids.map((id) => this.#open.get(id)).find((known) => known !== undefined);
    if (pending === undefined) return false;
    if (error !== undefined && !isSuccess(error) && result === undefined) {
      pending.fail(decodeError(error));
      return true;
    }
    const state = controlState(result);
    if (state === undefined) return false;
    pending.settle(state);
    return true;
  }

  fail(error: ProtocolError): void {
    for (const pending of this.#open.values()) pending.fail(error);
  }
}

/** The state of a control response. Frames of an answer have a `kind` or `final` instead. */
function controlState(result: AgentResponse["result"]): string | undefined {
  if (result === undefined || result.kind !== undefined || result.final !== undefined) return undefined;
  const state = isObject(result.status) ? result.status.state : undefined;
  return typeof state === "string" ? state : undefined;
}

function gatherTime(pieces: number): number {
  return Math.min(GATHER_MS * 2 ** Math.max(0, pieces - QUICK_PIECES), MAX_GATHER_MS);
}
