/** Server-sent events, encoded and parsed by the rules of the WHATWG HTML standard, section 9.2. */

/** One event. Its data is one line, as the output of `JSON.stringify` is. */
export function encodeSseLine(line: string, id?: number | string): string {
  return id === undefined ? `data: ${line}\n\n` : `${idField(id)}data: ${line}\n\n`;
}

/** Ignored by readers; keeps idle connections open. */
export function encodeSseComment(text: string): string {
  return `${prefixLines(": ", text)}\n`;
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

export interface SseEvent {
  /** `"message"` unless the event named itself. */
  readonly event: string;
  readonly data: string;
  /** The last id the stream gave, on this event or before it; `""` if none. */
  readonly lastEventId: string;
}

export interface SseParserOptions {
  /** Bounds each line, and the data lines of one event together. */
  readonly maxEventBytes?: number;
  readonly onComment?: (text: string) => void;
  readonly onRetry?: (milliseconds: number) => void;
  /** Called with each id when its event is complete, also if the event has no data and is otherwise ignored. */
  readonly onId?: (id: string) => void;
}

interface SseParser {
  /** Calls back for each event that became complete. Throws `SseLimitError` when the limit is exceeded, and on every call after that. */
  push(chunk: Uint8Array | string): void;
  /** Ends the stream; an event without its closing blank line is discarded. */
  end(): void;
}

export class SseLimitError extends Error {
  override readonly name = "SseLimitError";
  readonly maxEventBytes: number;

  constructor(maxEventBytes: number) {
    super(`A server-sent event is larger than ${maxEventBytes} bytes.`);
    this.maxEventBytes = maxEventBytes;
  }
}

const DEFAULT_MAX_EVENT_BYTES = 16 * 1024 * 1024;

const CARRIAGE_RETURN_ENDS = /\r\n?/g;
const DIGITS = /^[0-9]+$/;
const SPACE = 0x20;
const BYTE_ORDER_MARK = 0xfeff;
const RECORD_SEPARATOR = 0x1e;

export function createSseParser(onEvent: (event: SseEvent) => void, options: SseParserOptions = {}): SseParser {
  const { maxEventBytes = DEFAULT_MAX_EVENT_BYTES, onComment, onId, onRetry } = options;
  /** Made for the first chunk that ends within a character: most streams have none. */
  let decoder: InstanceType<typeof TextDecoder> | undefined;
  let started = false;
  let failure: SseLimitError | undefined;

  /** The decoder holds no part of a character, so bytes in and characters out can be compared. */
  let decoderEmpty = true;
  /** The last text ended in CR: an LF that follows belongs to that line end. */
  let afterCarriageReturn = false;
  /** The line that has begun; grows by concatenation only and is looked at when it is whole. */
  let partialLine = "";
  let partialBytes = 0;

  let eventName = "";
  let lastEventId = "";
  let hasNewId = false;
  let data: string | undefined;
  let dataBytes = 0;

  function push(chunk: Uint8Array | string): void {
    if (failure !== undefined) throw failure;
    let text: string;
    let singleByte = false;
    if (typeof chunk === "string") {
      text = !started && chunk.charCodeAt(0) === BYTE_ORDER_MARK ? chunk.slice(1) : chunk;
    } else {
      const lastByte = chunk[chunk.byteLength - 1];
      const isWhole = decoderEmpty && (lastByte === undefined || lastByte < 0x80);
      if (isWhole) text = decodeWhole(chunk, !started);
      else {
        // Only at the beginning of a stream is a byte order mark not part of the text.
        decoder ??= new TextDecoder("utf-8", { ignoreBOM: started });
        text = decoder.decode(chunk, { stream: true });
      }
      singleByte = decoderEmpty && text.length === chunk.byteLength;
      if (lastByte !== undefined) decoderEmpty = lastByte < 0x80;
    }
    if (chunk.length > 0) started = true;
    takeText(text, singleByte);
  }

  function takeText(chunkText: string, singleByte: boolean): void {
    if (chunkText === "") return;
    let text = chunkText;
    if (afterCarriageReturn) {
      afterCarriageReturn = false;
      if (text.startsWith("\n")) text = text.slice(1);
    }
    if (text.includes("\r")) {
      afterCarriageReturn = text.endsWith("\r");
      text = text.replace(CARRIAGE_RETURN_ENDS, "\n");
    }
    let start = 0;
    for (let end = text.indexOf("\n"); end !== -1; end = text.indexOf("\n", start)) {
      const piece = text.slice(start, end);
      const bytes = partialBytes + (singleByte ? piece.length : Buffer.byteLength(piece));
      const line = partialLine === "" ? piece : partialLine + piece;
      partialLine = "";
      partialBytes = 0;
      start = end + 1;
      checkBound(bytes);
      takeLine(line, bytes);
    }
    if (start < text.length) {
      const rest = text.slice(start);
      partialBytes += singleByte ? rest.length : Buffer.byteLength(rest);
      checkBound(partialBytes);
      partialLine += rest;
    }
  }

  function takeLine(received: string, bytes: number): void {
    if (received === "") {
      dispatch();
      return;
    }
    const line = withoutSeparator(received);
    const colon = line.indexOf(":");
    if (colon === 0) {
      onComment?.(fieldValue(line, 0));
      return;
    }
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? "" : fieldValue(line, colon);
    switch (field) {
      case "data":
        dataBytes += bytes;
        checkBound(dataBytes);
        data = data === undefined ? value : `${data}\n${value}`;
        break;
      case "event":
        eventName = value;
        break;
      case "id":
        if (value.includes("\0")) break;
        lastEventId = value;
        hasNewId = true;
        break;
      case "retry":
        if (DIGITS.test(value)) onRetry?.(Number(value));
        break;
    }
  }

  function dispatch(): void {
    const event = eventName === "" ? "message" : eventName;
    const complete = data;
    eventName = "";
    data = undefined;
    dataBytes = 0;
    if (hasNewId) onId?.(lastEventId);
    hasNewId = false;
    if (complete !== undefined) onEvent({ event, data: complete, lastEventId });
  }

  function checkBound(bytes: number): void {
    if (bytes <= maxEventBytes) return;
    discard();
    failure = new SseLimitError(maxEventBytes);
    throw failure;
  }

  function discard(): void {
    partialLine = "";
    partialBytes = 0;
    eventName = "";
    data = undefined;
    dataBytes = 0;
  }

  return { push, end: discard };
}

/** Some servers begin each record with the separator of JSON text sequences (RFC 7464). */
export function withoutSeparator(text: string): string {
  return text.charCodeAt(0) === RECORD_SEPARATOR ? text.slice(1) : text;
}

/** A chunk that begins and ends with a character. */
function decodeWhole(chunk: Uint8Array, isFirst: boolean): string {
  const { buffer, byteLength, byteOffset } = chunk;
  const text = Buffer.from(buffer, byteOffset, byteLength).toString("utf8");
  return isFirst && text.charCodeAt(0) === BYTE_ORDER_MARK ? text.slice(1) : text;
}

/** What follows the colon, without the one space that may follow it. */
function fieldValue(line: string, colon: number): string {
  return line.slice(line.charCodeAt(colon + 1) === SPACE ? colon + 2 : colon + 1);
}

/** The events that each chunk completes. */
export class SseBatch {
  #events: SseEvent[] = [];
  readonly #parser: SseParser;

  constructor(options?: SseParserOptions) {
    this.#parser = createSseParser((event) => this.#events.push(event), options);
  }

  /** A failure is that of the event after the last of these. */
  push(chunk: Uint8Array): { readonly events: SseEvent[]; readonly failure: unknown } {
    let failure: unknown;
    try {
      this.#parser.push(chunk);
    } catch (error) {
      failure = error;
    }
    const events = this.#events;
    this.#events = [];
    return { events, failure };
  }
}

/**
 * Events in batches, one per chunk that completed any: a reader awaits once per network read, not once per event.
 * A `ReadableStream` is such an iterable; leaving the loop cancels it.
 */
export async function* readSseEvents(
  stream: AsyncIterable<Uint8Array>,
  options?: SseParserOptions,
): AsyncGenerator<SseEvent[], void, undefined> {
  const batch = new SseBatch(options);
  for await (const chunk of stream) {
    const { events, failure } = batch.push(chunk);
    if (events.length > 0) yield events;
    if (failure !== undefined) throw failure;
  }
}
