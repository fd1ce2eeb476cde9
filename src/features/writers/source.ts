/** The text itself, as the paragraphs that an outline carries along. */

import { safeCut } from "./plain-text.ts";

/** Characters of a text that its outline carries; the rest of a longer one is left out, at the end of each section. */
export const MAX_SOURCE_LENGTH = 80_000;

/** Markdown blocks of a part of a text, as they are, up to `limit` characters. */
export function splitParagraphs(text: string, limit: number): string[] {
  const paragraphs: string[] = [];
  let left = limit;
  for (const block of toPlain(text.slice(0, limit + MAX_BLANK)).split(/\n[ \t]*\n\s*/)) {
    // What is left of the underline of a heading.
    const paragraph = cutToSentence(block.replace(/^\s*(?:[-=]{3,}[ \t]*\n)?/, "").trimEnd(), left);
    if (paragraph === "" || /^[#\s]*$/.test(paragraph)) continue;
    paragraphs.push(paragraph);
    left -= paragraph.length;
    if (left <= 0) break;
  }
  return paragraphs;
}

/** Blank space that does not count. */
const MAX_BLANK = 1_000;

/** No headings above those of an article's sections, no control characters, no halves of characters. */
function toPlain(text: string): string {
  return text
    .replace(/\p{Surrogate}/gu, "\ufffd")
    .replace(/[^\P{Cc}\n\t]/gu, "")
    .replace(/^[ \t]*#{1,2}(?=[ \t])/gm, "###");
}

function cutToSentence(text: string, limit: number): string {
  if (text.length <= limit) return text;
  const part = text.slice(0, safeCut(text, 0, limit));
  const end = Math.max(...["。", "！", "？", ". ", "! ", "? "].map((mark) => part.lastIndexOf(mark)));
  return end > 0 ? part.slice(0, end + 1) : part;
}

/** Of an outline that was received. */
export function readParagraphs(value: unknown): string[] {
  if (!Array.isArray(value)) return [];
  const text = value
    .slice(0, MAX_PARAGRAPHS)
    .filter((item) => typeof item === "string")
    .join("\n\n");
  return splitParagraphs(text, MAX_SOURCE_LENGTH);
}

const MAX_PARAGRAPHS = 5_000;
