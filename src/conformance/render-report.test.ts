import { describe, expect, it } from "vitest";
import { renderJunit } from "./render-junit.ts";
import { renderText } from "./render-report.ts";
import { type CheckResult, type Report, type RequirementResult, statusOf, tallyOf } from "./report.ts";

const NASTY = `<a href="x">&amp; ]]> \u0000\u001b[31m\ud800 "quoted"\nnext</a>`;

const EXCHANGE = {
  request: "POST https://agent.example/rpc",
  requestHeaders: { Authorization: "[redacted]" },
  requestBody: '{"method":"GetTask"}',
  response: "200",
  responseHeaders: { "content-type": "application/json" },
  responseBody: NASTY,
};

const result = (
  id: RequirementResult["id"],
  level: RequirementResult["level"],
  ...checks: CheckResult[]
): RequirementResult => ({
  id,
  level,
  section: "3.1.3",
  title: "A title",
  status: statusOf(checks),
  checks,
});

const REQUIREMENTS: readonly RequirementResult[] = [
  result("CORE-GET-001", "MUST", { name: "get-task", status: "passed", durationMs: 12 }),
  result("CORE-GET-002", "MUST", {
    name: "get-unknown-task",
    status: "failed",
    durationMs: 1,
    reason: NASTY,
    evidence: [EXCHANGE],
  }),
  result("CORE-HIST-001", "SHOULD", { name: "history-none", status: "not-shown", durationMs: 0, reason: "no task" }),
];

const REPORT: Report = {
  schemaVersion: 1,
  agent: { name: "Agent", version: "1.2.3", card: "https://agent.example/card.json" },
  startedAt: "2026-01-01T00:00:00.000Z",
  durationMs: 1_234,
  complete: true,
  conformant: false,
  tally: tallyOf(REQUIREMENTS),
  groups: [
    {
      subject: {
        kind: "interface",
        version: "1.0",
        binding: "JSONRPC",
        url: "https://agent.example/rpc",
        tenant: "acme",
      },
      tally: tallyOf(REQUIREMENTS),
      requirements: REQUIREMENTS,
    },
  ],
  untested: ["WEBSOCKET 1.0 at wss://agent.example"],
};

describe("results", () => {
  it("fail with any check, and are shown by any that passed", () => {
    const of = (...statuses: CheckResult["status"][]) =>
      statusOf(statuses.map((status) => ({ name: "x", status, durationMs: 0 })));
    expect(of("passed", "failed", "not-shown")).toBe("failed");
    expect(of("not-shown", "passed")).toBe("passed");
    expect(of("not-shown")).toBe("not-shown");
  });

  it("are counted by level", () => {
    expect(REPORT.tally).toEqual({
      MUST: { passed: 1, failed: 1, notShown: 0 },
      SHOULD: { passed: 0, failed: 0, notShown: 1 },
      MAY: { passed: 0, failed: 0, notShown: 0 },
    });
  });
});

describe("the text", () => {
  it("has counts by interface, failures with their section and what was seen", () => {
    const text = renderText(REPORT);
    expect(text).toContain(
      "JSONRPC, A2A 1.0, https://agent.example/rpc, tenant acme\n  MUST 1/2, SHOULD 0/0 (1 not applicable)",
    );
    expect(text).toContain("CORE-GET-002 (MUST, section 3.1.3): A title");
    expect(text).toContain('    > Authorization: [redacted]\n    > {"method":"GetTask"}\n    < 200');
    expect(text).toContain("MUST: 1 passed, 1 failed, 0 not applicable");
    expect(text).toContain("Not tested: WEBSOCKET 1.0 at wss://agent.example");
    expect(text).toMatch(/\nTime: 1\.2 s\nConformant: no\n$/);
    expect(text).not.toContain("CORE-GET-001");
  });

  it("tells everything when asked to", () => {
    const text = renderText(REPORT, { verbose: true });
    expect(text).toMatch(/pass {2}CORE-GET-001 +MUST/);
    expect(text).toMatch(/CORE-HIST-001 .*A title: no task/);
  });

  it("does not call conformant what was cut short", () => {
    const text = renderText({ ...REPORT, complete: false, conformant: true });
    expect(text).toMatch(/cut short\nConformant: as far as the run got\n$/);
  });
});

describe("JUnit", () => {
  const xml = renderJunit(REPORT);

  it("has a suite for the interface and a case for each requirement", () => {
    expect(xml).toContain(
      '<testsuites name="A2A conformance" tests="3" failures="1" errors="0" skipped="1" time="1.234">',
    );
    expect(xml).toContain('<testsuite name="JSONRPC, A2A 1.0, https://agent.example/rpc, tenant acme" tests="3"');
    expect(xml).toContain('<testcase name="CORE-GET-001 A title"');
    expect(xml).toContain('<skipped message="no task"/>');
  });

  it("is well-formed, whatever a server sent", () => {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: none of them may be there
    expect(xml).not.toMatch(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/);
    expect(xml.isWellFormed()).toBe(true);
    expect(xml).toContain("&lt;a href=&quot;x&quot;&gt;&amp;amp; ]]&gt;");
    expect(xml).toContain("&#10;next");
    expect(balanced(xml)).toEqual([]);
  });
});

/** Names of elements that are not closed. */
function balanced(xml: string): string[] {
  const open: string[] = [];
  for (const [, closing, name = "", selfClosing] of xml.matchAll(/<(\/?)([a-z]+)(?:[^>"]|"[^"]*")*?(\/?)>/g)) {
    if (closing === "/") expect(open.pop()).toBe(name);
    else if (selfClosing !== "/") open.push(name);
  }
  return open;
}
