/** One message to an agent that dialled us, from when it is to be said until its answer has ended. */

import { ProtocolError } from "../../../model/errors.ts";
import { isObject } from "../../../model/json.ts";
import type { Clock } from "../../../model/ports.ts";
import { createDeferred } from "../../../wire/link.ts";
import { toPublicError } from "../../shared/errors.ts";
import { AnswerDecoder, type AnswerScope } from "../../xiaoyi/call/decode-answer.ts";
import type { AnswerFrame } from "../../xiaoyi/call/decode-frame.ts";
import { decodeError, isSuccess } from "../../xiaoyi/errors.ts";
import { FrameQueue } from "./frame-queue.ts";
import type { AgentResponse } from "./frames.ts";

/** How long after the last word a task has ended whose agent told how it ended, but not that this was all. */
const SETTLE_MS = 5_000;
/** Between what arrives and what is shown, at most: reasoning comes word by word and is gathered for so long. */
const GATHER_MS = 250;
/** Characters of the longest answer: it is kept to tell what is new in one that is told whole again and again. */
const MAX_ANSWER_LENGTH = 64 * 1024 * 1024;

export class PendingCall {
  readonly taskId: string;
  readonly sessionId: string;
  readonly frames: FrameQueue;
  /** The agent has got the message: it said so, or speaks of the task. */
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
  #ended = false;

  constructor(scope: AnswerScope, encode: () => object, clock: Clock, onEnd: (call: PendingCall) => void) {
    this.taskId = scope.taskId;
    this.sessionId = scope.contextId;
    this.#encode = encode;
    this.#clock = clock;
    this.#onEnd = onEnd;
    this.#answer = new AnswerDecoder(scope);
    this.frames = new FrameQueue(() => this.#finish());
    const { contextId, taskId } = scope;
    this.frames.put([{ task: { id: taskId, contextId, status: { state: "TASK_STATE_SUBMITTED" } } }], 0);
  }

  /**
   * The params of the message; undefined where encoding them failed the call. They are encoded once, when the message is
   * first sent: before that it is not known where the agent can fetch its files.
   */
  params(): object | undefined {
    try {
      this.#params ??= this.#encode();
    } catch (problem) {
      this.fail(ProtocolError.is(problem) ? problem : toPublicError(problem));
    }
    return this.#params;
  }

  /** It ended with a question to the caller: the task waits for the answer. */
  get endsWithQuestion(): boolean {
    return this.#answer.endsWithQuestion;
  }

  /** The message was sent at least once. */
  get wasSent(): boolean {
    return this.#wasSent;
  }

  /** The call has a deadline until which the agent must do something. */
  get isWaiting(): boolean {
    return this.#cancelTimer !== undefined;
  }

  /** Resolves when the message was said; rejects with why it was not. */
  async sent(): Promise<void> {
    await this.#sent.promise;
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** The message was said, again if need be. */
  markSent(): void {
    this.#stopWaiting();
    this.#wasSent = true;
    this.#sent.resolve();
  }

  /** Without a sign of the agent until then the call fails. */
  expectWithin(milliseconds: number, otherwise: string): void {
    this.#after(milliseconds, () => {
      if (this.#answer.isSettling) this.#settle();
      else this.fail(new ProtocolError("UNAVAILABLE", otherwise));
    });
  }

  /** `size` is that of the frame on the wire. */
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

  /** What is held is shown in time however slowly more of it comes, so a running timer is not set again. */
  #flushLater(): void {
    if (!this.#answer.holdsReasoning) {
      this.#cancelFlush?.();
      this.#cancelFlush = undefined;
    } else {
      this.#cancelFlush ??= this.#clock.after(GATHER_MS, () => {
        this.#cancelFlush = undefined;
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

/** Agents answer only the newest message of a conversation, so each is said when the one before it was answered. */
export class PendingCalls {
  readonly #calls = new Map<string, PendingCall>();
  readonly #sessions = new Map<string, PendingCall[]>();

  get size(): number {
    return this.#calls.size;
  }

  get(taskId: string): PendingCall | undefined {
    return this.#calls.get(taskId);
  }

  /** True when it is the call's turn. */
  add(call: PendingCall): boolean {
    this.#calls.set(call.taskId, call);
    const queue = this.#sessions.get(call.sessionId);
    if (queue === undefined) this.#sessions.set(call.sessionId, [call]);
    else queue.push(call);
    return queue === undefined;
  }

  /** Returns the call whose turn it is now, if the one that ended was in its way. */
  remove(call: PendingCall): PendingCall | undefined {
    this.#calls.delete(call.taskId);
    const queue = this.#sessions.get(call.sessionId) ?? [];
    const place = queue.indexOf(call);
    queue.splice(place, 1);
    if (queue.length === 0) this.#sessions.delete(call.sessionId);
    return place === 0 ? queue[0] : undefined;
  }

  /** Those whose turn it is. */
  begun(): PendingCall[] {
    return [...this.#sessions.values()].flatMap(([first]) => first ?? []);
  }
}

/** Requests to cancel or clear that wait for their answer. */

interface PendingControl {
  readonly settle: (state: string) => void;
  readonly fail: (error: ProtocolError) => void;
}

export function abandonedError(): ProtocolError {
  return new ProtocolError("UNAVAILABLE", "The caller did not wait for the answer.");
}

export class PendingControls {
  readonly #open = new Map<string, PendingControl>();

  /** What became of it, in the agent's word. Agents answer under any of the `ids`. */
  open(ids: readonly string[], signal: AbortSignal): Promise<string> {
    return new Promise<string>((resolve, reject) => {
      const close = () => {
        signal.removeEventListener("abort", onAbort);
        for (const id of ids) if (this.#open.get(id) === control) this.#open.delete(id);
      };
      const control: PendingControl = {
        settle: (state) => {
          close();
          resolve(state);
        },
        fail: (error) => {
          close();
          reject(error);
        },
      };
      const onAbort = () => control.fail(abandonedError());
      signal.addEventListener("abort", onAbort);
      for (const id of ids) this.#open.set(id, control);
    });
  }

  /** Whether the response was for one of these. */
  answer({ error, ids, result }: AgentResponse): boolean {
    const control = ids.map((id) => this.#open.get(id)).find((known) => known !== undefined);
    if (control === undefined) return false;
    if (error !== undefined && !isSuccess(error) && result === undefined) {
      control.fail(decodeError(error));
      return true;
    }
    const state = controlState(result);
    if (state === undefined) return false;
    control.settle(state);
    return true;
  }

  fail(error: ProtocolError): void {
    for (const control of new Set(this.#open.values())) control.fail(error);
  }
}

/** A status that is no frame of an answer: these say which kind they are, or whether they are the last. */
function controlState(result: AgentResponse["result"]): string | undefined {
  if (result === undefined || result.kind !== undefined || result.final !== undefined) return undefined;
  const state = isObject(result.status) ? result.status.state : undefined;
  return typeof state === "string" ? state : undefined;
}
