/** Frames that are sent to the platform. `JSON.stringify` omits undefined members. */

import { type JsonObject, omitUndefined } from "../../../core/model/json.ts";
import type { Loss } from "../../../core/model/loss.ts";
import type { Part } from "../../../core/model/message.ts";
import type { Artifact } from "../../../core/model/task.ts";
import type { JsonRpcId } from "../../../core/wire/json-rpc.ts";

export interface TextWire {
  readonly kind: "text";
  readonly text: string;
}

/** Shown in a separate bubble that collapses when the answer arrives; empty text shows three dots. */
interface ReasoningWire {
  readonly kind: "reasoningText";
  readonly reasoningText: string;
}

export interface FileWire {
  readonly kind: "file";
  readonly file: {
    readonly name?: string | undefined;
    readonly mimeType?: string | undefined;
    readonly uri?: string;
    readonly bytes?: string;
    /** The id of a file that was uploaded to the platform. */
    readonly fileId?: string;
  };
}

export interface DataWire {
  readonly kind: "data";
  readonly data: JsonObject;
}

export type PartWire = TextWire | ReasoningWire | FileWire | DataWire;

export type StateName = "submitted" | "working" | "input-required" | "completed" | "canceled" | "failed" | "unknown";

interface StatusResult {
  readonly taskId: string;
  readonly kind: "status-update";
  readonly final: boolean;
  readonly status: {
    readonly state: StateName;
    readonly message?: { readonly role: "agent"; readonly parts: readonly PartWire[] };
  };
}

/** `append`, `lastChunk` and `final` are siblings of the artifact, not members of it. */
interface ArtifactResult {
  readonly taskId: string;
  readonly kind: "artifact-update";
  readonly append: boolean;
  readonly lastChunk: boolean;
  readonly final: boolean;
  readonly artifact: { readonly artifactId: string; readonly parts: readonly PartWire[] };
}

/** Sent beside the result, also on success: `code` is 0 then. */
export interface FrameError {
  readonly code: number;
  readonly message: string;
  readonly data?: { readonly reason: string };
}

export const SUCCESS: FrameError = Object.freeze({ code: 0, message: "" });
const SUCCESS_JSON = JSON.stringify(SUCCESS);

/** A complete answer, or one frame of a stream. Every frame echoes the request id. */
export function toResponse(id: JsonRpcId, result: object, error: FrameError = SUCCESS): string {
  const errorJson = error === SUCCESS ? SUCCESS_JSON : JSON.stringify(error);
  return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${JSON.stringify(result)},"error":${errorJson}}`;
}

export function toErrorResponse(id: JsonRpcId, error: FrameError): string {
  return JSON.stringify({ jsonrpc: "2.0", id, error });
}

/** Maximum text of one frame, in code points. Longer frames are reported to close the connection. */
export const MAX_FRAME_TEXT = 4_000;

/** Index of the code point after the one at `at`. */
function nextCodePoint(text: string, at: number): number {
  return (text.codePointAt(at) ?? 0) > 0xffff ? at + 2 : at + 1;
}

export function countCodePoints(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; at = nextCodePoint(text, at)) count++;
  return count;
}

/** The last `max` code points of a text. */
export function lastCodePoints(text: string, max: number = MAX_FRAME_TEXT): string {
  if (text.length <= max) return text;
  const surplus = countCodePoints(text) - max;
  let start = 0;
  for (let passed = 0; passed < surplus; passed++) start = nextCodePoint(text, start);
  return text.slice(start);
}

/** Splits text into pieces of at most `max` code points; empty text has none. Surrogate pairs are not split. */
export function splitText(text: string, max: number = MAX_FRAME_TEXT): string[] {
  // A text never has more code points than code units, so most texts need no counting.
  if (text.length <= max) return text === "" ? [] : [text];
  const pieces: string[] = [];
  let start = 0;
  let count = 0;
  for (let at = 0; at < text.length; at = nextCodePoint(text, at)) {
    if (count === max) {
      pieces.push(text.slice(start, at));
      start = at;
      count = 0;
    }
    count++;
  }
  pieces.push(text.slice(start));
  return pieces;
}

export interface RenderedFrame {
  readonly result: StatusResult | ArtifactResult;
  readonly error: FrameError;
  /** What the frame changes on the screen, if a later frame can replace it. */
  readonly shows?: "all-text" | "all-reasoning" | "more-text";
  /** Must not be sent twice, as it would be shown or executed twice: a card, a command, a file. */
  readonly once?: true;
}

export interface FrameScope {
  /** The platform's id of the task. */
  readonly taskId: string;
  readonly artifactId: () => string;
}

export function statusFrame(
  { taskId }: FrameScope,
  state: StateName,
  { error = SUCCESS, final = false, parts }: StatusOptions = {},
): RenderedFrame {
  const status = parts === undefined ? { state } : { state, message: { role: "agent", parts } as const };
  return { result: { taskId, kind: "status-update", final, status }, error };
}

export interface StatusOptions {
  readonly final?: boolean;
  readonly error?: FrameError;
  readonly parts?: readonly PartWire[] | undefined;
}

interface ArtifactOptions {
  readonly append: boolean;
  readonly lastChunk?: boolean;
  readonly shows?: NonNullable<RenderedFrame["shows"]>;
  /** Default: a new id. */
  readonly artifactId?: string;
}

export function artifactFrame(
  scope: FrameScope,
  parts: readonly PartWire[],
  { append, artifactId = scope.artifactId(), lastChunk = true, shows }: ArtifactOptions,
): RenderedFrame {
  const { taskId } = scope;
  const artifact = { artifactId, parts };
  const result = { taskId, kind: "artifact-update", append, lastChunk, final: false, artifact } as const;
  return { result, error: SUCCESS, ...omitUndefined({ shows }) };
}

/**
 * Merges two consecutive frames if the first has not been sent yet; undefined if both are needed. A sender that is
 * slower than the agent then queues one frame instead of thousands.
 */
export function coalesce(earlier: RenderedFrame, later: RenderedFrame): RenderedFrame | undefined {
  if (earlier.shows === undefined || earlier.shows !== later.shows) return undefined;
  if (later.shows !== "more-text") return later;
  const text = onlyText(earlier) + onlyText(later);
  if (text.length > 2 * MAX_FRAME_TEXT || countCodePoints(text) > MAX_FRAME_TEXT) return undefined;
  const result = later.result as ArtifactResult;
  const artifact = { ...result.artifact, parts: [{ kind: "text" as const, text }] };
  return { ...later, result: { ...result, artifact } };
}

/** Frames with `more-text` have one part. */
function onlyText({ result }: RenderedFrame): string {
  const [part] = result.kind === "artifact-update" ? result.artifact.parts : [];
  return part?.kind === "text" ? part.text : "";
}

/** Adds frames to the queue, coalescing where possible. */
export function enqueueFrames(frames: readonly RenderedFrame[], waiting: RenderedFrame[]): void {
  for (const frame of frames) {
    const last = waiting.at(-1);
    const both = last === undefined ? undefined : coalesce(last, frame);
    if (both === undefined) waiting.push(frame);
    else waiting[waiting.length - 1] = both;
  }
}

export interface RenderOutput {
  readonly frames: RenderedFrame[];
  readonly losses: Loss[];
}

/** Renders for one kind of reader. */
export interface ModeRenderer {
  /** Sent with the first status. */
  begin(out: RenderOutput): void;
  artifact(update: ArtifactChunk, out: RenderOutput): void;
  /** A message from a working agent. */
  progress(message: MessageParts, out: RenderOutput): void;
  /** The agent waits for input; `final` ends the stream with the question. */
  question(message: MessageParts | undefined, final: boolean, out: RenderOutput): void;
  /** The last frame, and what is sent before it. */
  end(state: StateName, message: MessageParts | undefined, error: FrameError, out: RenderOutput): void;
}

export type MessageParts = readonly Part[];

export interface ArtifactChunk {
  readonly artifact: Artifact;
  readonly append?: boolean;
  readonly lastChunk?: boolean;
}
