/** Decodes untrusted bytes as JSON: valid UTF-8, bounded in depth and number, finite, no `__proto__` keys. */

type JsonParseErrorReason = "syntax" | "depth" | "values" | "utf8" | "number";

export class JsonParseError extends Error {
  override readonly name = "JsonParseError";
  readonly reason: JsonParseErrorReason;

  constructor(reason: JsonParseErrorReason, message: string, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
  }

  /** The text may be perfectly good JSON, and is more than is taken. */
  get isLimitExceeded(): boolean {
    return this.reason === "depth" || this.reason === "values";
  }
}

export interface JsonLimits {
  /** How many objects and arrays may be nested; a scalar has depth 0, `[]` has depth 1. */
  readonly maxDepth?: number;
  /** Maximum number of values, members and items. Default: unlimited. Many small ones cost most of all. */
  readonly maxValues?: number;
}

export const DEFAULT_MAX_DEPTH = 64;

const strictUtf8 = new TextDecoder("utf-8", { fatal: true });

/** Decodes a complete text; a leading byte order mark is dropped, as RFC 8259 §8.1 permits. */
export function decodeUtf8(bytes: Uint8Array): string {
  try {
    return strictUtf8.decode(bytes);
  } catch (cause) {
    throw new JsonParseError("utf8", "The text is not valid UTF-8.", { cause });
  }
}

/**
 * `JSON.parse` that refuses deep nesting, too many values and numbers beyond the range of a double, and leaves out keys
 * named `__proto__`; nothing else differs.
 */
export function parseJson(text: string, limits?: JsonLimits): unknown {
  const maxDepth = limits?.maxDepth ?? DEFAULT_MAX_DEPTH;
  if (hasMoreOpenersThan(text, maxDepth) && isDeeperThan(text, maxDepth)) {
    throw new JsonParseError("depth", `The JSON is nested deeper than ${maxDepth} levels.`);
  }
  const { maxValues } = limits ?? {};
  if (maxValues !== undefined && hasMoreValuesThan(text, maxValues)) {
    throw new JsonParseError("values", `The JSON has more than ${maxValues} values.`);
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new JsonParseError("syntax", "The text is not valid JSON.", { cause });
  }
  if (mayNamePrototype(text)) dropPrototypeKeys(value);
  if (mayBeInfinite(text) && hasInfinity(value)) {
    throw new JsonParseError("number", "A number in a value must be finite.");
  }
  return value;
}

const LARGE_EXPONENT = /\d[eE]\+?\d{3}/;
const STRIDE = 100;

/**
 * `JSON.parse` makes Infinity of a number that is too large, which `JSON.stringify` would turn into null. That takes an
 * exponent of three digits, or 210 digits before one of two, which no look at every hundredth character misses.
 */
function mayBeInfinite(text: string): boolean {
  for (let at = STRIDE; at < text.length; at += STRIDE) {
    if (isDigit(text.charCodeAt(at)) && isDigit(text.charCodeAt(at - STRIDE))) return true;
  }
  return LARGE_EXPONENT.test(text);
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

function hasInfinity(root: unknown): boolean {
  const pending: unknown[] = [root];
  while (pending.length > 0) {
    const value = pending.pop();
    if (value === Number.POSITIVE_INFINITY || value === Number.NEGATIVE_INFINITY) return true;
    if (typeof value === "object" && value !== null) for (const child of Object.values(value)) pending.push(child);
  }
  return false;
}

/**
 * The cheap first look: a text cannot be nested deeper than the number of openers in it. `indexOf` searches
 * natively, so an ordinary text is cleared without looking at its characters one by one.
 */
function hasMoreOpenersThan(text: string, max: number): boolean {
  if (text.length <= max) return false;
  let count = 0;
  for (let at = text.indexOf("{"); at !== -1; at = text.indexOf("{", at + 1)) {
    if (++count > max) return true;
  }
  for (let at = text.indexOf("["); at !== -1; at = text.indexOf("[", at + 1)) {
    if (++count > max) return true;
  }
  return false;
}

/** A value takes two characters at least, itself and what parts it from the next, so that a short text is cleared at once. */
function hasMoreValuesThan(text: string, max: number): boolean {
  if (text.length <= 2 * max) return false;
  let count = 1;
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case QUOTE:
        at = endOfString(text, at);
        if (at === -1) return false;
        break;
      case COMMA:
      case OPEN_BRACE:
      case OPEN_BRACKET:
        if (++count > max) return true;
        break;
    }
  }
  return false;
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** Exact for valid JSON. Of malformed text it only promises to end, since `JSON.parse` refuses that anyway. */
function isDeeperThan(text: string, max: number): boolean {
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case QUOTE:
        at = endOfString(text, at);
        if (at === -1) return false;
        break;
      case OPEN_BRACE:
      case OPEN_BRACKET:
        if (++depth > max) return true;
        break;
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        depth--;
        break;
    }
  }
  return false;
}

/** Where the string that opens at `start` has its closing quote; -1 if it has none. */
function endOfString(text: string, start: number): number {
  for (let quote = text.indexOf('"', start + 1); quote !== -1; quote = text.indexOf('"', quote + 1)) {
    let before = quote - 1;
    while (text.charCodeAt(before) === BACKSLASH) before--;
    const backslashes = quote - 1 - before;
    if (backslashes % 2 === 0) return quote;
  }
  return -1;
}

/** Escapes of the letters of `__proto__`; with any of them the key may be there without its literal spelling. */
const ESCAPED_LETTER = /\\u00(?:5[fF]|6[fF]|7[024])/;

function mayNamePrototype(text: string): boolean {
  return text.includes("__proto__") || (text.includes("\\u00") && ESCAPED_LETTER.test(text));
}

function dropPrototypeKeys(root: unknown): void {
  const pending: unknown[] = [root];
  while (pending.length > 0) {
    const value = pending.pop();
    if (typeof value !== "object" || value === null) continue;
    if (Object.hasOwn(value, "__proto__")) Reflect.deleteProperty(value, "__proto__");
    for (const child of Object.values(value)) {
      if (typeof child === "object" && child !== null) pending.push(child);
    }
  }
}
