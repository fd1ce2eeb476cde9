import { expect, test } from "vitest";
import { iterateBatches } from "./remote-agent.ts";

async function* batches(...given: (readonly number[] | Error)[]): AsyncGenerator<readonly number[], void, undefined> {
  for (const batch of given) {
    if (batch instanceof Error) throw batch;
    yield batch;
  }
}

test("batches become single events, empty ones nothing", async () => {
  const all: number[] = [];
  for await (const value of iterateBatches(batches([1, 2], [], [3]), () => {})) all.push(value);
  expect(all).toEqual([1, 2, 3]);
});

test("several reads at a time get one event each, in order", async () => {
  const iterator = iterateBatches(batches([1], [2, 3]), () => {});
  const reads = await Promise.all(Array.from({ length: 5 }, () => iterator.next()));
  expect(reads.map(({ value }) => value)).toEqual([1, 2, 3, undefined, undefined]);
});

test("a failure comes after the events before it, once", async () => {
  const iterator = iterateBatches(batches([1], new Error("broken")), () => {});
  expect(await iterator.next()).toEqual({ done: false, value: 1 });
  await expect(iterator.next()).rejects.toThrow("broken");
  expect(await iterator.next()).toEqual({ done: true, value: undefined });
});

test("leaving abandons what is under way and drops what was read ahead", async () => {
  let abandoned = 0;
  const iterator = iterateBatches(batches([1, 2, 3]), () => abandoned++);
  await iterator.next();
  await iterator.return?.();
  expect(abandoned).toBe(1);
  expect(await iterator.next()).toEqual({ done: true, value: undefined });
});
