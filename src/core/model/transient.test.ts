import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Membership, TransientMap, TransientSet } from "./transient.ts";

const key = fc.nat(5);
const step = fc.record({ kind: fc.constantFrom("set", "delete"), key });

describe("TransientMap", () => {
  test("behaves like a Map", () => {
    fc.assert(
      fc.property(fc.array(step), (steps) => {
        const map = new TransientMap<number, { readonly place: number }>();
        const model = new Map<number, { readonly place: number }>();
        steps.forEach(({ kind, key }, place) => {
          for (const each of [map, model]) {
            if (kind === "set") each.set(key, { place });
            else each.delete(key);
          }
          expect(map.size).toBe(model.size);
          expect(map.get(key)).toEqual(model.get(key));
          expect(map.has(key)).toBe(model.has(key));
          expect(map.values()).toEqual([...model.values()]);
        });
      }),
    );
  });
});

describe("TransientSet", () => {
  test("has what was added and not deleted, in order", () => {
    fc.assert(
      fc.property(fc.array(step), (steps) => {
        const set = new TransientSet<{ readonly place: number }>();
        const memberships: Membership<{ readonly place: number }>[] = [];
        let expected: number[] = [];
        steps.forEach(({ kind, key }, place) => {
          const membership = memberships[key];
          if (kind === "set" || membership === undefined) {
            memberships.push(set.add({ place }));
            expected.push(place);
          } else {
            const value = membership.value?.place;
            expect(set.delete(membership)).toBe(value !== undefined);
            expected = expected.filter((one) => one !== value);
          }
          expect(set.values().map((one) => one.place)).toEqual(expected);
          expect(set.size).toBe(expected.length);
        });
      }),
    );
  });
});
