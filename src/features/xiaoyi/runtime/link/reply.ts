/** The answer to one message: a task's events as frames, until `final`. */

import { toPublicError } from "../../../../core/dialects/shared/errors.ts";
import type { ProtocolError } from "../../../../core/model/errors.ts";
import type { StreamEvent } from "../../../../core/model/event.ts";
import type { Loss } from "../../../../core/model/loss.ts";
import type { FrameStream } from "../../../../core/model/operation.ts";
import type { JsonRpcId } from "../../../../core/wire/json-rpc.ts";
import { createDeferred, type Deferred } from "../../../../core/wire/link.ts";
import { enqueueFrames, type RenderedFrame, toResponse } from "../../codec/frames.ts";
import { toAgentResponse } from "../../codec/link-frames.ts";
import { Renderer } from "../../codec/render/renderer.ts";
import { withoutEarlierArtifacts } from "../agent-tasks.ts";
import { DeliveredItems, type OutgoingFrame, type ReceivedFrame, type Unconfirmed } from "./frame-sender.ts";
import type { LinkAgentOptions, LinkTimes } from "./options.ts";

/** What an answer needs of the message that it answers. */
export interface MessageHead {
  /** The platform's id of the task. */
  readonly taskId: string;
  readonly requestId: JsonRpcId;
  readonly desktop: boolean;
  readonly at: number;
}

interface ReplyOptions
  extends Pick<LinkAgentOptions, "agentId" | "artifactId" | "clock" | "language" | "mode" | "prepare"> {
  readonly sessionId: string;
  readonly times: LinkTimes;
  readonly report: (losses: readonly Loss[]) => void;
  /** The current task, followed by its updates; with `moreComes` also if it waits for input, which will follow. */
  readonly reopen: (moreComes: boolean) => Promise<FrameStream>;
  readonly onTask: (id: string) => void;
  readonly onReady: () => void;
  /** A complete answer or question has been unsent for too long. */
  readonly onUndelivered: () => void;
  /** Everything was delivered and nothing follows: the task has ended or waits for the user. */
  readonly onSettled: () => void;
}

/** Maximum queued frames of one answer; beyond that, reading the task's log pauses. */
const MAX_WAITING_FRAMES = 500;
const RETRY_MS = 1_000;
/** How long a message is still recognised as a duplicate after its answer. */
const DUPLICATE_MESSAGE_MS = 10_000;

export class Reply implements Unconfirmed {
  readonly head: MessageHead;
  /** That of the newest message. */
  requestId: JsonRpcId;
  readonly frames: ReceivedFrame[] = [];
  /** A message was added to the running task: if the task asks for input, that message is the answer. */
  expectsInput = false;
  readonly #options: ReplyOptions;
  #renderer: Renderer;
  #waiting: RenderedFrame[] = [];
  readonly #items = new DeliveredItems();
  /** Everything is sent again once the message was accepted or refused; nothing is sent before. */
  #resendsSoon = false;
  #room: Deferred | undefined;
  /** Counts the streams; only the newest is followed. */
  #round = 0;
  #following = false;
  #stopStream = (): void => {};
  #abandoned = false;
  #settled = false;
  #refusal: ProtocolError | undefined;
  readonly #started = createDeferred();
  #lastSentAt = 0;
  #lastContentAt = Number.NEGATIVE_INFINITY;
  #lastShown: RenderedFrame["shows"];
  #cancelWake = (): void => {};
  #cancelKeepAlive = (): void => {};
  #cancelUndelivered = (): void => {};

  constructor(head: MessageHead, options: ReplyOptions) {
    this.head = head;
    this.requestId = head.requestId;
    this.#options = options;
    this.#renderer = this.#createRenderer();
  }

  get ended(): boolean {
    return this.#renderer.ended;
  }

  /** The task's log is being read: all its updates will be sent. */
  get following(): boolean {
    return this.#following;
  }

  get started(): Promise<void> {
    return this.#started.promise;
  }

  get isSent(): boolean {
    return this.ended && this.#waiting.length === 0;
  }

  /** The answer has ended or reached a question. */
  get isComplete(): boolean {
    return this.ended || this.#renderer.asking;
  }

  /** The frames that complete the answer are not sent yet. */
  get isUndelivered(): boolean {
    return this.isComplete && this.#waiting.length > 0;
  }

  /** Everything was delivered, and nothing happens until the user sends a message. */
  get isSettled(): boolean {
    return this.#settled;
  }

  /**
   * Sends a sign of life immediately, then the stream's content until the task ends or asks for input; of a continued
   * task, only new content.
   */
  follow(open: () => Promise<FrameStream> = this.#reopen, continues = false): void {
    this.#settled = false;
    this.#cancelUndelivered();
    this.#keepAliveLater(this.#options.times.keepAliveMs);
    this.#queue(this.#renderer.begin());
    void this.#read(open, continues);
  }

  /** The task exists, under this id of the engine. */
  noteTask(id: string): void {
    this.#options.onTask(id);
  }

  /** Sends everything again: it is unknown how much was delivered. */
  resend(): void {
    if (this.#resendsSoon) return;
    this.#resendsSoon = true;
    this.#waiting = [];
    void this.#started.promise.then(() => {
      this.#resendsSoon = false;
      if (this.#abandoned) return;
      this.#items.beginResend();
      this.#renderer = this.#createRenderer();
      if (this.#refusal === undefined) this.follow();
      else this.refuse(this.#refusal);
    });
  }

  /** Sends the refusal of the message: a phone waits for a final frame in any case. */
  refuse(error: ProtocolError): void {
    this.#refusal = error;
    this.#started.resolve();
    this.#queue(this.#renderer.fail(error));
    this.#noticeEnd();
  }

  /** Shows an event that is not part of the stream. */
  show(event: StreamEvent): void {
    this.#queue(this.#renderer.push(event));
    this.#noticeEnd();
  }

  /** The reader has left; the task continues. */
  abandon(): void {
    this.#abandoned = true;
    this.#round++;
    this.#waiting = [];
    this.#stop();
    this.#cancelWake();
    this.#cancelKeepAlive();
    this.#cancelUndelivered();
    this.#started.resolve();
    this.#answered();
  }

  peek(): OutgoingFrame | undefined {
    const [next] = this.#waiting;
    if (next === undefined) return undefined;
    const wait = this.#delayOf(next);
    if (wait > 0) {
      this.#cancelWake();
      this.#cancelWake = this.#options.clock.after(wait, this.#options.onReady);
      return undefined;
    }
    const { agentId, sessionId } = this.#options;
    const detail = toResponse(this.requestId, next.result, next.error);
    const text = toAgentResponse({ agentId, sessionId, taskId: this.head.taskId }, detail);
    return { text, reply: this, once: next.result.final || next.once === true };
  }

  sent(): void {
    const frame = this.#waiting.shift();
    if (frame === undefined) return;
    this.#lastSentAt = this.#options.clock.now();
    this.#lastShown = frame.shows;
    this.#items.sent(frame);
    if (frame.result.kind === "artifact-update") this.#lastContentAt = this.#lastSentAt;
    if (this.#waiting.length < MAX_WAITING_FRAMES / 2) this.#makeRoom();
  }

  pingSent(): void {
    this.#items.pingSent();
  }

  confirmed(all: boolean): void {
    this.#items.confirmed();
    const mayFollow = this.#following || !this.isComplete;
    if (!all || this.#abandoned || mayFollow || this.#waiting.length > 0) return;
    this.#cancelUndelivered();
    this.#settled = true;
    this.#options.onSettled();
  }

  async #read(open: () => Promise<FrameStream>, continues = false): Promise<void> {
    this.#stop();
    const round = ++this.#round;
    const isOver = (): boolean => round !== this.#round;
    this.#following = true;
    let taken = false;
    try {
      const frames = (await open())[Symbol.asyncIterator]();
      taken = true;
      const stop = (): void => void frames.return?.();
      if (isOver()) return stop();
      this.#stopStream = stop;
      while (!isOver()) {
        const step = await frames.next();
        if (isOver()) return stop();
        if (step.done === true) {
          if (this.#renderer.asking && !this.expectsInput) break;
          const wait = this.#renderer.asking ? 0 : RETRY_MS;
          this.#options.clock.after(wait, () => void (isOver() || this.#read(this.#reopen)));
          return;
        }
        for (const frame of step.value) {
          const { prepare } = this.#options;
          const event = continues ? withoutEarlierArtifacts(frame.event) : frame.event;
          const shown = prepare === undefined ? event : await prepare(event);
          if (isOver()) return stop();
          if ("task" in event) this.noteTask(event.task.id);
          if (!this.#isAskedAlready(event)) this.#queue(this.#renderer.push(shown));
          // The task snapshot holds everything that was sent before.
          if ("task" in event) this.#items.endResend();
        }
        this.#started.resolve();
        if (this.#renderer.ended) {
          stop();
          break;
        }
        if (this.#renderer.asking) this.#expectAnswer();
        if (this.#waiting.length >= MAX_WAITING_FRAMES) {
          this.#room ??= createDeferred();
          await this.#room.promise;
        }
      }
    } catch (error) {
      if (isOver()) return;
      const refusal = toPublicError(error);
      if (!taken && open !== this.#reopen) this.#refusal = refusal;
      this.#queue(this.#renderer.fail(refusal));
    }
    if (isOver()) return;
    this.#following = false;
    this.#cancelKeepAlive();
    this.#started.resolve();
    this.#noticeEnd();
  }

  readonly #reopen = (): Promise<FrameStream> => {
    const { expectsInput } = this;
    this.expectsInput = false;
    return this.#options.reopen(expectsInput);
  };

  #isAskedAlready(event: StreamEvent): boolean {
    return this.#renderer.asking && "task" in event && event.task.status.state === "TASK_STATE_INPUT_REQUIRED";
  }

  #noticeEnd(): void {
    if (this.#abandoned || !this.ended) return;
    this.#following = false;
    this.#cancelKeepAlive();
    this.#answered();
    this.#watchLeaving();
  }

  #watchLeaving(): void {
    const { clock, onUndelivered, times } = this.#options;
    this.#cancelUndelivered();
    this.#cancelUndelivered = clock.after(times.undeliveredMs, () => {
      if (this.isUndelivered) onUndelivered();
    });
  }

  /** The answer may have the same content and ids as an earlier message. */
  #expectAnswer(): void {
    for (const frame of this.frames.splice(0)) frame.forget();
    this.#watchLeaving();
  }

  #answered(): void {
    for (const frame of this.frames.splice(0)) frame.expireIn(DUPLICATE_MESSAGE_MS);
  }

  #queue(frames: readonly RenderedFrame[]): void {
    if (this.#abandoned || this.#resendsSoon || frames.length === 0) return;
    enqueueFrames(this.#items.withoutDelivered(frames), this.#waiting);
    this.#options.onReady();
  }

  /** How long the frame has to wait: for earlier frames to be delivered, or for a newer one to replace it. */
  #delayOf({ result, shows }: RenderedFrame): number {
    const { clock, times } = this.#options;
    const now = clock.now();
    if (result.final) return this.#lastContentAt + times.finalAfterMs - now;
    const mayImprove = shows !== undefined && this.#waiting.length === 1 && this.#following;
    return mayImprove && shows === this.#lastShown ? this.#lastSentAt + times.paceMs - now : 0;
  }

  #keepAliveLater(milliseconds: number): void {
    const { clock, times } = this.#options;
    this.#cancelKeepAlive();
    this.#cancelKeepAlive = clock.after(milliseconds, () => {
      const rest = this.#lastSentAt + times.keepAliveMs - clock.now();
      if (rest <= 0 && this.#waiting.length === 0) {
        const frame = this.#renderer.keepAlive();
        if (frame !== undefined) this.#queue([frame]);
      }
      this.#keepAliveLater(rest > 0 ? rest : times.keepAliveMs);
    });
  }

  #makeRoom(): void {
    this.#room?.resolve();
    this.#room = undefined;
  }

  #stop(): void {
    this.#stopStream();
    this.#stopStream = () => {};
    this.#makeRoom();
  }

  #createRenderer(): Renderer {
    const { desktop, taskId } = this.head;
    return new Renderer({ ...this.#options, taskId, desktop });
  }
}
