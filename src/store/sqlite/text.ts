/**
 * SQLite text is UTF-8 that ends at a NUL for some drivers. Ids and keys come from callers and may be any JavaScript
 * string, so those that would not survive are stored as JSON behind a mark; all others as they are.
 */
const MARK = "\u0001";
const LONE_SURROGATE = /\p{Surrogate}/u;

export function toText(value: string): string {
  if (LONE_SURROGATE.test(value) || value.includes("\0") || value.startsWith(MARK)) return MARK + JSON.stringify(value);
  return value;
}

export function fromText(text: string): string {
  return text.startsWith(MARK) ? (JSON.parse(text.slice(MARK.length)) as string) : text;
}

/** The order SQLite has for text, which is not that of JavaScript. */
export function compareTexts(left: string, right: string): number {
  return left === right ? 0 : Buffer.compare(Buffer.from(left), Buffer.from(right));
}
