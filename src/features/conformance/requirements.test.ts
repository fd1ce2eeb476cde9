import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Check } from "./check.ts";
import { CARD_CHECKS, CROSS_CHECKS, INTERFACE_CHECKS } from "./checks/index.ts";
import { isApplicable, REQUIREMENT_IDS, REQUIREMENTS } from "./requirements.ts";

const CHECKS: readonly Check[] = [...CARD_CHECKS, ...INTERFACE_CHECKS, ...CROSS_CHECKS];

const ROOT = join(import.meta.dirname, "../../..");
/** At the start of a test's title: `"[CORE-GET-001, CORE-GET-002] …"`. */
const CITATION = /["'`]\[([A-Z0-9_]+(?:-[A-Z0-9a-z_]+)+(?:, [A-Z0-9_]+(?:-[A-Z0-9a-z_]+)+)*)\] /g;

function citedIds(): ReadonlySet<string> {
  const cited = new Set<string>();
  for (const folder of ["src", "test"]) {
    for (const file of readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })) {
      if (!file.endsWith(".test.ts")) continue;
      for (const [, ids = ""] of readFileSync(join(ROOT, folder, file), "utf8").matchAll(CITATION)) {
        for (const id of ids.split(", ")) cited.add(id);
      }
    }
  }
  return cited;
}

describe("requirements", () => {
  it("are each cited by a test, and no other is", () => {
    const cited = citedIds();
    const all = Object.entries(REQUIREMENTS);
    expect([...cited].filter((id) => !(id in REQUIREMENTS))).toEqual([]);
    expect(all.filter(([id, { level }]) => level !== "MAY" && !cited.has(id)).map(([id]) => id)).toEqual([]);
  });

  it("are each shown by a check, and checks show nothing else", () => {
    expect([...new Set(CHECKS.flatMap(({ shows }) => shows))].sort()).toEqual([...REQUIREMENT_IDS].sort());
  });

  it("are each asked for by a version, with the section that says so", () => {
    for (const [id, { sections, title }] of Object.entries(REQUIREMENTS)) {
      expect(Object.keys(sections).length, id).toBeGreaterThan(0);
      for (const section of Object.values(sections)) expect(section, id).toMatch(/^[A-Z0-9]+(\.\d+)*$/);
      expect(title, id).toMatch(/^[A-Za-z].*[^.]$/);
    }
  });

  it("apply by version and level", () => {
    expect(isApplicable("CORE-LIST-002", "1.0")).toBe(true);
    expect(isApplicable("CORE-LIST-002", "0.3")).toBe(false);
    expect(isApplicable("CARD-CACHE-001", "1.0", "SHOULD")).toBe(true);
    expect(isApplicable("CARD-CACHE-001", "1.0", "MUST")).toBe(false);
    expect(isApplicable("CARD-CACHE-003", "1.0", "SHOULD")).toBe(false);
  });
});

describe("checks", () => {
  it("have names of their own", () => {
    const names = CHECKS.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    for (const name of names) expect(name).toMatch(/^[a-z0-9]+(-[a-z0-9]+)*$/);
  });
});
