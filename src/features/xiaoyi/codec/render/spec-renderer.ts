/** Renders frames as documented: statuses with their messages, artifacts in chunks under their own ids. */

import { toLoss } from "../../../../core/model/loss.ts";
import {
  type ArtifactChunk,
  artifactFrame,
  countCodePoints,
  type FrameError,
  type FrameScope,
  MAX_FRAME_TEXT,
  type MessageParts,
  type ModeRenderer,
  type PartWire,
  type RenderOutput,
  type StateName,
  type StatusOptions,
  splitText,
  statusFrame,
} from "../frames.ts";
import { LOSSES } from "../losses.ts";
import { encodeParts } from "../parts.ts";

/** Closes an artifact whose content has all been sent. */
const EMPTY_CHUNK: readonly PartWire[] = [{ kind: "text", text: "" }];

export class SpecRenderer implements ModeRenderer {
  readonly #scope: FrameScope;
  /** Artifacts that are still open: agents need not mark the last chunk. */
  readonly #open = new Set<string>();

  constructor(scope: FrameScope) {
    this.#scope = scope;
  }

  begin(): void {}

  artifact({ append, artifact, lastChunk }: ArtifactChunk, { frames, losses }: RenderOutput): void {
    const { artifactId, parts } = artifact;
    if (lastChunk === true) this.#open.delete(artifactId);
    else this.#open.add(artifactId);
    const loads = splitIntoFrames(encodeParts(parts, "artifact", losses));
    for (const [index, load] of loads.entries()) {
      const isLast = index === loads.length - 1;
      const options = { artifactId, append: index > 0 || append === true, lastChunk: isLast && lastChunk === true };
      frames.push(artifactFrame(this.#scope, load, options));
    }
  }

  progress(message: MessageParts, out: RenderOutput): void {
    this.#status("working", message, {}, out);
  }

  question(message: MessageParts | undefined, final: boolean, out: RenderOutput): void {
    if (final) this.#close(out);
    this.#status("input-required", message, { final }, out);
  }

  end(state: StateName, message: MessageParts | undefined, error: FrameError, out: RenderOutput): void {
    this.#close(out);
    this.#status(state, message, { final: true, error }, out);
  }

  #close({ frames }: RenderOutput): void {
    for (const artifactId of this.#open) {
      frames.push(artifactFrame(this.#scope, EMPTY_CHUNK, { artifactId, append: true, lastChunk: true }));
    }
    this.#open.clear();
  }

  /** The state is sent once, in the last of the frames that the message needs: readers stop at a final state. */
  #status(state: StateName, message: MessageParts | undefined, options: StatusOptions, out: RenderOutput): void {
    const { frames, losses } = out;
    const loads = message === undefined ? [] : splitIntoFrames(encodeParts(message, "status.message", losses));
    const last = loads.pop();
    for (const parts of loads) frames.push(statusFrame(this.#scope, "working", { parts }));
    if (loads.length > 0) losses.push(toLoss(LOSSES.longStatus, "status.message"));
    frames.push(statusFrame(this.#scope, state, { ...options, parts: last }));
  }
}

/** Distributes the parts over as few frames as possible, none of which exceeds the maximum text length. */
function splitIntoFrames(parts: readonly PartWire[]): PartWire[][] {
  const loads: PartWire[][] = [[]];
  let room = MAX_FRAME_TEXT;
  for (const part of parts.flatMap(splitPart)) {
    const length = countCodePoints(textIn(part));
    if (length > room) {
      loads.push([]);
      room = MAX_FRAME_TEXT;
    }
    (loads.at(-1) as PartWire[]).push(part);
    room -= length;
  }
  return loads;
}

function textIn(part: PartWire): string {
  if (part.kind === "text") return part.text;
  return part.kind === "reasoningText" ? part.reasoningText : "";
}

function splitPart(part: PartWire): readonly PartWire[] {
  const text = textIn(part);
  if (text.length <= MAX_FRAME_TEXT) return [part];
  return splitText(text).map((piece) =>
    part.kind === "text" ? { kind: "text", text: piece } : { kind: "reasoningText", reasoningText: piece },
  );
}
