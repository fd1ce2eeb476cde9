/**
 * Renders a task's events as frames for the platform: first a `working` status, then the content, and last exactly one
 * frame with `final`, after which nothing is sent. Pure except for the injected ids.
 */

import { TurnAnswer } from "../../../../core/model/answer.ts";
import type { ProtocolError } from "../../../../core/model/errors.ts";
import type { StreamEvent } from "../../../../core/model/event.ts";
import { isObject, type JsonValue } from "../../../../core/model/json.ts";
import { type Loss, toLoss } from "../../../../core/model/loss.ts";
import { isDataPart, type Part } from "../../../../core/model/message.ts";
import type { TaskStatus } from "../../../../core/model/task.ts";
import { PLATFORM_CODES, toFrameError } from "../errors.ts";
import {
  type ArtifactChunk,
  type FrameError,
  type FrameScope,
  type MessageParts,
  type ModeRenderer,
  type RenderedFrame,
  type RenderOutput,
  type StateName,
  SUCCESS,
  statusFrame,
} from "../frames.ts";
import { LOSSES } from "../losses.ts";
import { showableDataOf } from "../metadata.ts";
import { errorText, type Language, phoneText, translateStatus } from "../phone-texts.ts";
import { PhoneRenderer } from "./phone-renderer.ts";
import { SpecRenderer } from "./spec-renderer.ts";

/** `phone`: what devices display well. `spec`: the format in the documentation. */
export const RENDER_MODES = ["phone", "spec"] as const;
export type RenderMode = (typeof RENDER_MODES)[number];

export interface RenderOptions extends FrameScope {
  readonly mode: RenderMode;
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
  readonly #answer = new TurnAnswer();

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
    return this.#render(() => {});
  }

  push(event: StreamEvent): RenderedFrame[] {
    return this.#render((out) => {
      if ("artifactUpdate" in event) {
        loseUpdateMetadata(event.artifactUpdate, "artifactUpdate", out);
        this.#artifact(event.artifactUpdate, out);
      } else if ("statusUpdate" in event) {
        loseUpdateMetadata(event.statusUpdate, "statusUpdate", out);
        this.#status(event.statusUpdate.status, out);
      } else if ("task" in event) {
        loseUpdateMetadata(event.task, "task", out);
        for (const artifact of event.task.artifacts ?? []) this.#artifact({ artifact, lastChunk: true }, out);
        this.#answer.begin(event.task);
        this.#status(event.task.status, out);
      } else this.#end("completed", event.message.parts, SUCCESS, out);
    });
  }

  /** The stream failed before the task ended. The text is the server's own: nothing of the agent's is lost. */
  fail(error: ProtocolError): RenderedFrame[] {
    const text = errorText(error, this.#options.language);
    return this.#render((out) => {
      this.#end("failed", [{ text }], toFrameError(error, text), out);
      out.losses.length = 0;
    });
  }

  /** A keep-alive status without text, which would stay on the screen; nothing unless the task is working. */
  keepAlive(): RenderedFrame | undefined {
    return this.#phase === "working" ? statusFrame(this.#options, "working") : undefined;
  }

  #render(write: (out: RenderOutput) => void): RenderedFrame[] {
    if (this.ended) return [];
    const out: RenderOutput = { frames: [], losses: [] };
    const before = this.#phase;
    if (before === "silent") {
      this.#work(out);
      this.#mode.begin(out);
    }
    write(out);
    try {
      if (out.losses.length > 0) this.#options.report(out.losses);
    } catch (error) {
      // The frames are not sent, so a phone still waits for the last one.
      this.#phase = before;
      throw error;
    }
    return out.frames;
  }

  #work({ frames }: RenderOutput): void {
    this.#phase = "working";
    frames.push(statusFrame(this.#options, "working"));
  }

  #artifact(update: ArtifactChunk, out: RenderOutput): void {
    const { description, extensions, metadata, name } = update.artifact;
    if (name ?? description ?? extensions ?? metadata) out.losses.push(toLoss(LOSSES.artifactMembers, "artifact"));
    this.#mode.artifact(update, out);
    this.#answer.addArtifact(update.artifact);
  }

  #status(status: TaskStatus, out: RenderOutput): void {
    const { language } = this.#options;
    const { state } = status;
    const message = this.#answer.messageOf(status);
    const parts = message && translateStatus(message, language);
    switch (state) {
      case "TASK_STATE_SUBMITTED":
      case "TASK_STATE_WORKING":
        // The question was answered.
        if (this.asking) this.#work(out);
        if (parts !== undefined) this.#mode.progress(parts, out);
        break;
      case "TASK_STATE_AUTH_REQUIRED":
        out.losses.push(toLoss(LOSSES.authRequired, "status.state"));
        // The state cannot be expressed, so a question without text would ask for nothing.
        this.#ask(parts ?? [{ text: phoneText(language, "authorization") }], out);
        break;
      case "TASK_STATE_INPUT_REQUIRED":
        this.#ask(parts, out);
        break;
      case "TASK_STATE_FAILED":
        this.#end("failed", parts, this.#errorOf("failed"), out);
        break;
      case "TASK_STATE_REJECTED":
        out.losses.push(toLoss(LOSSES.rejected, "status.state"));
        this.#end("failed", parts, this.#errorOf("rejected"), out);
        break;
      case "TASK_STATE_COMPLETED":
      case "TASK_STATE_CANCELED":
        this.#end(state === "TASK_STATE_COMPLETED" ? "completed" : "canceled", parts, SUCCESS, out);
        break;
    }
    if (message?.extensions ?? message?.metadata ?? message?.referenceTaskIds) {
      out.losses.push(toLoss(LOSSES.messageMembers, "status.message"));
    }
  }

  #errorOf(failure: "failed" | "rejected"): FrameError {
    return { code: PLATFORM_CODES.taskFailed, message: phoneText(this.#options.language, failure) };
  }

  #ask(message: MessageParts | undefined, out: RenderOutput): void {
    const ends = this.#options.questionEnds === true && message?.some(asksDevice) !== true;
    this.#mode.question(message, ends, out);
    this.#phase = ends ? "ended" : "asking";
  }

  #end(state: StateName, message: MessageParts | undefined, error: FrameError, out: RenderOutput): void {
    this.#mode.end(state, message, error, out);
    this.#phase = "ended";
  }
}

/** `final` would close the channel on which the device reports a command's result. */
function asksDevice(part: Part): boolean {
  const data = showableDataOf(part) ?? (isDataPart(part) && isObject(part.data) ? part.data : {});
  const commands = Array.isArray(data.commands) ? (data.commands as readonly JsonValue[]) : [];
  return commands.some((one) => isObject(one) && isObject(one.payload) && one.payload.needUploadResult === true);
}

function loseUpdateMetadata({ metadata }: { metadata?: object }, path: string, { losses }: RenderOutput): void {
  if (metadata !== undefined) losses.push(toLoss(LOSSES.updateMetadata, `${path}.metadata`));
}
