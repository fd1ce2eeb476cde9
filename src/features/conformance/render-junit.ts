import { renderExchange } from "./render-report.ts";
import { type CheckResult, type Group, type Report, type RequirementResult, subjectName } from "./report.ts";

/** For build servers: one suite per interface, one case per requirement. */
export function renderJunit(report: Report): string {
  const suites = report.groups.map(renderSuite).join("");
  const cases = report.groups.flatMap(({ requirements }) => requirements);
  const head = renderAttributes({
    name: "A2A conformance",
    ...countResults(cases),
    time: toSeconds(report.durationMs),
  });
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites ${head}>\n${suites}</testsuites>\n`;
}

function renderSuite({ requirements, subject }: Group): string {
  const time = requirements.reduce((sum, { checks }) => sum + durationOf(checks), 0);
  const head = renderAttributes({ name: subjectName(subject), ...countResults(requirements), time: toSeconds(time) });
  return `  <testsuite ${head}>\n${requirements.map((result) => renderCase(result, subjectName(subject))).join("")}  </testsuite>\n`;
}

function renderCase(result: RequirementResult, subject: string): string {
  const { checks, id, level, section, status, title } = result;
  const head = renderAttributes({
    name: `${id} ${title}`,
    classname: `${level}.${subject.replaceAll(".", "_")}`,
    time: toSeconds(durationOf(checks)),
  });
  if (status === "passed") return `    <testcase ${head}/>\n`;
  const reason = checks.find((check) => check.status === status)?.reason ?? "";
  if (status === "not-shown") {
    return `    <testcase ${head}>\n      <skipped ${renderAttributes({ message: reason })}/>\n    </testcase>\n`;
  }
  const about = renderAttributes({ message: reason, type: `${level} section ${section}` });
  return `    <testcase ${head}>\n      <failure ${about}>${escapeText(failureDetails(checks))}</failure>\n    </testcase>\n`;
}

function failureDetails(checks: readonly CheckResult[]): string {
  return checks
    .filter(({ status }) => status === "failed")
    .map(({ evidence = [], name, reason }) => [`${name}: ${reason ?? ""}`, ...evidence.map(renderExchange)].join("\n"))
    .join("\n\n");
}

/** A failed requirement below MUST also fails its case; the level is in the class name. */
function countResults(results: readonly RequirementResult[]) {
  const count = (wanted: RequirementResult["status"]) => results.filter(({ status }) => status === wanted).length;
  return {
    tests: String(results.length),
    failures: String(count("failed")),
    errors: "0",
    skipped: String(count("not-shown")),
  };
}

function durationOf(checks: readonly CheckResult[]): number {
  return checks.reduce((sum, { durationMs }) => sum + durationMs, 0);
}

function toSeconds(milliseconds: number): string {
  return (milliseconds / 1_000).toFixed(3);
}

function renderAttributes(values: Readonly<Record<string, string>>): string {
  return Object.entries(values)
    .map(([name, value]) => `${name}="${escapeAttribute(value)}"`)
    .join(" ");
}

// Characters that XML 1.0 cannot represent, not even escaped.
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const INVALID_XML_CHARACTERS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g;

function escapeText(text: string): string {
  return (
    text
      .toWellFormed()
      .replace(INVALID_XML_CHARACTERS, "\ufffd")
      .replaceAll("&", "&amp;")
      .replaceAll("<", "&lt;")
      .replaceAll(">", "&gt;")
      // Parsers would turn it into a line feed.
      .replaceAll("\r", "&#13;")
  );
}

function escapeAttribute(text: string): string {
  return escapeText(text)
    .replaceAll('"', "&quot;")
    .replace(/[\t\n]/g, (character) => `&#${character.charCodeAt(0)};`);
}
