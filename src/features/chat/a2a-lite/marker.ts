/** Finds and reads the marker of a post. Every function looks at each character a bounded number of times. */

import { foldWidth, isInvisible, isJoiner, isLineBreak, isSpace } from "./characters.ts";

const MAX_MARKER_LENGTH = 4_096;
const MAX_MENTION_LENGTH = 128;
const MAX_NICK_LENGTH = 64;
/** Maximum length of `A2A:` with white space and invisible characters. */
const MAX_NAME_LENGTH = 64;

const OPEN = 0x5b;
const CLOSE = 0x5d;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const COMMA = 0x2c;
const EQUALS = 0x3d;
const QUOTE = 0x22;
const GREATER = 0x3e;
const LESS = 0x3c;
const AT = 0x40;
const SLASH = 0x2f;

export interface MarkerStart {
  /** Position of the first backslash, or else of the bracket. */
  readonly at: number;
  /** Number of backslashes before the bracket: with any, it is text that shows a marker. */
  readonly escapes: number;
  /** Number of `*` or `_` before it, as in `**[A2A:…]**`. */
  readonly emphasis: number;
}

/**
 * Where the marker of a post starts: at its beginning, after white space, invisible characters, quoted lines and
 * mentions.
 */
export function findMarker(text: string): MarkerStart | undefined {
  let at = 0;
  let startsLine = true;
  for (;;) {
    for (; at < text.length; at++) {
      const code = text.charCodeAt(at);
      if (isLineBreak(code)) startsLine = true;
      else if (!isSpace(code) && !isInvisible(code)) break;
    }
    if (at >= text.length) return undefined;
    if (startsLine && text.charCodeAt(at) === GREATER) {
      const end = text.indexOf("\n", at);
      if (end === -1) return undefined;
      at = end;
      continue;
    }
    const marker = markerAt(text, at);
    if (marker !== undefined) return marker;
    const end = endOfMention(text, at);
    if (end === undefined) return undefined;
    at = end;
    startsLine = false;
  }
}

/**
 * Whether something that looks like a marker, escaped or not, starts exactly here. It need not be complete, and may have
 * characters in its name that `readMarker` does not accept, but that a network may remove.
 */
export function markerAt(text: string, start: number): MarkerStart | undefined {
  let at = start;
  while (at - start < MAX_EMPHASIS && isEmphasis(text.charCodeAt(at))) at++;
  const emphasis = at - start;
  const first = at;
  while (text.charCodeAt(at) === BACKSLASH) at++;
  const escapes = at - first;
  if (foldWidth(text.charCodeAt(at)) !== OPEN) return undefined;
  for (const expected of NAME) {
    at++;
    while (at < text.length && text[at] !== "\n" && REMOVABLE.test(text.charAt(at))) at++;
    if (fold(text.charCodeAt(at)) !== expected) return undefined;
  }
  return { at: first, escapes, emphasis };
}

const NAME = "a2a:";
const MAX_EMPHASIS = 3;
/** White space, controls, combining marks, halves of surrogate pairs, and what Markdown has for emphasis. */
const REMOVABLE = /[\p{C}\p{M}\p{Z}\s*_~`|]/u;

function isEmphasis(code: number): boolean {
  return code === 0x2a || code === 0x5f;
}

function fold(code: number): string {
  return String.fromCharCode(foldWidth(code)).toLowerCase();
}

/** Position after `A2A:`, or -1. */
function endOfName(text: string, start: number): number {
  let at = start;
  const limit = Math.min(text.length, start + MAX_NAME_LENGTH);
  for (const expected of NAME) {
    for (; at < limit; at++) {
      const code = text.charCodeAt(at);
      if (!isInvisible(code) && !isSpace(code)) break;
    }
    if (fold(text.charCodeAt(at)) !== expected) return -1;
    at++;
  }
  return at;
}

/** `<@id>`, `@name`, `/command@name`, `name:` or `name,` */
function endOfMention(text: string, start: number): number | undefined {
  const code = text.charCodeAt(start);
  if (code === LESS) {
    const next = text.charCodeAt(start + 1);
    if (next !== AT && next !== 0x21) return undefined;
    const end = endOfWord(text, start, MAX_MENTION_LENGTH, GREATER);
    return end === undefined ? undefined : afterPunctuation(text, end + 1);
  }
  if (code === AT || code === SLASH) {
    let end = start + 1;
    while (end < text.length && end - start <= MAX_MENTION_LENGTH && !endsName(text.charCodeAt(end))) end++;
    return end === start + 1 ? undefined : end;
  }
  const end = endOfWord(text, start, MAX_NICK_LENGTH, COLON, COMMA);
  return end === undefined || end === start ? undefined : end + 1;
}

/** Backslashes and `*` belong to the marker. */
function endsName(code: number): boolean {
  return isSpace(code) || isLineBreak(code) || code === BACKSLASH || code === 0x2a || foldWidth(code) === OPEN;
}

/** Where one of these characters follows, with no white space before it. */
function endOfWord(text: string, start: number, max: number, ...ends: readonly number[]): number | undefined {
  for (let at = start; at < text.length && at - start <= max; at++) {
    const code = text.charCodeAt(at);
    if (ends.includes(foldWidth(code))) return at;
    if (isLineBreak(code) || (isSpace(code) && ends.includes(COLON))) return undefined;
  }
  return undefined;
}

function afterPunctuation(text: string, at: number): number {
  const code = foldWidth(text.charCodeAt(at));
  return code === COLON || code === COMMA ? at + 1 : at;
}

export interface Marker {
  /** In lower case. */
  readonly type: string;
  readonly parameters: readonly (readonly [key: string, value: string])[];
  /** It has invisible characters, which are left out here: people see another marker than machines. */
  readonly invisible: boolean;
  /** Position of the text after it. */
  readonly end: number;
}

/** Reads the marker that starts at `start`. A string says what is wrong with it. */
export function readMarker(text: string, start: number): Marker | string {
  const limit = Math.min(text.length, start + MAX_MARKER_LENGTH);
  const name = endOfName(text, start + 1);
  if (name === -1) return "the name of the marker has other characters in it";
  const reader = new MarkerReader(text, name, limit);
  for (let at = start; at < name; at++) reader.invisible ||= isInvisible(text.charCodeAt(at));
  reader.skipSpaces();
  const type = reader.word(endsWord);
  const parameters: [string, string][] = [];
  for (;;) {
    reader.skipSpaces();
    if (reader.atEnd)
      return reader.at >= limit && limit < text.length ? "the marker is too long" : "the marker has no ]";
    if (isClose(reader.code)) break;
    const key = reader.word(endsKey);
    if (foldWidth(reader.code) !== EQUALS) continue;
    reader.at++;
    const value = reader.value();
    if (value === undefined) return "a quotation mark in the marker is not closed";
    parameters.push([key, value]);
  }
  return { type: type.toLowerCase(), parameters, invisible: reader.invisible, end: reader.at + 1 };
}

function isClose(code: number): boolean {
  return foldWidth(code) === CLOSE;
}

function endsWord(code: number): boolean {
  return isSpace(code) || isLineBreak(code) || isClose(code);
}

function endsKey(code: number): boolean {
  return endsWord(code) || foldWidth(code) === EQUALS;
}

/** What closes a value that starts with one of these; phones replace straight quotation marks by curly ones. */
const CLOSING_QUOTES: ReadonlyMap<number, number> = new Map([
  [QUOTE, QUOTE],
  [0xff02, 0xff02],
  [0x201c, 0x201d],
  [0x201d, 0x201d],
]);

class MarkerReader {
  at: number;
  invisible = false;
  readonly #text: string;
  readonly #limit: number;

  constructor(text: string, at: number, limit: number) {
    this.#text = text;
    this.at = at;
    this.#limit = limit;
  }

  get code(): number {
    return this.at < this.#limit ? this.#text.charCodeAt(this.at) : Number.NaN;
  }

  get atEnd(): boolean {
    return this.at >= this.#limit || isLineBreak(this.code);
  }

  skipSpaces(): void {
    for (; !this.atEnd; this.at++) {
      if (isInvisible(this.code)) this.invisible = true;
      else if (!isSpace(this.code)) return;
    }
  }

  /** Names are ASCII, also where they are written in full-width letters. */
  word(ends: (code: number) => boolean): string {
    let word = "";
    for (; this.at < this.#limit && !ends(this.code); this.at++) {
      if (isInvisible(this.code)) this.invisible = true;
      else word += String.fromCharCode(foldWidth(this.code));
    }
    return word;
  }

  value(): string | undefined {
    const closing = CLOSING_QUOTES.get(this.code);
    if (closing !== undefined) return this.#quoted(closing);
    const start = this.at;
    for (; this.at < this.#limit && !endsWord(this.code); this.at++) this.#check(this.code);
    return this.#text.slice(start, this.at).replace(SEPARATOR, "");
  }

  #quoted(closing: number): string | undefined {
    let value = "";
    for (this.at++; !this.atEnd; this.at++) {
      const { code } = this;
      if (code === closing) {
        this.at++;
        return value;
      }
      this.#check(code);
      const escaped = code === BACKSLASH ? this.#escape() : undefined;
      value += escaped ?? this.#text.charAt(this.at);
    }
    return undefined;
  }

  /** A backslash before any other character is itself, as in `C:\work`. */
  #escape(): string | undefined {
    const next = this.#text.charAt(this.at + 1);
    if (next === "\\" || CLOSING_QUOTES.has(next.charCodeAt(0))) {
      this.at++;
      return next;
    }
    if (next === "n" || next === "r") {
      this.at++;
      return next === "n" ? "\n" : "\r";
    }
    if (next !== "u") return undefined;
    const digits = this.#text.slice(this.at + 2, this.at + 6);
    if (!FOUR_HEX_DIGITS.test(digits)) return undefined;
    this.at += 5;
    return String.fromCharCode(Number.parseInt(digits, 16));
  }

  #check(code: number): void {
    if (isInvisible(code) && !isJoiner(code)) this.invisible = true;
  }
}

/** The value of a text that is one quoted value from beginning to end. */
export function parseQuoted(text: string): string | undefined {
  if (!CLOSING_QUOTES.has(text.charCodeAt(0))) return undefined;
  const reader = new MarkerReader(text, 0, text.length);
  const value = reader.value();
  return reader.at === text.length ? value : undefined;
}

/** Those who write lists put one between parameters: `id=t1, skill=x`. */
const SEPARATOR = /[,，;；、]$/;

const FOUR_HEX_DIGITS = /^[0-9a-f]{4}$/i;

/** Written without quotation marks where that is read as the same value. */
export function formatValue(value: string): string {
  if (value !== "" && !CLOSING_QUOTES.has(value.charCodeAt(0)) && !needsQuotes(value)) return value;
  let quoted = '"';
  for (let at = 0; at < value.length; at++) {
    const code = value.charCodeAt(at);
    if (code === BACKSLASH || CLOSING_QUOTES.has(code)) quoted += `\\${value.charAt(at)}`;
    else if (code === 0x0a) quoted += "\\n";
    else if (code === 0x0d) quoted += "\\r";
    else if (isLineBreak(code) || isInvisible(code)) quoted += `\\u${code.toString(16).padStart(4, "0")}`;
    else quoted += value.charAt(at);
  }
  return `${quoted}"`;
}

function needsQuotes(value: string): boolean {
  if (SEPARATOR.test(value)) return true;
  for (let at = 0; at < value.length; at++) {
    const code = value.charCodeAt(at);
    if (endsWord(code) || isInvisible(code) || code === QUOTE) return true;
  }
  return false;
}
