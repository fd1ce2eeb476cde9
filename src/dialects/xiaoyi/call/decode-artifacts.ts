/**
 * Which artifact a frame of an agent's answer is about. Some agents do as the documents print: what belongs together
 * has one id, and another id is something else. Others do as phones need it: every frame has a new id, and a text is
 * sent whole each time it grows, or in pieces that append. No frame declares which, but it shows:
 *
 * - A piece that appends under a new id continues the text that was sent last, whatever else the frame declares: there
 *   is nothing else that it could append to, and phones show it so.
 * - An agent that uses an id again means something by ids; so does one that sends a text as not the last piece, as long
 *   as it does not append under new ids.
 * - An agent that sends under a new id what was sent before, and more, or appends under new ids, means nothing by them;
 *   nor does one that begins with the three dots that only phones show. From these a text that does not append replaces
 *   all of it.
 *
 * While it does not show, another id is another artifact: to show too much is better than to lose a text.
 */

import type { Part } from "../../../model/message.ts";
import { deriveId } from "../../shared/responses.ts";
import { type ArtifactFrame, isAnswerText } from "./decode-frame.ts";

export interface ArtifactChange {
  readonly artifactId: string;
  /** False: instead of all that the artifact was. */
  readonly append: boolean;
  readonly parts: readonly Part[];
}

/** How many artifacts, and how many things of which it is known that they were given already. */
const MAX_TRACKED = 1_000;

export class ArtifactTracker {
  /** The text of each artifact; empty where there is more to it than text. */
  readonly #texts = new Map<string, string>();
  readonly #items = new Set<string>();
  /** The artifact whose text was said last. */
  #latest: string | undefined;
  /** An id was used for more than one piece. */
  #reusesIds = false;
  /** A text was sent of which more was to come. */
  #leavesOpen = false;
  #appendsUnderNewIds = false;
  #forPhones = false;
  #length = 0;

  /** Characters of all texts. */
  get length(): number {
    return this.#length;
  }

  /** The text that was said last. */
  get latestText(): string {
    return this.#latest === undefined ? "" : (this.#texts.get(this.#latest) ?? "");
  }

  /** Whether it can be believed that a piece was the last of its artifact: phones are told so each time. */
  get usesStableIds(): boolean {
    return this.#reusesIds || (this.#leavesOpen && !this.#appendsUnderNewIds);
  }

  /** Empty text says nothing: those who end an answer with it do not mean to erase it. */
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

  /** Whether a piece appends to what only the text that was sent last can be. */
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

  /** The artifact that a text under a new id is the continuation or another version of, if any. */
  #continued(text: string, append: boolean, lastChunk: boolean | undefined): string | undefined {
    const isVersion = this.#isGrown(text) || (lastChunk !== false && isVersionOf(text, this.latestText));
    return append || this.#likePhones || isVersion ? this.#latest : undefined;
  }

  /** All of the text that was sent last, and more: in its place nothing is lost, whatever else was meant. */
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

  /** Agents whose connection broke say again what may not have arrived, and cards have a new id each time. */
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

/** Whether both begin alike: two versions of one text do, two texts do not. */
function isVersionOf(text: string, before: string): boolean {
  const enough = before.length / 2;
  let alike = 0;
  while (alike < enough && text[alike] === before[alike]) alike++;
  return before !== "" && alike >= enough;
}
