/**
 * Renders a task's events as frames for the platform: first a `working` status, then the content, and last exactly one
 * frame with `final`, after which nothing is sent. Pure except for the injected ids.
 */

import type { ProtocolError } from "../../../model/errors.ts";
import type { StreamEvent, TaskArtifactUpdate } from "../../../model/event.ts";
import { isObject, type JsonValue } from "../../../model/json.ts";
import { type Loss, toLoss } from "../../../model/loss.ts";
import { isDataPart, type Message, type Part } from "../../../model/message.ts";
import type { Artifact, Task, TaskState, TaskStatus } from "../../../model/task.ts";
import { LOSSES } from "../abilities.ts";
import { PLATFORM_CODES, toFrameError } from "../errors.ts";
import {
  type FrameError,
  type FrameScope,
  type ModeRenderer,
  type RenderedFrame,
  type StateName,
  SUCCESS,
  statusFrame,
} from "../frames.ts";
import { showableDataOf } from "../metadata.ts";
import { errorText, type Language, type PhoneTextName, phoneText, translateStatus } from "../phone-texts.ts";
import { PhoneRenderer } from "./phone-renderer.ts";
import { SpecRenderer } from "./spec-renderer.ts";

/** `phone`: what devices display well. `spec`: the format in the documentation. */
export const RENDER_MODES = ["phone", "spec"] as const;
export type RenderMode = (typeof RENDER_MODES)[number];

export interface RenderOptions extends FrameScope {
  readonly mode: RenderMode;
  /** Language of the server's own texts. */
  readonly language: Language;
  /** The desktop assistant shows questions from the status. */
  readonly desktop?: boolean;
  /**
   * A question to the user ends the stream, as in a response to a request. Otherwise, and if the question is for the
   * device, the task stays open for the answer.
   */
  readonly questionEnds?: boolean;
  readonly report: (losses: readonly Loss[]) => void;
}

export class Renderer {
  readonly #options: RenderOptions;
  readonly #mode: ModeRenderer;
  #phase: "silent" | "working" | "asking" | "ended" = "silent";

  constructor(options: RenderOptions) {
    this.#options = options;
    this.#mode =
      options.mode === "phone" ? new PhoneRenderer(options, options.desktop === true) : new SpecRenderer(options);
  }

  /** `final` was sent. */
  get ended(): boolean {
    return this.#phase === "ended";
  }

  /** The agent waits for input. */
  get asking(): boolean {
    return this.#phase === "asking";
  }

  /** The first `working` status, sent as soon as a message is accepted; nothing if it was already sent. */
  begin(): RenderedFrame[] {
    const frames: RenderedFrame[] = [];
    this.#work(frames);
    return frames;
  }

  push(event: StreamEvent): RenderedFrame[] {
    if (this.ended) return [];
    const frames: RenderedFrame[] = [];
    const losses: Loss[] = [];
    this.#work(frames);
    if ("artifactUpdate" in event) this.#artifact(event.artifactUpdate, frames, losses);
    else if ("statusUpdate" in event) {
      loseUpdateMetadata(event.statusUpdate.metadata, "statusUpdate", losses);
      this.#status(event.statusUpdate.status, frames, losses);
    } else if ("task" in event) this.#task(event.task, frames, losses);
    else this.#end("completed", event.message, SUCCESS, frames, losses);
    if (losses.length > 0) this.#options.report(losses);
    return frames;
  }

  /** The stream failed before the task ended. */
  fail(error: ProtocolError): RenderedFrame[] {
    if (this.ended) return [];
    const frames: RenderedFrame[] = [];
    const text = errorText(error, this.#options.language);
    this.#work(frames);
    this.#end("failed", { parts: [{ text }] }, toFrameError(error, text), frames, []);
    return frames;
  }

  /** A keep-alive status without text, which would stay on the screen; nothing unless the task is working. */
  keepAlive(): RenderedFrame | undefined {
    return this.#phase === "working" ? statusFrame(this.#options, "working") : undefined;
  }

  #work(frames: RenderedFrame[]): void {
    if (this.#phase !== "silent") return;
    this.#phase = "working";
    frames.push(statusFrame(this.#options, "working"));
    this.#mode.begin(frames);
  }

  #task({ artifacts, metadata, status }: Task, frames: RenderedFrame[], losses: Loss[]): void {
    loseUpdateMetadata(metadata, "task", losses);
    for (const artifact of artifacts ?? []) {
      loseMembers(artifact, losses);
      this.#mode.artifact({ artifact, lastChunk: true }, frames, losses);
    }
    this.#status(status, frames, losses);
  }

  #artifact(update: TaskArtifactUpdate, frames: RenderedFrame[], losses: Loss[]): void {
    loseUpdateMetadata(update.metadata, "artifactUpdate", losses);
    loseMembers(update.artifact, losses);
    this.#mode.artifact(update, frames, losses);
  }

  #status({ message, state }: TaskStatus, frames: RenderedFrame[], losses: Loss[]): void {
    switch (state) {
      case "TASK_STATE_SUBMITTED":
      case "TASK_STATE_WORKING":
        this.#resume(frames);
        if (message !== undefined) this.#mode.progress(message.parts, frames, losses);
        break;
      case "TASK_STATE_AUTH_REQUIRED":
        losses.push(toLoss(LOSSES.authRequired, "status.state"));
        this.#ask(message ?? this.#authorization(), frames, losses);
        break;
      case "TASK_STATE_INPUT_REQUIRED":
        this.#ask(message, frames, losses);
        break;
      default: {
        if (state === "TASK_STATE_REJECTED") losses.push(toLoss(LOSSES.rejected, "status.state"));
        const { failure, word } = END_STATES[state];
        this.#end(word, this.#translated(state, message), this.#errorOf(failure), frames, losses);
      }
    }
    if (message !== undefined) loseMessageMembers(message, losses);
  }

  #errorOf(failure: PhoneTextName | undefined): FrameError {
    if (failure === undefined) return SUCCESS;
    return { code: PLATFORM_CODES.taskFailed, message: phoneText(this.#options.language, failure) };
  }

  /** The reason for a failure may be one of the server's own texts. */
  #translated(state: EndState, message: Message | undefined): Pick<Message, "parts"> | undefined {
    if (message === undefined || state !== "TASK_STATE_FAILED") return message;
    return { parts: translateStatus(message.parts, this.#options.language) };
  }

  /** Called when a question was answered. */
  #resume(frames: RenderedFrame[]): void {
    if (this.#phase !== "asking") return;
    this.#phase = "working";
    frames.push(statusFrame(this.#options, "working"));
  }

  /** The state cannot be expressed, so a question without text would ask for nothing. */
  #authorization(): Pick<Message, "parts"> {
    return { parts: [{ text: phoneText(this.#options.language, "authorization") }] };
  }

  #ask(message: Pick<Message, "parts"> | undefined, frames: RenderedFrame[], losses: Loss[]): void {
    const ends = this.#options.questionEnds === true && message?.parts.some(asksDevice) !== true;
    this.#mode.question(message?.parts, ends, frames, losses);
    this.#phase = ends ? "ended" : "asking";
  }

  #end(
    state: StateName,
    message: Pick<Message, "parts"> | undefined,
    error: FrameError,
    frames: RenderedFrame[],
    losses: Loss[],
  ): void {
    this.#mode.end(state, message?.parts, error, frames, losses);
    this.#phase = "ended";
  }
}

/** `final` would close the channel on which the device reports a command's result. */
function asksDevice(part: Part): boolean {
  const data = showableDataOf(part) ?? (isDataPart(part) && isObject(part.data) ? part.data : {});
  const commands = Array.isArray(data.commands) ? (data.commands as readonly JsonValue[]) : [];
  return commands.some((one) => isObject(one) && isObject(one.payload) && one.payload.needUploadResult === true);
}

type EndState = Extract<
  TaskState,
  "TASK_STATE_COMPLETED" | "TASK_STATE_CANCELED" | "TASK_STATE_FAILED" | "TASK_STATE_REJECTED"
>;

const END_STATES = {
  TASK_STATE_COMPLETED: { word: "completed", failure: undefined },
  TASK_STATE_CANCELED: { word: "canceled", failure: undefined },
  TASK_STATE_FAILED: { word: "failed", failure: "failed" },
  TASK_STATE_REJECTED: { word: "failed", failure: "rejected" },
} as const satisfies Record<EndState, { readonly word: StateName; readonly failure: PhoneTextName | undefined }>;

function loseUpdateMetadata(metadata: object | undefined, path: string, losses: Loss[]): void {
  if (metadata !== undefined) losses.push(toLoss(LOSSES.updateMetadata, `${path}.metadata`));
}

function loseMembers({ description, extensions, metadata, name }: Artifact, losses: Loss[]): void {
  if (name ?? description ?? extensions ?? metadata) losses.push(toLoss(LOSSES.artifactMembers, "artifact"));
}

function loseMessageMembers({ extensions, metadata, referenceTaskIds }: Message, losses: Loss[]): void {
  if (extensions ?? metadata ?? referenceTaskIds) losses.push(toLoss(LOSSES.messageMembers, "status.message"));
}
