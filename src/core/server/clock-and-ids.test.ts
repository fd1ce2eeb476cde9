import fc from "fast-check";
import { expect, test } from "vitest";
import { uuidIds, uuidV7 } from "./clock-and-ids.ts";

const FORM = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

test("an id has the form of a UUID of version 7 and begins with its time", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 2 ** 48 - 1 }), (now) => {
      const id = uuidV7(now);
      expect(id).toMatch(FORM);
      expect(Number.parseInt(id.slice(0, 13).replace("-", ""), 16)).toBe(now);
    }),
  );
});

test("a hundred thousand ids are all different, across refills of the pool", () => {
  const ids = new Set(Array.from({ length: 100_000 }, () => uuidIds.task()));
  expect(ids.size).toBe(100_000);
});

test("ids of one millisecond sort in the order they were made", () => {
  const ids = Array.from({ length: 1_000 }, () => uuidV7(1_700_000_000_000));
  expect(ids.toSorted()).toEqual(ids);
});

test("ids of later milliseconds sort after those of earlier ones", () => {
  expect(uuidV7(1_700_000_000_000) < uuidV7(1_700_000_000_001)).toBe(true);
});
