import { describe, expect, it } from "vitest";
import { DONE, pipeFrames } from "./pipe-frames.ts";

/** Gives the batches, then waits for ever. */
function sourceOf(...batches: readonly number[]) {
  const waiting = [...batches];
  const log: string[] = [];
  const source: AsyncIterator<number> & { readonly log: string[] } = {
    log,
    next() {
      const value = waiting.shift();
      return value === undefined ? new Promise(() => {}) : Promise.resolve({ done: false, value });
    },
    return() {
      log.push("left");
      return Promise.reject(new Error("what the source does then concerns no reader"));
    },
  };
  return source;
}

async function* counting(to: number): AsyncGenerator<number> {
  for (let number = 1; number <= to; number++) yield number;
}

const read = async (stream: AsyncIterable<unknown>) => {
  const all: unknown[] = [];
  for await (const batch of stream) all.push(batch);
  return all;
};

describe("a piped stream", () => {
  it("gives every batch as it is mapped, and one more at the end", async () => {
    const closed: string[] = [];
    const onClose = () => void closed.push("closed");
    expect(await read(pipeFrames(counting(2), { map: (n) => n * 2, atEnd: () => 0, onClose }))).toEqual([2, 4, 0]);
    expect(closed).toEqual(["closed"]);
  });

  it("leaves its source at the batch that ends it, without one more", async () => {
    const source = sourceOf(1, 2, 3);
    const map = (batch: number, end: () => void) => {
      if (batch === 2) end();
      return batch;
    };
    expect(await read(pipeFrames(source, { map, atEnd: () => 0 }))).toEqual([1, 2]);
    expect(source.log).toEqual(["left"]);
  });

  it("leaves its source while a batch is awaited", async () => {
    const source = sourceOf();
    const closed: string[] = [];
    const stream = pipeFrames(source, { map: (n) => n, onClose: () => void closed.push("closed") });
    void stream.next();
    expect(await stream.return?.()).toBe(DONE);
    expect([source.log, closed, await stream.next()]).toEqual([["left"], ["closed"], DONE]);
  });

  it("leaves its source where a batch cannot be mapped, and says so in its own way", async () => {
    const source = sourceOf(1);
    const map = (): never => {
      throw new Error("cannot be mapped");
    };
    const stream = pipeFrames(source, { map, toError: (error) => new TypeError("mapped", { cause: error }) });
    await expect(stream.next()).rejects.toThrow(new TypeError("mapped"));
    expect([source.log, await stream.next()]).toEqual([["left"], DONE]);
  });

  it("passes on an error of its source", async () => {
    async function* broken(): AsyncGenerator<number> {
      yield 1;
      throw new RangeError("broken");
    }
    const stream = pipeFrames(broken(), { map: (n) => n });
    expect(await stream.next()).toEqual({ done: false, value: 1 });
    await expect(stream.next()).rejects.toThrow(RangeError);
  });
});
