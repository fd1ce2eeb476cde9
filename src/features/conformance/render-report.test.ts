import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { renderJunit } from "./render-junit.ts";
import { renderMarkdown } from "./render-markdown.ts";
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

  it("has a failure with what was seen, which no server can break out of", () => {
    const [root] = parseXml(xml);
    const failure = find(root, "failure");
    expect(failure?.attributes).toEqual({ message: clean(NASTY), type: "MUST section 3.1.3" });
    expect(failure?.text).toContain(`get-unknown-task: ${clean(NASTY)}\n    > POST https://agent.example/rpc`);
  });

  it("is well-formed and means what was given, whatever a server sent", () => {
    fc.assert(
      fc.property(text(), text(), (reason, name) => {
        const [root, ...more] = parseXml(renderJunit(reportWith(reason, name)));
        expect(more).toEqual([]);
        expect(find(root, "failure")?.attributes.message).toBe(clean(reason));
        expect(find(root, "failure")?.text).toContain(`get-unknown-task: ${clean(reason)}`);
        expect(find(root, "testcase")?.attributes.name).toBe(`CORE-GET-002 ${clean(name)}`);
      }),
    );
  });
});

describe("Markdown", () => {
  const markdown = renderMarkdown(REPORT);

  it("has the verdict, counts by interface, failures with what was seen, and what was not tested", () => {
    expect(markdown).toMatch(/^# A2A conformance of Agent 1\.2\.3\n\n\*\*Not conformant\.\*\* Card: /);
    expect(markdown).toContain("| passed of tested | MUST | SHOULD | MAY |\n| --- | --- | --- | --- |\n");
    expect(markdown).toMatch(/^\| JSONRPC, A2A 1\.0, .* \| 1\/2 \| 0\/0 \(1 not applicable\) \| 0\/0 \|$/m);
    expect(markdown).toContain("### CORE-GET-002: A title\n\nMUST, section 3.1.3, in JSONRPC");
    expect(markdown).toContain("```text\n    > POST https://agent.example/rpc\n    > Authorization: [redacted]");
    expect(markdown).toContain("- no task: CORE-HIST-001");
    expect(markdown).toContain("- WEBSOCKET 1.0 at wss&#58;//agent.example: this suite does not support it");
  });

  it("does not call conformant what was cut short", () => {
    expect(renderMarkdown({ ...REPORT, complete: false, conformant: true })).toMatch(
      /\*\*Conformant as far as the run got\.\*\*.*, cut short\./,
    );
  });

  it("contains no markup of a server, in its text or around its evidence", () => {
    const shape = linesOutsideFences(renderMarkdown(reportWith("x", "x")));
    fc.assert(
      fc.property(text(), text(), (reason, name) => {
        const lines = linesOutsideFences(renderMarkdown(reportWith(reason, name)));
        const written = lines.map((line, index) => line === shape[index]);
        // Two lines have the server's text: the title and the reason.
        expect(lines.length).toBe(shape.length);
        expect(written.filter((same) => !same).length).toBeLessThanOrEqual(2);
        for (const line of lines.filter((_, index) => !written[index])) {
          const rest = line.replace(/^(?:### CORE-GET-002: |- get-unknown-task: )/, "");
          expect(rest).toMatch(/^(?:[^<>&|*_`[\]\\~:@#!]|&#\d+;)*$/);
        }
      }),
    );
  });
});

/** Strings with what XML and Markdown give a meaning, or cannot contain. */
function text(): fc.Arbitrary<string> {
  const special = fc.constantFrom("<", ">", "&", '"', "]]>", "\r\n", "\n", "\r", "\t", "\0", "\u001b", "\ufffe");
  const markdown = fc.constantFrom(
    "`",
    "```",
    "````\n",
    "|",
    "*",
    "_",
    "[a](b)",
    "<b>",
    "\\",
    "#",
    "~~~",
    "&amp;",
    "\u0085",
  );
  return fc
    .array(fc.oneof(special, markdown, fc.string({ unit: "binary" }), fc.constant("\ud800")), { maxLength: 12 })
    .map((parts) => parts.join(""));
}

function reportWith(reason: string, title: string): Report {
  const failed = {
    ...result("CORE-GET-002", "MUST", {
      name: "get-unknown-task",
      status: "failed",
      durationMs: 1,
      reason,
      evidence: [{ ...EXCHANGE, responseBody: reason }],
    }),
    title,
  };
  return { ...REPORT, groups: REPORT.groups.map((group) => ({ ...group, requirements: [failed] })) };
}

/** As XML can represent it. */
function clean(value: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  return value.toWellFormed().replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd");
}

interface Element {
  readonly name: string;
  readonly attributes: Record<string, string>;
  readonly children: Element[];
  text: string;
}

function find(element: Element | undefined, name: string): Element | undefined {
  if (element === undefined || element.name === name) return element;
  for (const child of element.children) {
    const found = find(child, name);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** As strict as XML 1.0 where this form needs it: characters, references, line ends, nesting. */
function parseXml(xml: string): Element[] {
  expect(xml).toBe(clean(xml));
  const root: Element = { name: "", attributes: {}, children: [], text: "" };
  const open = [root];
  const body = xml.replace(/^<\?xml version="1\.0" encoding="UTF-8"\?>\n/, "").replace(/\r\n?/g, "\n");
  const token = /<\/([a-z]+)>|<([a-z]+)((?: [a-z]+="[^<"]*")*)(\/?)>|([^<]+)/gy;
  let end = 0;
  for (const [all, closing, name, attributes = "", selfClosing, characters] of body.matchAll(token)) {
    end += all.length;
    const top = open.at(-1) as Element;
    if (closing !== undefined) expect(open.pop()?.name).toBe(closing);
    else if (name !== undefined) {
      const pairs = [...attributes.matchAll(/([a-z]+)="([^"]*)"/g)];
      // A parser normalises white space of attributes that is not written as a reference.
      const values = pairs.map(([, key = "", value = ""]) => [key, decode(value.replace(/[\t\n]/g, " "))] as const);
      const element = { name, attributes: Object.fromEntries(values), children: [], text: "" };
      top.children.push(element);
      if (selfClosing === "") open.push(element);
    } else top.text += decode(characters ?? "");
  }
  expect(end).toBe(body.length);
  expect(open).toEqual([root]);
  return root.children;
}

const ENTITIES: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"' };

function decode(value: string): string {
  if (/]]>|&(?!(?:amp|lt|gt|quot|#\d+);)/.test(value)) throw new Error(`Not escaped: ${value}`);
  return value.replace(/&(?:#(\d+)|(\w+));/g, (_, code, name) => ENTITIES[name] ?? String.fromCodePoint(Number(code)));
}

/** By the rule of CommonMark: a fence ends with the first line that has at least as many backticks and nothing else. */
function linesOutsideFences(markdown: string): string[] {
  const outside: string[] = [];
  let fence: string | undefined;
  for (const line of markdown.split("\n")) {
    const [, ticks] = /^ {0,3}(`{3,})[^`]*$/.exec(line) ?? [];
    if (fence === undefined) outside.push(line.replace(/^`+text$/, "```text"));
    if (fence === undefined) fence = ticks;
    else if (ticks !== undefined && ticks.length >= fence.length && line.trim() === ticks) fence = undefined;
  }
  expect(fence).toBeUndefined();
  return outside;
}
