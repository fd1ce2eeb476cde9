/** As the documents print it: statuses with their messages, artifacts in chunks under their own ids. */
import type { Loss } from "../../model/loss.ts";
import type { Part } from "../../model/part.ts";
import { toPartWires } from "./parts.ts";
import {
  type ArtifactWords,
  artifactFrame,
  type FrameScope,
  type Rendered,
  statusFrame,
  type Voice,
} from "./rendered.ts";
import { countCodePoints, LONGEST_TEXT, splitText } from "./text-pieces.ts";
import type { FrameError, PartWire, StateWord } from "./wire.ts";

export class SpecVoice implements Voice {
  readonly #scope: FrameScope;

  constructor(scope: FrameScope) {
    this.#scope = scope;
  }

  begin(): void {}

  artifact({ append, artifact, lastChunk }: ArtifactWords, into: Rendered[], losses: Loss[]): void {
    const { artifactId, parts } = artifact;
    const loads = intoLoads(toPartWires(parts, "artifact", losses));
    for (const [index, load] of loads.entries()) {
      const isLast = index === loads.length - 1;
      into.push(
        artifactFrame(this.#scope, load, {
          artifactId,
          append: index > 0 || append === true,
          lastChunk: isLast && lastChunk === true,
        }),
      );
    }
  }

  progress(parts: readonly Part[], into: Rendered[], losses: Loss[]): void {
    into.push(statusFrame(this.#scope, "working", { parts: toPartWires(parts, "status.message", losses) }));
  }

  question(words: readonly Part[] | undefined, final: boolean, into: Rendered[], losses: Loss[]): void {
    const parts = words && toPartWires(words, "status.message", losses);
    into.push(statusFrame(this.#scope, "input-required", { final, parts }));
  }

  end(state: StateWord, words: readonly Part[] | undefined, error: FrameError, into: Rendered[], losses: Loss[]): void {
    const parts = words && toPartWires(words, "status.message", losses);
    into.push(statusFrame(this.#scope, state, { final: true, error, parts }));
  }
}

/** As few frames as can carry the parts, none with more text than a frame takes. */
function intoLoads(parts: readonly PartWire[]): PartWire[][] {
  const loads: PartWire[][] = [[]];
  let room = LONGEST_TEXT;
  for (const part of parts.flatMap(intoPieces)) {
    const length = part.kind === "text" ? countCodePoints(part.text) : 0;
    if (length > room) {
      loads.push([]);
      room = LONGEST_TEXT;
    }
    (loads.at(-1) as PartWire[]).push(part);
    room -= length;
  }
  return loads;
}

function intoPieces(part: PartWire): readonly PartWire[] {
  if (part.kind === "text" && part.text.length > LONGEST_TEXT) {
    return splitText(part.text).map((text) => ({ kind: "text", text }));
  }
  if (part.kind === "reasoningText" && part.reasoningText.length > LONGEST_TEXT) {
    return splitText(part.reasoningText).map((reasoningText) => ({ kind: "reasoningText", reasoningText }));
  }
  return [part];
}
