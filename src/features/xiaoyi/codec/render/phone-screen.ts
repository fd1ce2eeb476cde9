/**
 * The text that a phone shows for a task. A frame that does not append replaces all of it, whichever artifact it names;
 * a frame that appends under a new id adds to it. The beginning is therefore sent in full each time it grows, and once
 * it fills a frame, the rest is appended in pieces.
 */

import { deriveId } from "../../../../core/dialects/shared/responses.ts";
import { countCodePoints, MAX_FRAME_TEXT, type PartWire, splitText } from "../frames.ts";

export interface TextStep {
  /** False: replaces everything shown so far. */
  readonly append: boolean;
  readonly text: string;
}

interface Section {
  readonly key: string;
  text: string;
}

const BETWEEN_SECTIONS = "\n\n";

export class ShownText {
  readonly #sections: Section[] = [];
  /** The part of the text that fits one frame. */
  #head = "";
  #headLength = 0;
  #full = false;

  get latest(): string {
    return this.#sections.at(-1)?.text ?? "";
  }

  /** Whether a section begins, and is not the first. */
  isAfterOther(key: string): boolean {
    return this.latest !== "" && this.#sections.every((section) => section.key !== key);
  }

  /** Sets or extends a section of the text: an artifact or a status message. */
  put(key: string, text: string, append: boolean): TextStep[] {
    const known = this.#sections.find((section) => section.key === key);
    if (text === "" && (append || known === undefined)) return [];
    if (known === undefined) {
      const isFirst = this.#sections.every((section) => section.text === "");
      this.#sections.push({ key, text });
      return this.#grow(isFirst ? text : BETWEEN_SECTIONS + text);
    }
    if (append && known.text !== "" && known === this.#sections.at(-1)) {
      known.text += text;
      return this.#grow(text);
    }
    const before = known.text;
    known.text = append ? before + text : text;
    return known.text === before ? [] : this.#again();
  }

  /** Text that was already sent has changed, so everything is sent again. */
  #again(): TextStep[] {
    this.#head = "";
    this.#headLength = 0;
    this.#full = false;
    const texts = this.#sections.map(({ text }) => text).filter((text) => text !== "");
    return this.#grow(texts.join(BETWEEN_SECTIONS));
  }

  #grow(added: string): TextStep[] {
    if (this.#full) return splitText(added).map(toAppendStep);
    this.#headLength += countCodePoints(added);
    this.#head += added;
    this.#full = this.#headLength >= MAX_FRAME_TEXT;
    if (this.#headLength <= MAX_FRAME_TEXT) return [{ append: false, text: this.#head }];
    const [head = "", ...rest] = splitText(this.#head);
    this.#head = head;
    return [{ append: false, text: head }, ...rest.map(toAppendStep)];
  }
}

function toAppendStep(text: string): TextStep {
  return { append: true, text };
}

/** What an artifact shows besides text. */
export interface Attachments {
  readonly reasoning: string;
  /** Cards, commands and similar content, and uploaded files, each shown separately. */
  readonly items: readonly PartWire[];
}

interface ShownState {
  reasoning: string;
  readonly items: Set<string>;
}

/** Attachments cannot be removed from the screen: of a replacement, only new content is shown. */
export class ShownAttachments {
  readonly #artifacts = new Map<string, ShownState>();

  /** The attachments that were not shown yet. */
  put(key: string, attachments: Attachments, append: boolean): Attachments {
    const { items, reasoning } = attachments;
    if (reasoning === "" && items.length === 0) return attachments;
    const shown: ShownState = this.#artifacts.get(key) ?? { reasoning: "", items: new Set() };
    this.#artifacts.set(key, shown);
    const fresh = append ? attachments : withoutShown(attachments, shown);
    shown.reasoning = append ? shown.reasoning + reasoning : reasoning;
    for (const item of items) shown.items.add(keyOf(item));
    return fresh;
  }
}

function withoutShown({ items, reasoning }: Attachments, shown: ShownState): Attachments {
  return {
    reasoning: reasoning.startsWith(shown.reasoning) ? reasoning.slice(shown.reasoning.length) : reasoning,
    items: items.filter((item) => !shown.items.has(keyOf(item))),
  };
}

function keyOf(part: PartWire): string {
  return deriveId("beside", part);
}
