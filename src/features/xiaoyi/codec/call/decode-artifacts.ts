/**
 * Determines which artifact a frame of an agent's answer belongs to. Some agents follow the documentation: chunks of an
 * artifact share an id, and another id is another artifact. Others do what phones need: every frame has a new id, and a
 * text is sent in full each time it grows, or in pieces that append. No frame declares which, so it is inferred:
 *
 * - A chunk that appends under a new id continues the latest text, whatever else the frame declares: there is nothing
 *   else it could append to, and phones show it that way.
 * - An agent that reuses an id has meaningful ids; so has one that sends a text with `lastChunk: false`, as long as it
 *   does not append under new ids.
 * - An agent that repeats the previous text and extends it under a new id, or appends under new ids, has meaningless
 *   ids; so has one that begins with the three dots that only phones show. From these agents, a text that does not
 *   append replaces all of it.
 *
 * Until this is known, another id is another artifact: showing too much is better than losing text.
 */

import { deriveId } from "../../../../core/dialects/shared/responses.ts";
import type { Part } from "../../../../core/model/message.ts";
import type { Artifact } from "../../../../core/model/task.ts";
import { type ArtifactFrame, isAnswerText } from "./decode-frame.ts";

export interface ArtifactChange {
  readonly artifactId: string;
  /** False: replaces the artifact's content. */
  readonly append: boolean;
  readonly parts: readonly Part[];
}

/** Maximum number of artifacts, and of items, that are remembered in order to detect repetitions. */
const MAX_TRACKED = 1_000;

export class ArtifactTracker {
  /** The text of each artifact; empty if the artifact holds anything other than text. */
  readonly #texts = new Map<string, string>();
  readonly #items = new Set<string>();
  #latest: string | undefined;
  /** An id was used for more than one chunk. */
  #reusesIds = false;
  /** A text was sent with more to follow. */
  #leavesOpen = false;
  #appendsUnderNewIds = false;
  #forPhones = false;
  #length = 0;

  /** `known`: artifacts of the answer that were received before, in another process. */
  constructor(known: readonly Artifact[] = []) {
    for (const { artifactId, parts } of known) {
      const texts = parts.filter(isAnswerText);
      for (const part of parts) if (!isAnswerText(part)) this.#isNew(part);
      const isText = texts.length === parts.length;
      this.#setText(artifactId, isText ? texts.map(({ text }) => text).join("") : "");
      if (isText) this.#latest = artifactId;
    }
  }

  /** Length of all texts, in characters. */
  get length(): number {
    return this.#length;
  }

  get latestText(): string {
    return this.#latest === undefined ? "" : (this.#texts.get(this.#latest) ?? "");
  }

  /** Whether `lastChunk` is reliable: agents written for phones set it on every frame. */
  get usesStableIds(): boolean {
    return this.#reusesIds || (this.#leavesOpen && !this.#appendsUnderNewIds);
  }

  /** Empty text is ignored: agents that end an answer with it do not mean to erase the answer. */
  put({ append, artifactId, lastChunk, parts, reasoning }: ArtifactFrame): ArtifactChange[] {
    if (reasoning === "") this.#forPhones = true;
    const texts = parts.filter(isAnswerText);
    if (texts.length === parts.length) return this.#putText(artifactId, texts, append, lastChunk);
    if (this.#likePhones || (texts.length > 0 && this.#continuesLatest(artifactId, append))) {
      return [...this.#putText(artifactId, texts, append, lastChunk), ...this.#putItems(artifactId, parts)];
    }
    const change = { artifactId, append: append && this.#texts.has(artifactId), parts };
    this.#setText(artifactId, "");
    return [change];
  }

  get #likePhones(): boolean {
    return this.#forPhones && !this.usesStableIds;
  }

  /** Whether a chunk appends to something that can only be the latest text. */
  #continuesLatest(artifactId: string, append: boolean): boolean {
    return append && this.#latest !== undefined && !this.#texts.has(artifactId);
  }

  #putText(
    artifactId: string,
    parts: readonly (Part & { readonly text: string })[],
    append: boolean,
    lastChunk: boolean | undefined,
  ): ArtifactChange[] {
    const text = parts.map((part) => part.text).join("");
    if (text === "") return [];
    const isKnown = this.#texts.has(artifactId);
    if (isKnown) this.#reusesIds = true;
    else if (this.#continuesLatest(artifactId, append)) this.#appendsUnderNewIds = true;
    else if (lastChunk === false && !append && !this.#isGrown(text)) this.#leavesOpen = true;
    const into = isKnown ? artifactId : (this.#continued(text, append, lastChunk) ?? artifactId);
    if (into !== artifactId) this.#forPhones = true;
    this.#latest = into;
    return this.#change(into, text, append, parts);
  }

  /** The artifact that a text under a new id continues or replaces, if any. */
  #continued(text: string, append: boolean, lastChunk: boolean | undefined): string | undefined {
    const isVersion = this.#isGrown(text) || (lastChunk !== false && isVersionOf(text, this.latestText));
    return append || this.#likePhones || isVersion ? this.#latest : undefined;
  }

  /** Whether the text starts with the whole latest text: replacing that one loses nothing, whatever the agent meant. */
  #isGrown(text: string): boolean {
    return this.latestText !== "" && text.startsWith(this.latestText);
  }

  #change(artifactId: string, text: string, append: boolean, parts: readonly Part[]): ArtifactChange[] {
    const before = this.#texts.get(artifactId);
    if (append && before !== undefined) {
      this.#setText(artifactId, before + text);
      return [{ artifactId, append, parts }];
    }
    this.#setText(artifactId, text);
    if (before === undefined || before === "" || !text.startsWith(before))
      return [{ artifactId, append: false, parts }];
    const added = text.slice(before.length);
    return added === "" ? [] : [{ artifactId, append: true, parts: [{ text: added }] }];
  }

  /** After a lost connection, agents repeat what may not have arrived, and cards get a new id each time. */
  #putItems(artifactId: string, parts: readonly Part[]): ArtifactChange[] {
    const things = parts.filter((part) => !isAnswerText(part) && this.#isNew(part));
    if (things.length === 0) return [];
    const append = this.#texts.has(artifactId);
    if (!append) this.#setText(artifactId, "");
    return [{ artifactId, append, parts: things }];
  }

  #isNew(thing: Part): boolean {
    const id = deriveId("thing", thing);
    if (this.#items.has(id)) return false;
    if (this.#items.size < MAX_TRACKED) this.#items.add(id);
    return true;
  }

  #setText(artifactId: string, text: string): void {
    const before = this.#texts.get(artifactId);
    if (before === undefined && this.#texts.size >= MAX_TRACKED) return;
    this.#texts.set(artifactId, text);
    this.#length += text.length - (before?.length ?? 0);
  }
}

/** Whether both texts share a long enough prefix: versions of one text do, different texts do not. */
function isVersionOf(text: string, before: string): boolean {
  const enough = before.length / 2;
  let alike = 0;
  while (alike < enough && text[alike] === before[alike]) alike++;
  return before !== "" && alike >= enough;
}
