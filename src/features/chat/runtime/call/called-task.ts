/** One task at a peer: what the peer posts about it becomes events, until it has ended. */

import { FrameQueue } from "../../../../core/dialects/shared/frame-queue.ts";
import { ProtocolError } from "../../../../core/model/errors.ts";
import type { TaskEvent } from "../../../../core/model/event.ts";
import type { FrameStream } from "../../../../core/model/operation.ts";
import {
  type Artifact,
  formatTimestamp,
  isInterrupted,
  isTerminal,
  isTransitionAllowed,
  type Task,
  type TaskState,
  type TaskStatus,
} from "../../../../core/model/task.ts";
import type { PostFile } from "../../../../core/wire/channel.ts";
import { createDeferred } from "../../../../core/wire/link.ts";
import { decodeBody } from "../../a2a-lite/decode.ts";
import { decodeAnswer, UNVERIFIED } from "../../a2a-lite/decode-answer.ts";
import type { LiteMessage, LiteState, Received } from "../../a2a-lite/message.ts";
import { withoutMention } from "../../a2a-lite/names.ts";
import { toTaskState } from "../../a2a-lite/states.ts";
import { readFiles } from "../files.ts";
import type { CallTools, DropReason } from "./tools.ts";

/** Statuses that count within this time. A peer that edits its status once a second stays far below. */
const MAX_STATUSES = 100;
const STATUS_WINDOW_MS = 10_000;
/** Posts without a marker that are the result together, and their characters. */
const MAX_PROSE_POSTS = 64;
const MAX_PROSE_LENGTH = 512 * 1024;
/** Size of an event beside its text, as a reader's queue counts it. */
const EVENT_SIZE = 256;

type StatusMessage = Extract<LiteMessage, { readonly type: "status" }>;

interface CalledTaskOptions {
  readonly id: string;
  readonly contextId: string;
  /** The peer and its room, for error messages. */
  readonly where: string;
  readonly tools: CallTools;
  drop(why: DropReason): void;
  /** Called with each question and with the end, and with undefined when the question was answered. */
  remember(message: LiteMessage | undefined): void;
  /** Nothing is expected of the peer any more, or not before an answer of the caller. */
  onSettled(): void;
}

export class CalledTask {
  readonly id: string;
  /** Ids of the posts that the participant may reply to. */
  readonly posts = new Set<string>();
  readonly #options: CalledTaskOptions;
  readonly #readers = new Set<FrameQueue>();
  readonly #ended = createDeferred();
  #status: TaskStatus;
  #artifacts: readonly Artifact[] = [];
  /** The end has arrived; what follows does not count. */
  #isDecided = false;
  /** A status has announced the end: only the result may follow. */
  #isEnding = false;
  /** The peer has answered in any way. */
  #hasSign = false;
  /** The peer has answered with a marker, so that only markers count. */
  #hasMarker = false;
  /** By the id of the post; an edit takes the place of the post. */
  readonly #prose = new Map<string, Received>();
  #statuses = { since: 0, count: 0 };
  #stopTimer: (() => void) | undefined;
  /** Its end, or the question that it waits for. */
  last: LiteMessage | undefined;

  constructor(options: CalledTaskOptions) {
    this.id = options.id;
    this.#options = options;
    this.#status = this.#statusOf("TASK_STATE_SUBMITTED");
  }

  get state(): TaskState {
    return this.#status.state;
  }

  get status(): TaskStatus {
    return this.#status;
  }

  get isEnded(): boolean {
    return this.#isDecided;
  }

  /** Posts without a marker may be about it. */
  get takesProse(): boolean {
    return !this.#isDecided && !this.#hasMarker && !isInterrupted(this.state);
  }

  /** It was not posted yet, so that replies to it cannot be recognised. */
  get isPosting(): boolean {
    return this.posts.size === 0;
  }

  /** Resolves when it has ended. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  toTask(): Task {
    const { contextId, id } = this.#options;
    const artifacts = this.#artifacts.length === 0 ? undefined : { artifacts: this.#artifacts };
    return { id, contextId, status: this.#status, ...artifacts };
  }

  /** The task as it is and what follows, until it ends or asks. */
  follow(): FrameStream {
    const queue: FrameQueue = new FrameQueue(() => this.#readers.delete(queue));
    queue.put([{ task: this.toTask() }], 0);
    if (isTerminal(this.state) || isInterrupted(this.state)) queue.end();
    else this.#readers.add(queue);
    return queue;
  }

  /** The network has accepted the message. `before`: the status when it was sent; a newer one may have arrived since. */
  markPosted(post: string, before: TaskStatus): void {
    this.posts.add(post);
    if (this.#isDecided) return;
    if (isInterrupted(this.state)) {
      if (this.#status !== before) return;
      this.#status = this.#statusOf("TASK_STATE_WORKING");
      this.#remember(undefined);
    }
    for (const [id, { post: prose }] of this.#prose) {
      if (prose.replyTo !== undefined && !this.posts.has(prose.replyTo)) this.#prose.delete(id);
    }
    this.#expect();
  }

  /** An earlier process has posted it; `last` is its end or the question that it waits for. */
  resume(posts: readonly string[], last: LiteMessage | undefined): void {
    for (const post of posts) this.posts.add(post);
    this.#hasSign = true;
    if (last === undefined) this.#expect();
    else this.#receive(last, last.attachments.map(toLostFile));
  }

  receive({ files, parsed }: Received): void {
    if (this.#isDecided) this.#options.drop("ended");
    else if (parsed.kind === "message") this.#receive(parsed.message, files);
    else {
      this.#options.drop("invalid");
      this.#noteMarker();
      if (!isInterrupted(this.state) && !this.#isEnding) this.#expect();
    }
  }

  /** Whether the post replaces one that counts already. */
  hasProse(post: string): boolean {
    return this.#prose.has(post);
  }

  /** What counts as the result after a quiet time. */
  receiveProse(received: Received): void {
    const key = received.post.edits ?? received.post.id;
    const isNew = !this.#prose.has(key);
    const length = [...this.#prose.values(), received].reduce((sum, { post }) => sum + post.text.length, 0);
    if (length > MAX_PROSE_LENGTH || (isNew && this.#prose.size >= MAX_PROSE_POSTS)) {
      this.#options.drop("too-many");
      return;
    }
    this.#prose.set(key, received);
    this.#hasSign = true;
    this.#expect();
  }

  /** Ends the task, of which nothing more will arrive. */
  fail(error: ProtocolError): void {
    if (this.#isDecided) return;
    this.#isDecided = true;
    this.#status = this.#statusOf("TASK_STATE_FAILED", error.message);
    for (const reader of this.#readers) reader.fail(error);
    this.#settle();
    this.#ended.resolve();
  }

  /** Timers end; readers are left waiting. */
  close(): void {
    this.#stopTimer?.();
  }

  #receive(message: LiteMessage, files: readonly PostFile[]): void {
    this.#noteMarker();
    if (message.type === "result") {
      this.#remember(message);
      void this.#end(message.state, message.body, files);
    } else if (message.type === "status") this.#receiveStatus(message, files);
    else if (!isInterrupted(this.state) && !this.#isEnding) this.#expect();
  }

  #receiveStatus(message: StatusMessage, files: readonly PostFile[]): void {
    const state = toTaskState(message.state);
    const text = message.body === "" ? (message.progress ?? "") : message.body;
    if (this.#isEnding || !isTransitionAllowed(this.state, state)) {
      this.#options.drop("wrong-state");
    } else if (isTerminal(state)) {
      this.#isEnding = true;
      // A refusal has no result; of anything else the result may follow.
      this.#after(message.state === "rejected" ? 0 : this.#options.tools.times.quietMs, () => {
        this.#remember(message);
        void this.#end(message.state, text, files);
      });
    } else if (isInterrupted(state)) {
      this.#remember(message);
      this.#emit([this.#toStatusEvent(state, text)], text.length);
      for (const reader of this.#readers) reader.end();
      this.#settle();
    } else if (!this.#admitStatus()) {
      this.#options.drop("too-many");
    } else {
      if (state !== this.state || text !== "") this.#emit([this.#toStatusEvent(state, text)], text.length);
      this.#expect();
    }
  }

  #noteMarker(): void {
    this.#hasSign = true;
    this.#hasMarker = true;
    this.#prose.clear();
  }

  #admitStatus(): boolean {
    const now = this.#options.tools.clock.now();
    if (now - this.#statuses.since > STATUS_WINDOW_MS) this.#statuses = { since: now, count: 0 };
    return ++this.#statuses.count <= MAX_STATUSES;
  }

  /** Waits for the next sign; restarted by every one. */
  #expect(): void {
    const { tools, where } = this.#options;
    const { answerMs, quietMs, silenceMs } = tools.times;
    if (this.isPosting) return;
    if (this.#prose.size > 0) this.#after(quietMs, () => this.#endWithProse());
    else if (this.#hasSign) {
      const text = `${where} sent nothing more about the task for ${silenceMs / 1_000} s.`;
      this.#after(silenceMs, () => void this.#end("failed", text));
    } else {
      const error = new ProtocolError("UNAVAILABLE", `${where} did not answer within ${answerMs / 1_000} s.`);
      this.#after(answerMs, () => this.fail(error));
    }
  }

  #endWithProse(): void {
    const posts = [...this.#prose.values()];
    const own = this.#options.tools.self();
    const texts = posts.map(({ parsed, post }) => (parsed.kind === "chat" ? parsed.text : post.text));
    const text = texts.map((one) => (own === undefined ? one : withoutMention(one, own))).join("\n");
    const files = posts.flatMap((one) => one.files);
    void this.#end("completed", text, files, { isUnverified: true });
  }

  async #end(
    lite: LiteState,
    answer: string,
    files: readonly PostFile[] = [],
    { isUnverified = false } = {},
  ): Promise<void> {
    if (this.#isDecided) return;
    this.#isDecided = true;
    this.#stopTimer?.();
    const state = toTaskState(lite);
    const isCompleted = state === "TASK_STATE_COMPLETED";
    const read = await readFiles(files, this.#options.tools.clock);
    const { artifacts, notes, text } = decodeAnswer(answer, read, isUnverified);
    const parts = isCompleted ? decodeBody(text) : [];
    const result = { artifactId: "result", parts, ...(isUnverified && UNVERIFIED) };
    this.#artifacts = parts.length > 0 ? [result, ...artifacts] : artifacts;
    const { contextId, id: taskId } = this.#options;
    const message = [...(isCompleted ? [] : [text]), ...notes].filter((line) => line !== "").join("\n");
    this.#emit(
      [
        ...this.#artifacts.map((artifact) => ({ artifactUpdate: { taskId, contextId, artifact } })),
        this.#toStatusEvent(state, message),
      ],
      text.length,
    );
    for (const reader of this.#readers) reader.end();
    this.#settle();
    this.#ended.resolve();
  }

  #emit(events: readonly TaskEvent[], length: number): void {
    for (const event of events) if ("statusUpdate" in event) this.#status = event.statusUpdate.status;
    for (const reader of this.#readers) reader.put(events, length + EVENT_SIZE);
  }

  #remember(last: LiteMessage | undefined): void {
    this.last = last;
    this.#options.remember(last);
  }

  #settle(): void {
    this.#stopTimer?.();
    this.#readers.clear();
    this.#options.onSettled();
  }

  #toStatusEvent(state: TaskState, text: string): TaskEvent {
    const { contextId, id: taskId } = this.#options;
    return { statusUpdate: { taskId, contextId, status: this.#statusOf(state, text) } };
  }

  #statusOf(state: TaskState, text = ""): TaskStatus {
    const { contextId, id: taskId, tools } = this.#options;
    const timestamp = formatTimestamp(tools.clock.now());
    if (text === "") return { state, timestamp };
    const messageId = tools.ids.message();
    return { state, timestamp, message: { messageId, taskId, contextId, role: "ROLE_AGENT", parts: [{ text }] } };
  }

  #after(milliseconds: number, run: () => void): void {
    this.#stopTimer?.();
    this.#stopTimer = this.#options.tools.clock.after(milliseconds, run);
  }
}

/** A file whose post was read by an earlier process. */
function toLostFile(name: string): PostFile {
  return { name, mediaType: "application/octet-stream", read: () => Promise.reject(new Error("The file is gone.")) };
}
