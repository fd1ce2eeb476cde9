/** One message to an agent that dialled us, from when it is to be said until its answer has ended. */
import { ProtocolError } from "../../model/errors.ts";
import type { Clock } from "../../model/ports.ts";
import { createGate } from "../../wire/gate.ts";
import { type AnswerScope, HeardAnswer } from "../xiaoyi/heard-answer.ts";
import type { HeardFrame } from "../xiaoyi/heard-frame.ts";
import { FrameQueue } from "./frame-queue.ts";

/** How long after the last word a task has ended whose agent told how it ended, but not that this was all. */
const SETTLE_MS = 5_000;
/** Between what arrives and what is shown, at most: reasoning comes word by word and is gathered for so long. */
const GATHER_MS = 300;
/** Characters of the longest answer: it is kept to tell what is new in one that is told whole again and again. */
const LONGEST_ANSWER = 64 * 1024 * 1024;

export class OpenCall {
  readonly taskId: string;
  readonly sessionId: string;
  /** Of the message, without the agent's address. */
  readonly params: object;
  readonly frames: FrameQueue;
  /** The agent has got the message: it said so, or speaks of the task. */
  delivered = false;
  readonly #answer: HeardAnswer;
  readonly #clock: Clock;
  readonly #onEnd: (call: OpenCall) => void;
  readonly #sent = createGate();
  #failure: ProtocolError | undefined;
  #cancelTimer = (): void => {};
  #cancelFlush: (() => void) | undefined;
  #ended = false;

  constructor(scope: AnswerScope, params: object, clock: Clock, onEnd: (call: OpenCall) => void) {
    this.taskId = scope.taskId;
    this.sessionId = scope.contextId;
    this.params = params;
    this.#clock = clock;
    this.#onEnd = onEnd;
    this.#answer = new HeardAnswer(scope);
    this.frames = new FrameQueue(() => this.#finish());
    const { contextId, taskId } = scope;
    this.frames.put([{ task: { id: taskId, contextId, status: { state: "TASK_STATE_SUBMITTED" } } }], 0);
  }

  /** Resolves when the message was said; rejects with why it was not. */
  async sent(): Promise<void> {
    await this.#sent.opened;
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** The message was said, again if need be. */
  noteSent(): void {
    this.#cancelTimer();
    this.#sent.open();
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
    this.#cancelTimer();
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
    this.#cancelTimer();
    this.#cancelTimer = this.#clock.after(milliseconds, run);
  }

  #finish(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#cancelTimer();
    this.#cancelFlush?.();
    this.frames.end();
    this.#sent.open();
    this.#onEnd(this);
  }
}
