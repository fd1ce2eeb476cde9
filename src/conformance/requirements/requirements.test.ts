import { describe, expect, it } from "vitest";
import { REQUIREMENTS as OBLIGATIONS } from "../../../test/wire/requirements.ts";
import type { Check } from "../check.ts";
import { CARD_CHECKS, CROSS_CHECKS, INTERFACE_CHECKS } from "../checks/index.ts";
import { isApplicable, REQUIREMENT_IDS, REQUIREMENTS } from "./index.ts";

const CHECKS: readonly Check[] = [...CARD_CHECKS, ...INTERFACE_CHECKS, ...CROSS_CHECKS];

const CLIENT = "a rule for clients";
const KEY = "needs the signer's key and what the card was before it was signed";

/** Obligations nobody can see from outside a server, each with the reason. */
const NOT_FROM_OUTSIDE: Readonly<Record<number, string>> = {
  5: CLIENT,
  6: CLIENT,
  10: KEY,
  11: KEY,
  12: KEY,
  13: KEY,
  15: CLIENT,
  16: CLIENT,
  67: CLIENT,
  75: "a rule for receivers of webhooks",
  84: "logs are not shown to callers",
};

describe("requirements", () => {
  it("cover every obligation that can be seen from outside, and no other", () => {
    const covered = new Set(REQUIREMENT_IDS.flatMap((id) => REQUIREMENTS[id].numbers ?? []));
    const expected = OBLIGATIONS.map(({ number }) => number).filter((number) => NOT_FROM_OUTSIDE[number] === undefined);
    expect([...covered].sort((one, other) => one - other)).toEqual(expected);
  });

  it("are each shown by a check, and checks show nothing else", () => {
    expect([...new Set(CHECKS.flatMap(({ shows }) => shows))].sort()).toEqual([...REQUIREMENT_IDS].sort());
  });

  it("are each asked for by a version, with the section that says so", () => {
    for (const id of REQUIREMENT_IDS) {
      const { sections, title } = REQUIREMENTS[id];
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
