import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  createSseParser,
  encodeSseComment,
  encodeSseLine,
  readSseEvents,
  type SseEvent,
  SseLimitError,
  type SseParserOptions,
} from "./sse.ts";

interface Reading {
  readonly events: SseEvent[];
  readonly comments: string[];
  readonly retries: number[];
  readonly failed: boolean;
}

function read(chunks: Iterable<Uint8Array | string>, options: SseParserOptions = {}): Reading {
  const events: SseEvent[] = [];
  const comments: string[] = [];
  const retries: number[] = [];
  const parser = createSseParser((event) => events.push(event), {
    ...options,
    onComment: (text) => comments.push(text),
    onRetry: (milliseconds) => retries.push(milliseconds),
  });
  try {
    for (const chunk of chunks) parser.push(chunk);
    parser.end();
  } catch (error) {
    if (!(error instanceof SseLimitError)) throw error;
    return { events, comments, retries, failed: true };
  }
  return { events, comments, retries, failed: false };
}

const eventsOf = (text: string): SseEvent[] => read([text]).events;
const message = (data: string, lastEventId = ""): SseEvent => ({ event: "message", data, lastEventId });

/** Cuts at arbitrary places, also inside characters and line ends; a cut may repeat and so give an empty chunk. */
function cut(bytes: Uint8Array, places: readonly number[]): Uint8Array[] {
  const ends = places.map((place) => place % (bytes.length + 1)).sort((a, b) => a - b);
  return [...ends, bytes.length].map((end, index) => bytes.subarray(index === 0 ? 0 : ends[index - 1], end));
}

const places = fc.array(fc.nat(), { maxLength: 30 });
const lineText = fc.string({ unit: fc.constantFrom("a", " ", ":", "é", "写", "😀", "\u2028", "\0", "\ufeff") });
const line = fc.oneof(
  fc.constantFrom(
    "",
    "",
    "data",
    "data:",
    "data: x",
    "data:  y",
    "event: ping",
    "id: 7",
    "id",
    "retry: 12",
    ": hi",
    "x: y",
  ),
  lineText,
  lineText.map((text) => `data:${text}`),
);
/** A whole stream of good, bad and odd lines with any line ends. */
const streamText = fc
  .array(fc.tuple(line, fc.constantFrom("\n", "\r", "\r\n")), { maxLength: 30 })
  .map((lines) => lines.map(([text, end]) => text + end).join(""));

/** As other servers write data of several lines; ours has none. */
const eventOf = (data: string, id?: number | string): string => encodeSseLine(data.replaceAll("\n", "\ndata: "), id);

describe("writing", () => {
  it("frames one line", () => {
    expect(encodeSseLine('{"a":1}')).toBe('data: {"a":1}\n\n');
    expect(encodeSseLine("x", 0)).toBe("id: 0\ndata: x\n\n");
    expect(encodeSseLine("x", "e1")).toBe("id: e1\ndata: x\n\n");
    expect(encodeSseLine("x")).toBe("data: x\n\n");
  });

  it("splits lines, whatever ends them", () => {
    expect(encodeSseComment("a\nb\r\nc\rd")).toBe(": a\n: b\n: c\n: d\n\n");
  });

  it.each(["a\nb", "a\rb", "a\0"])("refuses the id %j", (id) => {
    expect(() => encodeSseLine("x", id)).toThrow(RangeError);
  });
});

describe("reading", () => {
  it("reads back what was written", () => {
    const frame = fc.record({
      data: fc.string({ unit: fc.oneof(fc.constantFrom("\n", " ", ":"), fc.string({ unit: "binary", maxLength: 1 })) }),
      id: fc.option(fc.oneof(fc.nat(), fc.stringMatching(/^[^\r\n\0]*$/)), { nil: undefined }),
      comment: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(frame), places, (frames, cuts) => {
        let lastEventId = "";
        const expected = frames.map(({ data, id }) => {
          if (id !== undefined) lastEventId = String(id);
          return message(data.replace(/\r/g, "\n"), lastEventId);
        });
        const text = frames
          .map(
            ({ data, id, comment }) =>
              (comment ? encodeSseComment("alive") : "") + eventOf(data.replace(/\r/g, "\n"), id),
          )
          .join("");
        const reading = read(cut(Buffer.from(text), cuts));
        expect(reading.events).toEqual(expected);
        expect(reading.comments).toEqual(frames.filter(({ comment }) => comment).map(() => "alive"));
      }),
    );
  });

  it("[CLIENT-STREAM-001] gives the same for any chunks, of bytes or of text", () => {
    fc.assert(
      fc.property(streamText, places, (text, cuts) => {
        const whole = read([text]);
        expect(read(cut(Buffer.from(text), cuts))).toEqual(whole);
        const bytes = Buffer.from(text);
        expect(read(Array.from(bytes, (_, at) => bytes.subarray(at, at + 1)))).toEqual(whole);
        expect(read(text.split(""))).toEqual(whole);
      }),
      { numRuns: 300 },
    );
  });

  it("gives the same for any chunks of bytes that are not UTF-8", () => {
    const bytes = fc.array(
      fc.constantFrom(...Buffer.from("data: \n\r"), 0xe2, 0x82, 0xac, 0xf0, 0x9f, 0xff, 0xef, 0xbb, 0xbf),
    );
    fc.assert(
      fc.property(bytes, places, (tail, cuts) => {
        const stream = Buffer.from([...Buffer.from("data:"), ...tail, 10, 10]);
        expect(read(cut(stream, cuts))).toEqual(read([stream]));
      }),
    );
  });

  it("fails at the same event for any chunks", () => {
    fc.assert(
      fc.property(streamText, places, fc.integer({ min: 4, max: 40 }), (text, cuts, maxEventBytes) => {
        const bytes = Buffer.from(text);
        const whole = read([bytes], { maxEventBytes });
        expect(read(cut(bytes, cuts), { maxEventBytes })).toEqual(whole);
      }),
    );
  });

  it("drops one space after the colon, and joins data lines with LF", () => {
    expect(eventsOf("data:a\ndata:  b\ndata\ndata: \n\n")).toEqual([message("a\n b\n\n")]);
  });

  it("needs data and a blank line for an event", () => {
    expect(eventsOf("event: x\nid: 1\n\ndata: a")).toEqual([]);
    expect(eventsOf("data: a\n")).toEqual([]);
    expect(eventsOf("data:\n\n")).toEqual([message("")]);
  });

  it("names an event once, and remembers the id", () => {
    expect(eventsOf("event: e\nid: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\n")).toEqual([
      { event: "e", data: "a", lastEventId: "1" },
      message("b", "1"),
      message("c", ""),
    ]);
  });

  it("remembers the id of a block without data", () => {
    expect(eventsOf("id: 5\n\ndata: a\n\n")).toEqual([message("a", "5")]);
  });

  it("ignores an id with NUL and a retry time that is not digits", () => {
    expect(eventsOf("id: 1\nid: 2\0\ndata: a\n\n")).toEqual([message("a", "1")]);
    expect(read(["retry: 1500\nretry: 1e3\nretry: -1\nretry:\n"]).retries).toEqual([1500]);
  });

  it("drops a byte order mark at the start only", () => {
    expect(eventsOf("\ufeffdata: a\n\n\ufeffdata: b\n\n")).toEqual([message("a")]);
    expect(read(cut(Buffer.from("\ufeffdata: a\n\n"), [1, 2])).events).toEqual([message("a")]);
  });

  it("discards the tail", () => {
    const events: SseEvent[] = [];
    const parser = createSseParser((event) => events.push(event));
    parser.push("data: a\n\ndata: b\n");
    parser.end();
    expect(events).toEqual([message("a")]);
  });

  it("bounds a line and an event, but not a stream", () => {
    const options = { maxEventBytes: 12 };
    expect(read([": alive\n".repeat(100), "data: 123456\n\n".repeat(100)], options).events).toHaveLength(100);
    expect(read(["data: 1234567"], options).failed).toBe(true);
    expect(read(["data:1\n".repeat(3)], options).failed).toBe(true);
    expect(read([Buffer.from("data: ééé\n\n")], options).failed).toBe(false);
    expect(read([Buffer.from("data: éééa\n\n")], options).failed).toBe(true);
    expect(read([`: ${"x".repeat(20)}`], options).failed).toBe(true);
    expect(read(cut(Buffer.from("data: 1234€\n\n"), [12]), options).failed).toBe(true);
  });

  it("stays failed", () => {
    const parser = createSseParser(() => {}, { maxEventBytes: 3 });
    expect(() => parser.push("data: a")).toThrow(SseLimitError);
    expect(() => parser.push("\n\n")).toThrow(SseLimitError);
  });
});

describe("sseEvents", () => {
  async function collect(stream: AsyncIterable<Uint8Array>, options?: SseParserOptions): Promise<string[][]> {
    const batches: string[][] = [];
    for await (const batch of readSseEvents(stream, options)) batches.push(batch.map(({ data }) => data));
    return batches;
  }
  const streamOf = (...chunks: string[]) => ReadableStream.from(chunks.map((chunk) => new TextEncoder().encode(chunk)));

  it("gives one batch for each chunk that completed events", async () => {
    const stream = streamOf("data: a\n\ndata: b\n\ndata", ": c\n", "\ndata: d\n\n");
    expect(await collect(stream)).toEqual([
      ["a", "b"],
      ["c", "d"],
    ]);
  });

  it("hands over what was complete before it fails", async () => {
    const batches: SseEvent[][] = [];
    const reading = (async () => {
      for await (const batch of readSseEvents(streamOf("data: a\n\ndata: too long\n\n"), { maxEventBytes: 8 })) {
        batches.push(batch);
      }
    })();
    await expect(reading).rejects.toThrow(SseLimitError);
    expect(batches).toEqual([[message("a")]]);
  });

  it("cancels the stream when the reader leaves", async () => {
    let cancelled = false;
    const stream = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(new TextEncoder().encode("data: a\n\n")),
      cancel: () => {
        cancelled = true;
      },
    });
    for await (const batch of readSseEvents(stream)) {
      expect(batch).toEqual([message("a")]);
      break;
    }
    expect(cancelled).toBe(true);
  });
});
