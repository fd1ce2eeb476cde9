/** Frames on their way to the platform. */

import type { JsonObject } from "../../model/json.ts";
import type { Loss } from "../../model/loss.ts";
import type { Part } from "../../model/message.ts";
import type { Artifact } from "../../model/task.ts";
import type { JsonRpcId } from "../../wire/json-rpc.ts";

/** Xiaoyi's JSON: what an agent says to the platform. Members that are undefined are left out by `JSON.stringify`. */

export interface TextWire {
  readonly kind: "text";
  readonly text: string;
}

/** Shown as a bubble of its own that folds away when the answer comes; empty text shows three dots. */
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
    /** Of a file that was uploaded to the platform. */
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

/** `append`, `lastChunk` and `final` stand beside the artifact, not in it. */
interface ArtifactResult {
  readonly taskId: string;
  readonly kind: "artifact-update";
  readonly append: boolean;
  readonly lastChunk: boolean;
  readonly final: boolean;
  readonly artifact: { readonly artifactId: string; readonly parts: readonly PartWire[] };
}

/** Stands beside the result, also where nothing is wrong: `code` is 0 then. */
export interface FrameError {
  readonly code: number;
  readonly message: string;
}

export const SUCCESS: FrameError = Object.freeze({ code: 0, message: "" });
/** One whole answer, or one frame of a stream. Every frame echoes the id of its request. */
export function toResponse(id: JsonRpcId, result: object, error: FrameError = SUCCESS): string {
  return JSON.stringify({ jsonrpc: "2.0", id, result, error });
}

export function toErrorResponse(id: JsonRpcId, error: FrameError): string {
  return JSON.stringify({ jsonrpc: "2.0", id, error });
}

/** Text in pieces that a frame can carry. */

/** Of one frame, in code points. Longer ones are reported to cost the connection. */
export const MAX_FRAME_TEXT = 4_000;

const HIGH_SURROGATES = [0xd800, 0xdbff] as const;
const LOW_SURROGATES = [0xdc00, 0xdfff] as const;

/** Where the code point after the one at `at` begins. */
function nextCodePoint(text: string, at: number): number {
  return isWithin(text.charCodeAt(at), HIGH_SURROGATES) && isWithin(text.charCodeAt(at + 1), LOW_SURROGATES)
    ? at + 2
    : at + 1;
}

function isWithin(unit: number, [first, last]: readonly [number, number]): boolean {
  return unit >= first && unit <= last;
}

export function countCodePoints(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; at = nextCodePoint(text, at)) count++;
  return count;
}

/** The last code points of a text, at most so many. */
export function lastCodePoints(text: string, max: number = MAX_FRAME_TEXT): string {
  if (text.length <= max) return text;
  const surplus = countCodePoints(text) - max;
  let start = 0;
  for (let passed = 0; passed < surplus; passed++) start = nextCodePoint(text, start);
  return text.slice(start);
}

/** Pieces of at most `longest` code points that joined are the text; none for empty text. No pair is torn apart. */
export function splitText(text: string, max: number = MAX_FRAME_TEXT): string[] {
  // Never more code points than code units: most texts need no counting.
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
  /** What of the screen it changes, where a later frame can stand for it. */
  readonly shows?: "all-text" | "all-reasoning" | "more-text";
  /** Said again it would show twice, or be done twice: a card, a command, a file. */
  readonly once?: true;
}

/** What a task's own frames have in common. */
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
  const message = parts === undefined ? undefined : ({ role: "agent", parts } as const);
  const status = message === undefined ? { state } : { state, message };
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
  /** A new one unless given. */
  readonly artifactId?: string;
}

export function artifactFrame(
  scope: FrameScope,
  parts: readonly PartWire[],
  { append, artifactId = scope.artifactId(), lastChunk = true, shows }: ArtifactOptions,
): RenderedFrame {
  const { taskId } = scope;
  const artifact = { artifactId, parts };
  return {
    result: { taskId, kind: "artifact-update", append, lastChunk, final: false, artifact },
    error: SUCCESS,
    ...(shows === undefined ? undefined : { shows }),
  };
}

/**
 * One frame for two that follow each other, if the first has not been sent yet; undefined where both are needed. Whoever
 * cannot send as fast as an agent speaks keeps one frame instead of thousands.
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

/** Frames that show more text have one part. */
function onlyText({ result }: RenderedFrame): string {
  const [part] = result.kind === "artifact-update" ? result.artifact.parts : [];
  return part?.kind === "text" ? part.text : "";
}

/** Adds frames to those not sent yet. */
export function enqueueFrames(frames: readonly RenderedFrame[], waiting: RenderedFrame[]): void {
  for (const frame of frames) {
    const last = waiting.at(-1);
    const both = last === undefined ? undefined : coalesce(last, frame);
    if (both === undefined) waiting.push(frame);
    else waiting[waiting.length - 1] = both;
  }
}

/** How one kind of reader is told things. Frames and losses are added to what is given. */
export interface ModeRenderer {
  /** Beside the first status. */
  begin(into: RenderedFrame[]): void;
  artifact(update: ArtifactChunk, into: RenderedFrame[], losses: Loss[]): void;
  /** What a working agent says. */
  progress(parts: MessageParts, into: RenderedFrame[], losses: Loss[]): void;
  /** The agent waits for an answer; `final` ends the stream with the question. */
  question(message: MessageParts | undefined, final: boolean, into: RenderedFrame[], losses: Loss[]): void;
  /** The last frame, with what stands before it. */
  end(
    state: StateName,
    message: MessageParts | undefined,
    error: FrameError,
    into: RenderedFrame[],
    losses: Loss[],
  ): void;
}

type MessageParts = readonly Part[];

export interface ArtifactChunk {
  readonly artifact: Artifact;
  readonly append?: boolean;
  readonly lastChunk?: boolean;
}
