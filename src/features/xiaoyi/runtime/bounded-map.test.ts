import { expect, it } from "vitest";
import { BoundedMap } from "./bounded-map.ts";

it("forgets what was not asked for the longest", () => {
  const map = new BoundedMap<string, number>(2);
  map.set("a", 1);
  map.set("b", 2);
  expect(map.get("a")).toBe(1);
  map.set("c", 3);
  expect([map.get("a"), map.get("b"), map.get("c")]).toEqual([1, undefined, 3]);
  expect(map.delete("a")).toBe(true);
  expect(map.get("a")).toBeUndefined();
});

it("keeps what must not go, and forgets it when it may", () => {
  const map = new BoundedMap<number, { busy: boolean }>(3, ({ busy }) => !busy);
  const all = Array.from({ length: 10 }, () => ({ busy: true }));
  for (const [key, value] of all.entries()) map.set(key, value);
  expect(all.every((value, key) => map.get(key) === value)).toBe(true);
  for (const value of all) value.busy = false;
  for (let key = 10; key < 30; key++) map.set(key, { busy: false });
  expect(map.size).toBe(3);
  expect(map.get(29)).toEqual({ busy: false });
});
