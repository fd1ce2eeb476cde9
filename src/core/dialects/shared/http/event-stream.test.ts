import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { StreamFrame } from "../../../model/operation.ts";
import { eventStreamReply } from "./event-stream.ts";

const EVENT = { message: { messageId: "m", role: "ROLE_AGENT" as const, parts: [{ text: "x" }] } };
const frame = (json: string): StreamFrame => ({ event: EVENT, json });

type Batch = IteratorResult<readonly StreamFrame[], undefined>;

interface Puller {
  readonly resolve: (batch: Batch) => void;
  readonly reject: (error: unknown) => void;
}

/** A source whose batches the test hands out, before or after they are asked for. */
class Source {
  closed = 0;
  pulls = 0;
  #puller: Puller | undefined;
  readonly #kept: ((puller: Puller) => void)[] = [];

  [Symbol.asyncIterator]() {
    return {
      next: () => {
        this.pulls++;
        return new Promise<Batch>((resolve, reject) => {
          const kept = this.#kept.shift();
          if (kept === undefined) this.#puller = { resolve, reject };
          else kept({ resolve, reject });
        });
      },
      return: async (): Promise<Batch> => {
        this.closed++;
        return { done: true, value: undefined };
      },
    };
  }

  give(...texts: string[]): void {
    this.#settle(({ resolve }) => resolve({ done: false, value: texts.map(frame) }));
  }

  end(): void {
    this.#settle(({ resolve }) => resolve({ done: true, value: undefined }));
  }

  fail(error: Error): void {
    this.#settle(({ reject }) => reject(error));
  }

  #settle(how: (puller: Puller) => void): void {
    const puller = this.#puller;
    this.#puller = undefined;
    if (puller === undefined) this.#kept.push(how);
    else how(puller);
  }
}

let streams: AsyncIterator<string>[] = [];

afterEach(async () => {
  for (const stream of streams) await stream.return?.();
  streams = [];
});

async function open(source: Source) {
  const reply = await eventStreamReply(source, {
    keepAliveMs: 1000,
    framing: {
      encode: (batch) => batch.map(({ json }) => json).join("|"),
      encodeFailure: (error) => `failed: ${(error as Error).message}`,
    },
  });
  streams.push(reply.frames[Symbol.asyncIterator]());
  return reply;
}

describe("eventStreamReply", () => {
  it("makes one write of a batch and ends with the source", async () => {
    const source = new Source();
    const opening = open(source);
    source.give("a", "b");
    const frames = (await opening).frames[Symbol.asyncIterator]();
    expect(await frames.next()).toEqual({ done: false, value: "a|b" });
    source.give("c");
    expect(await frames.next()).toEqual({ done: false, value: "c" });
    source.end();
    expect(await frames.next()).toEqual({ done: true, value: undefined });
    expect(await frames.next()).toEqual({ done: true, value: undefined });
    expect(source.closed).toBe(0);
  });

  it("pulls only when read", async () => {
    const source = new Source();
    const opening = open(source);
    source.give("a");
    const frames = (await opening).frames[Symbol.asyncIterator]();
    expect(source.pulls).toBe(0);
    await frames.next();
    expect(source.pulls).toBe(1);
  });

  it("passes over empty batches", async () => {
    const source = new Source();
    const opening = open(source);
    source.give();
    source.give("a");
    const frames = (await opening).frames[Symbol.asyncIterator]();
    expect((await frames.next()).value).toBe("a");
  });

  it("opens before there is anything to say", async () => {
    const source = new Source();
    const frames = (await open(source)).frames[Symbol.asyncIterator]();
    const waiting = frames.next();
    source.give("a");
    expect((await waiting).value).toBe("a");
  });

  it("says in pieces what is too much for one write, every frame once and in order", async () => {
    const source = new Source();
    const texts = Array.from({ length: 40 }, (_, index) => String.fromCharCode(65 + index).repeat(10_000));
    source.give(...texts);
    const frames = (await open(source)).frames[Symbol.asyncIterator]();
    const writes: string[] = [];
    let said = 0;
    while (said < texts.length) {
      const text = (await frames.next()).value as string;
      writes.push(text);
      said += text.split("|").length;
    }
    expect(writes.flatMap((text) => text.split("|"))).toEqual(texts);
    expect(Math.max(...writes.map((text) => text.length))).toBeLessThan(80_000);
    expect(source.pulls).toBe(1);
  });

  it("says what fails later, then ends", async () => {
    const source = new Source();
    const opening = open(source);
    source.give("a");
    const frames = (await opening).frames[Symbol.asyncIterator]();
    await frames.next();
    source.fail(new Error("late"));
    expect((await frames.next()).value).toBe("failed: late");
    expect((await frames.next()).done).toBe(true);
  });

  it("treats a batch that cannot be encoded as a failure", async () => {
    const source = new Source();
    const { frames } = eventStreamReply(source, {
      keepAliveMs: 1000,
      framing: {
        encode: () => {
          throw new Error("unwritable");
        },
        encodeFailure: String,
      },
    });
    source.give("a");
    const reader = frames[Symbol.asyncIterator]();
    expect((await reader.next()).value).toBe("Error: unwritable");
    expect((await reader.next()).done).toBe(true);
  });

  it("[STREAM-LEAVE-001] closes the source at once when the reader returns, though a batch is awaited", async () => {
    const source = new Source();
    const opening = open(source);
    source.give("a");
    const frames = (await opening).frames[Symbol.asyncIterator]();
    await frames.next();
    const waiting = frames.next();
    await frames.return?.();
    expect((await waiting).done).toBe(true);
    await frames.return?.();
    expect(source.closed).toBe(1);
  });

  it("drops what has not been read when the reader leaves", async () => {
    const source = new Source();
    const opening = open(source);
    source.give("a");
    const frames = (await opening).frames[Symbol.asyncIterator]();
    await frames.return?.();
    expect((await frames.next()).done).toBe(true);
  });
});

describe("keep-alive", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it("comments while nothing happens, and stops with the stream", async () => {
    const source = new Source();
    const opening = open(source);
    source.give("a");
    const frames = (await opening).frames[Symbol.asyncIterator]();
    await frames.next();
    const first = frames.next();
    await vi.advanceTimersByTimeAsync(1000);
    expect((await first).value).toBe(": keep-alive\n\n");
    const second = frames.next();
    await vi.advanceTimersByTimeAsync(1000);
    expect((await second).value).toBe(": keep-alive\n\n");
    expect(source.pulls).toBe(2);
    source.give("b");
    expect((await frames.next()).value).toBe("b");
    await frames.return?.();
    expect(vi.getTimerCount()).toBe(0);
  });

  it("loses nothing that comes while a comment is on its way", async () => {
    const source = new Source();
    const opening = open(source);
    source.give("a");
    const frames = (await opening).frames[Symbol.asyncIterator]();
    await frames.next();
    const comment = frames.next();
    await vi.advanceTimersByTimeAsync(1000);
    await comment;
    source.give("b");
    source.end();
    expect((await frames.next()).value).toBe("b");
    expect((await frames.next()).done).toBe(true);
  });

  it("opens the stream of a source that is silent from the start", async () => {
    const source = new Source();
    const opening = open(source);
    await vi.advanceTimersByTimeAsync(1000);
    const frames = (await opening).frames[Symbol.asyncIterator]();
    const first = frames.next();
    source.fail(new Error("late"));
    expect((await first).value).toBe("failed: late");
    await frames.return?.();
  });

  it("uses one timer for many streams", async () => {
    const opened = await Promise.all(
      [1, 2, 3].map(async () => {
        const source = new Source();
        const opening = open(source);
        source.give("a");
        return (await opening).frames[Symbol.asyncIterator]();
      }),
    );
    expect(vi.getTimerCount()).toBe(1);
    for (const frames of opened) await frames.return?.();
    expect(vi.getTimerCount()).toBe(0);
  });
});
