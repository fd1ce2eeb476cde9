import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { StreamFrame } from "../../model/operation.ts";
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

let callers: AbortController[] = [];

function leaving(): AbortController {
  const caller = new AbortController();
  callers.push(caller);
  return caller;
}

afterEach(() => {
  for (const caller of callers) caller.abort();
  callers = [];
});

function open(source: Source, signal: AbortSignal = leaving().signal) {
  return eventStreamReply(source, {
    signal,
    keepAliveMs: 1000,
    encode: (batch) => batch.map(({ json }) => json).join("|"),
    encodeFailure: (error) => `failed: ${(error as Error).message}`,
  });
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
    expect(source.pulls).toBe(1);
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

  it("throws what fails before the first batch", async () => {
    const source = new Source();
    const opening = open(source);
    source.fail(new Error("no"));
    await expect(opening).rejects.toThrow("no");
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
    const opening = eventStreamReply(source, {
      signal: leaving().signal,
      keepAliveMs: 1000,
      encode: () => {
        throw new Error("unwritable");
      },
      encodeFailure: String,
    });
    source.give("a");
    await expect(opening).rejects.toThrow("unwritable");
  });

  it("[65] closes the source at once when the caller goes away, though a batch is awaited", async () => {
    const source = new Source();
    const caller = leaving();
    const opening = open(source, caller.signal);
    source.give("a");
    const frames = (await opening).frames[Symbol.asyncIterator]();
    await frames.next();
    const waiting = frames.next();
    caller.abort();
    expect(await waiting).toEqual({ done: true, value: undefined });
    expect(source.closed).toBe(1);
    source.give("too late");
    expect((await frames.next()).done).toBe(true);
  });

  it("[65] closes the source at once when the reader returns, though a batch is awaited", async () => {
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

  it("closes the source when the caller goes away before the first batch, or has gone already", async () => {
    const [source, caller] = [new Source(), leaving()];
    const opening = open(source, caller.signal);
    caller.abort();
    expect((await (await opening).frames[Symbol.asyncIterator]().next()).done).toBe(true);
    const other = new Source();
    expect((await (await open(other, caller.signal)).frames[Symbol.asyncIterator]().next()).done).toBe(true);
    expect([source.closed, other.closed, other.pulls]).toEqual([1, 1, 0]);
  });

  it("drops what nobody has read when the reader leaves", async () => {
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
