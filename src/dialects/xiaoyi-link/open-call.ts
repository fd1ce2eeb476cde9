/** One message to an agent that dialled us, from when it is to be said until its answer has ended. */

import { ProtocolError } from "../../model/errors.ts";
import type { Clock } from "../../model/ports.ts";
import { createDeferred } from "../../wire/link.ts";
import { toPublicError } from "../shared/errors.ts";
import { type AnswerScope, HeardAnswer } from "../xiaoyi/heard-answer.ts";
import type { HeardFrame } from "../xiaoyi/heard-frame.ts";
import { FrameQueue } from "./frame-queue.ts";

/** How long after the last word a task has ended whose agent told how it ended, but not that this was all. */
const SETTLE_MS = 5_000;
/** Between what arrives and what is shown, at most: reasoning comes word by word and is gathered for so long. */
const GATHER_MS = 250;
/** Characters of the longest answer: it is kept to tell what is new in one that is told whole again and again. */
const LONGEST_ANSWER = 64 * 1024 * 1024;

export class OpenCall {
  readonly taskId: string;
  readonly sessionId: string;
  readonly frames: FrameQueue;
  /** The agent has got the message: it said so, or speaks of the task. */
  delivered = false;
  readonly #answer: HeardAnswer;
  readonly #encode: () => object;
  #params: object | undefined;
  readonly #clock: Clock;
  readonly #onEnd: (call: OpenCall) => void;
  readonly #sent = createDeferred();
  #wasSent = false;
  #failure: ProtocolError | undefined;
  #cancelTimer: (() => void) | undefined;
  #cancelFlush: (() => void) | undefined;
  #ended = false;

  constructor(scope: AnswerScope, encode: () => object, clock: Clock, onEnd: (call: OpenCall) => void) {
    this.taskId = scope.taskId;
    this.sessionId = scope.contextId;
    this.#encode = encode;
    this.#clock = clock;
    this.#onEnd = onEnd;
    this.#answer = new HeardAnswer(scope);
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
  get asks(): boolean {
    return this.#answer.asks;
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
  noteSent(): void {
    this.#stopWaiting();
    this.#wasSent = true;
    this.#sent.resolve();
  }

  /** Without a sign of the agent until then the call fails. */
  expectWithin(milliseconds: number, otherwise: string): void {
    this.#after(milliseconds, () => {
      if (this.#answer.settling) this.#settle();
      else this.fail(new ProtocolError("UNAVAILABLE", otherwise));
    });
  }

  /** `size` is that of the frame on the wire. */
  hear(frame: HeardFrame, size: number): void {
    this.delivered = true;
    this.#stopWaiting();
    const roomy = this.frames.put(this.#answer.hear(frame), size);
    this.#flushLater();
    if (!roomy || this.#answer.ended) this.#finish();
    else if (this.#answer.settling) this.#after(SETTLE_MS, () => this.#settle());
    else if (this.#answer.length > LONGEST_ANSWER) {
      this.fail(new ProtocolError("RESOURCE_EXHAUSTED", `The agent wrote more than ${LONGEST_ANSWER} characters.`));
    }
  }

  fail(error: ProtocolError): void {
    this.#failure ??= error;
    this.frames.fail(error);
    this.#finish();
  }

  /** What is held is shown in time however slowly more of it comes, so a running timer is not set again. */
  #flushLater(): void {
    if (!this.#answer.holding) {
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
