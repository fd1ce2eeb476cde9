import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { findCitations, toResults, yamlReport } from "../../scripts/a2a-cli-report.ts";
import { CLI_ERROR_EXITS } from "../../src/core/cli/errors.ts";
import { REQUIREMENTS } from "./requirements.ts";

const citations = findCitations();

describe("the requirements of the a2a-cli specification", () => {
  it("are all in the list, each in its tier", () => {
    expect([1, 2, 3].map((tier) => REQUIREMENTS.filter((one) => one.tier === tier).length)).toEqual([39, 15, 12]);
    expect(new Set(REQUIREMENTS.map(({ id }) => id)).size).toBe(66);
  });

  it("are each cited by a test, and no other ids are", () => {
    const known = new Set(REQUIREMENTS.map(({ id }) => id));
    expect(citations.flatMap(({ ids }) => ids).filter((id) => !known.has(id))).toEqual([]);
    const results = toResults(citations);
    expect(results.filter(({ status }) => status === "not_measured").map(({ id }) => id)).toEqual([]);
    expect(results.filter(({ status }) => status === "na").map(({ id }) => id)).toEqual(["SKILL_001", "SKILL_002"]);
  });
});

describe("the report", () => {
  const file = new URL("../../docs/a2a-cli-report.yaml", import.meta.url);
  const report = parse(readFileSync(file, "utf8"));

  it("is up to date, in the form of the specification, and claims what is shown", () => {
    expect(report).toEqual(parse(yamlReport(toResults(citations))));
    expect(Object.keys(report)).toEqual([
      "report",
      "summary",
      "requirements",
      "default_001_breakdown",
      "error_codes",
      "attestation",
    ]);
    expect(report.report).toMatchObject({ spec_version: "0.2", spec_revision: "2026-08-17", tier_claimed: 3 });
    expect(Object.keys(report.requirements)).toEqual(REQUIREMENTS.map(({ id }) => `A2ACLI_${id}`));
    for (const tier of ["tier_1", "tier_2", "tier_3"]) {
      const { na, not_measured, partial, fail, pass, satisfied, total } = report.summary[tier];
      expect([pass + na, partial, fail, not_measured, satisfied]).toEqual([total, 0, 0, 0, true]);
    }
    expect(Object.keys(report.error_codes)).toEqual(Object.keys(CLI_ERROR_EXITS));
  });

  it("gives a note for whatever is not a pass", () => {
    for (const { note, status } of Object.values<{ note: string | null; status: string }>(report.requirements))
      if (status !== "pass") expect(note).toMatch(/\w/);
  });
});
