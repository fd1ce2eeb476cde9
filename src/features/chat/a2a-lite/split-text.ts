/** Cuts texts where people would: between lines, else between words, else between graphemes. */

import { foldWidth, isLineBreak, isSpace } from "./characters.ts";

export interface PostLimit {
  readonly max: number;
  readonly unit: "bytes" | "characters";
  /** What others add to every post, in the same unit, e.g. for a mention. */
  readonly reserve?: number;
  readonly singleLine?: boolean;
}

/** Longer messages are cut off. */
export const MAX_PIECES = 200;

const ELLIPSIS = "…";
const ELLIPSIS_SIZE = 3;

export function roomIn({ max, reserve = 0 }: PostLimit): number {
  return max - reserve;
}

export function sizeOf(text: string, { unit }: PostLimit): number {
  return unit === "bytes" ? Buffer.byteLength(text) : text.length;
}

/** Cuts a text into as few pieces as fit, and `MAX_PIECES` at most. */
export function splitText(text: string, firstRoom: number, room: number, limit: PostLimit): string[] {
  const pieces: string[] = [];
  let start = 0;
  do {
    const max = pieces.length === 0 ? firstRoom : room;
    const end = endOfPiece(text, start, max, limit);
    if (end < text.length && pieces.length === MAX_PIECES - 1) {
      return [...pieces, text.slice(start, endOfPiece(text, start, max - ELLIPSIS_SIZE, limit)) + ELLIPSIS];
    }
    pieces.push(text.slice(start, end));
    start = end;
  } while (start < text.length);
  return pieces;
}

function endOfPiece(text: string, start: number, max: number, limit: PostLimit): number {
  const end = endOfFit(text, start, max, limit);
  if (end >= text.length) return text.length;
  const half = start + Math.ceil((end - start) / 2);
  const cut = cutBefore(text, half, end, isLineBreak) ?? cutBefore(text, half, end, isBlank);
  return cut ?? graphemeStart(text, start, end);
}

/** How much of the text fits as it is written: with the escapes of lines, and of a single line. */
function endOfFit(text: string, start: number, max: number, { singleLine = false, unit }: PostLimit): number {
  let size = 0;
  for (let at = start; at < text.length; ) {
    const code = text.codePointAt(at) ?? 0;
    const length = code > 0xffff ? 2 : 1;
    size += unit === "bytes" ? utf8Length(code) : length;
    if (singleLine && isEscapedInLine(code)) size++;
    if (isOpen(code)) size += singleLine ? 2 : 1;
    if (size > max) {
      if (at === start) throw new RangeError("The marker leaves no room for text in a post of this network.");
      return at;
    }
    at += length;
  }
  return text.length;
}

function utf8Length(code: number): number {
  if (code < 0x80) return 1;
  if (code < 0x800) return 2;
  return code <= 0xffff ? 3 : 4;
}

function isOpen(code: number): boolean {
  return foldWidth(code) === 0x5b;
}

function isEscapedInLine(code: number): boolean {
  return code === 0x5c || code === 0x0a || code === 0x0d;
}

function isBlank(code: number): boolean {
  return isSpace(code) || isLineBreak(code);
}

/**
 * Before the white space, and not after it: networks remove it from the end of a post, but not between a marker and the
 * rest.
 */
function cutBefore(text: string, from: number, to: number, matches: (code: number) => boolean): number | undefined {
  for (let at = to; at > from; at--) {
    if (!matches(text.charCodeAt(at))) continue;
    let first = at;
    while (first > from && isBlank(text.charCodeAt(first - 1))) first--;
    return first;
  }
  return undefined;
}

/** Never between the halves of a surrogate pair. */
function characterStart(text: string, at: number): number {
  const code = text.charCodeAt(at);
  const before = text.charCodeAt(at - 1);
  return code >= 0xdc00 && code <= 0xdfff && before >= 0xd800 && before <= 0xdbff ? at - 1 : at;
}

/** Of text that one grapheme is looked for in: segmenting a whole text would take too long. */
const GRAPHEME_WINDOW = 128;
let segmenter: Intl.Segmenter | undefined;

function graphemeStart(text: string, start: number, end: number): number {
  segmenter ??= new Intl.Segmenter(undefined, { granularity: "grapheme" });
  const from = characterStart(text, Math.max(start, end - GRAPHEME_WINDOW));
  const around = text.slice(from, end + GRAPHEME_WINDOW);
  const found = from + (segmenter.segment(around).containing(end - from)?.index ?? end - from);
  return found > from ? found : end;
}
