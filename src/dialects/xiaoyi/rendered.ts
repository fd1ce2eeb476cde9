/** Frames on their way to the platform. */

import type { Loss } from "../../model/loss.ts";
import type { Part } from "../../model/message.ts";
import type { Artifact } from "../../model/task.ts";
import { countCodePoints, LONGEST_TEXT } from "./text-pieces.ts";
import {
  type ArtifactResult,
  type FrameError,
  type PartWire,
  type StateWord,
  type StatusResult,
  SUCCESS,
} from "./wire.ts";

export interface Rendered {
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
  state: StateWord,
  { error = SUCCESS, final = false, parts }: StatusOptions = {},
): Rendered {
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
  readonly shows?: NonNullable<Rendered["shows"]>;
  /** A new one unless given. */
  readonly artifactId?: string;
}

export function artifactFrame(
  scope: FrameScope,
  parts: readonly PartWire[],
  { append, artifactId = scope.artifactId(), lastChunk = true, shows }: ArtifactOptions,
): Rendered {
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
export function coalesce(earlier: Rendered, later: Rendered): Rendered | undefined {
  if (earlier.shows === undefined || earlier.shows !== later.shows) return undefined;
  if (later.shows !== "more-text") return later;
  const text = onlyText(earlier) + onlyText(later);
  if (text.length > 2 * LONGEST_TEXT || countCodePoints(text) > LONGEST_TEXT) return undefined;
  const result = later.result as ArtifactResult;
  const artifact = { ...result.artifact, parts: [{ kind: "text" as const, text }] };
  return { ...later, result: { ...result, artifact } };
}

/** Frames that show more text have one part. */
function onlyText({ result }: Rendered): string {
  const [part] = result.kind === "artifact-update" ? result.artifact.parts : [];
  return part?.kind === "text" ? part.text : "";
}

/** Adds frames to those not sent yet. */
export function queue(frames: readonly Rendered[], waiting: Rendered[]): void {
  for (const frame of frames) {
    const last = waiting.at(-1);
    const both = last === undefined ? undefined : coalesce(last, frame);
    if (both === undefined) waiting.push(frame);
    else waiting[waiting.length - 1] = both;
  }
}

/** How one kind of reader is told things. Frames and losses are added to what is given. */
export interface Voice {
  /** Beside the first status. */
  begin(into: Rendered[]): void;
  artifact(update: ArtifactWords, into: Rendered[], losses: Loss[]): void;
  /** What a working agent says. */
  progress(parts: Words, into: Rendered[], losses: Loss[]): void;
  /** The agent waits for an answer; `final` ends the stream with the question. */
  question(words: Words | undefined, final: boolean, into: Rendered[], losses: Loss[]): void;
  /** The last frame, with what stands before it. */
  end(state: StateWord, words: Words | undefined, error: FrameError, into: Rendered[], losses: Loss[]): void;
}

type Words = readonly Part[];

export interface ArtifactWords {
  readonly artifact: Artifact;
  readonly append?: boolean;
  readonly lastChunk?: boolean;
}
