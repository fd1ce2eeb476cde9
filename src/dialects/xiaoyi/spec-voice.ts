/** As the documents print it: statuses with their messages, artifacts in chunks under their own ids. */

import { type Loss, toLoss } from "../../model/loss.ts";
import type { Part } from "../../model/message.ts";
import { LOSSES } from "./losses.ts";
import { toPartWires } from "./parts.ts";
import {
  type ArtifactWords,
  artifactFrame,
  type FrameScope,
  type Rendered,
  type StatusOptions,
  statusFrame,
  type Voice,
} from "./rendered.ts";
import { countCodePoints, LONGEST_TEXT, splitText } from "./text-pieces.ts";
import type { FrameError, PartWire, StateWord } from "./wire.ts";

/** Closes an artifact of which all has been sent. */
const NO_MORE: readonly PartWire[] = [{ kind: "text", text: "" }];

export class SpecVoice implements Voice {
  readonly #scope: FrameScope;
  /** Artifacts that were begun and not closed: agents need not say which chunk is the last. */
  readonly #open = new Set<string>();

  constructor(scope: FrameScope) {
    this.#scope = scope;
  }

  begin(): void {}

  artifact({ append, artifact, lastChunk }: ArtifactWords, into: Rendered[], losses: Loss[]): void {
    const { artifactId, parts } = artifact;
    if (lastChunk === true) this.#open.delete(artifactId);
    else this.#open.add(artifactId);
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
    this.#status("working", parts, {}, into, losses);
  }

  question(words: readonly Part[] | undefined, final: boolean, into: Rendered[], losses: Loss[]): void {
    if (final) this.#close(into);
    this.#status("input-required", words, { final }, into, losses);
  }

  end(state: StateWord, words: readonly Part[] | undefined, error: FrameError, into: Rendered[], losses: Loss[]): void {
    this.#close(into);
    this.#status(state, words, { final: true, error }, into, losses);
  }

  #close(into: Rendered[]): void {
    for (const artifactId of this.#open) {
      into.push(artifactFrame(this.#scope, NO_MORE, { artifactId, append: true, lastChunk: true }));
    }
    this.#open.clear();
  }

  /** A state is said once, by the last of as many frames as the words need: nobody reads on after an end. */
  #status(
    state: StateWord,
    words: readonly Part[] | undefined,
    options: StatusOptions,
    into: Rendered[],
    losses: Loss[],
  ): void {
    const loads = words === undefined ? [] : intoLoads(toPartWires(words, "status.message", losses));
    const last = loads.pop();
    for (const parts of loads) into.push(statusFrame(this.#scope, "working", { parts }));
    if (loads.length > 0) losses.push(toLoss(LOSSES.longStatus, "status.message"));
    into.push(statusFrame(this.#scope, state, { ...options, parts: last }));
  }
}

/** As few frames as can carry the parts, none with more text than a frame takes. */
function intoLoads(parts: readonly PartWire[]): PartWire[][] {
  const loads: PartWire[][] = [[]];
  let room = LONGEST_TEXT;
  for (const part of parts.flatMap(intoPieces)) {
    const length = countCodePoints(textIn(part));
    if (length > room) {
      loads.push([]);
      room = LONGEST_TEXT;
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

function intoPieces(part: PartWire): readonly PartWire[] {
  if (part.kind === "text" && part.text.length > LONGEST_TEXT) {
    return splitText(part.text).map((text) => ({ kind: "text", text }));
  }
  if (part.kind === "reasoningText" && part.reasoningText.length > LONGEST_TEXT) {
    return splitText(part.reasoningText).map((reasoningText) => ({ kind: "reasoningText", reasoningText }));
  }
  return [part];
}
