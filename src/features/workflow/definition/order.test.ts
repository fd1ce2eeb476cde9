import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { orderSteps } from "./order.ts";

const of = (needs: Record<string, readonly string[]>) => orderSteps(new Map(Object.entries(needs)));

describe("the order of steps", () => {
  it("follows what they need, and otherwise the file", () => {
    expect(of({ d: ["b", "c"], c: ["a"], b: ["a"], a: [] })).toEqual({ order: ["a", "c", "b", "d"], cycles: [] });
  });

  it("names each cycle once", () => {
    const needs = { a: ["b"], b: ["c", "x"], c: ["a"], d: ["a"], e: ["e"], f: ["g", "f"], g: [] };
    expect(of(needs).cycles).toEqual([["a", "b", "c"], ["e"], ["f"]]);
  });

  const graph = fc
    .integer({ min: 1, max: 12 })
    .chain((size) => fc.array(fc.uniqueArray(fc.nat(size - 1), { maxLength: 4 }), { minLength: size, maxLength: size }))
    .map((edges) => new Map(edges.map((needs, at) => [`s${at}`, needs.map((need) => `s${need}`)])));

  it("has each step once and after all it needs, unless there is a cycle, which is one", () => {
    fc.assert(
      fc.property(graph, (needs) => {
        const { order, cycles } = orderSteps(needs);
        for (const cycle of cycles) {
          cycle.forEach((name, at) => {
            expect(needs.get(name)).toContain(cycle[(at + 1) % cycle.length]);
          });
        }
        const isCyclic = [...needs.keys()].some((name) => reaches(needs, name, name));
        expect(cycles.length > 0).toBe(isCyclic);
        if (isCyclic) return;
        expect([...order].sort()).toEqual([...needs.keys()].sort());
        for (const [at, name] of order.entries()) {
          for (const need of needs.get(name) ?? []) expect(order.indexOf(need)).toBeLessThan(at);
        }
      }),
    );
  });

  function reaches(needs: ReadonlyMap<string, readonly string[]>, from: string, to: string): boolean {
    const seen = new Set<string>();
    const open = [...(needs.get(from) ?? [])];
    for (let name = open.pop(); name !== undefined; name = open.pop()) {
      if (name === to) return true;
      if (!seen.has(name)) open.push(...(needs.get(name) ?? []));
      seen.add(name);
    }
    return false;
  }
});
