/** Server-sent events: writing is here, reading in `sse-parser.ts`. */

export {
  createSseParser,
  DEFAULT_MAX_EVENT_BYTES,
  type SseEvent,
  SseLimitError,
  type SseParser,
  type SseParserOptions,
  sseEvents,
} from "./sse-parser.ts";

/** One event. Line ends inside `data` become several `data:` lines, which the reader joins with LF. */
export function sseFrame(data: string, id?: number | string): string {
  if (!data.includes("\n") && !data.includes("\r")) return sseLineFrame(data, id);
  return `${idField(id)}${prefixLines("data: ", data)}\n`;
}

/** One event whose data is known to be one line, as the output of `JSON.stringify` is: it is not searched. */
export function sseLineFrame(line: string, id?: number | string): string {
  return id === undefined ? `data: ${line}\n\n` : `${idField(id)}data: ${line}\n\n`;
}

/** Ignored by readers; keeps idle connections open. */
export function sseComment(text: string): string {
  return `${prefixLines(": ", text)}\n`;
}

/** How long a reader should wait before it connects again. */
export function sseRetry(milliseconds: number): string {
  if (!Number.isSafeInteger(milliseconds) || milliseconds < 0) {
    throw new RangeError("The retry time must be a whole number of milliseconds.");
  }
  return `retry: ${milliseconds}\n\n`;
}

const LINE_END = /\r\n|\r|\n/;

function prefixLines(prefix: string, text: string): string {
  let lines = "";
  for (const line of text.split(LINE_END)) lines += `${prefix}${line}\n`;
  return lines;
}

function idField(id: number | string | undefined): string {
  if (id === undefined) return "";
  // A line end would let an id forge fields, and readers ignore an id that contains NUL.
  if (typeof id === "string" && (id.includes("\n") || id.includes("\r") || id.includes("\0"))) {
    throw new RangeError("An event id must not contain line ends or NUL.");
  }
  return `id: ${id}\n`;
}
