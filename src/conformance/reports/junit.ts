import { type CheckResult, type Group, type Report, type RequirementResult, subjectName } from "../report.ts";
import { exchangeText } from "./text.ts";

/** For build servers: one suite for each interface, one case for each requirement. */
export function renderJunit(report: Report): string {
  const suites = report.groups.map(suite).join("");
  const cases = report.groups.flatMap(({ requirements }) => requirements);
  const head = attributes({ name: "A2A conformance", ...counts(cases), time: seconds(report.durationMs) });
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites ${head}>\n${suites}</testsuites>\n`;
}

function suite({ requirements, subject }: Group): string {
  const time = requirements.reduce((sum, { checks }) => sum + durationOf(checks), 0);
  const head = attributes({ name: subjectName(subject), ...counts(requirements), time: seconds(time) });
  return `  <testsuite ${head}>\n${requirements.map((result) => testCase(result, subjectName(subject))).join("")}  </testsuite>\n`;
}

function testCase(result: RequirementResult, subject: string): string {
  const { checks, id, level, section, status, title } = result;
  const head = attributes({
    name: `${id} ${title}`,
    classname: `${level}.${subject.replaceAll(".", "_")}`,
    time: seconds(durationOf(checks)),
  });
  if (status === "passed") return `    <testcase ${head}/>\n`;
  const reason = checks.find((check) => check.status === status)?.reason ?? "";
  if (status === "not-shown") {
    return `    <testcase ${head}>\n      <skipped ${attributes({ message: reason })}/>\n    </testcase>\n`;
  }
  const about = attributes({ message: reason, type: `${level} section ${section}` });
  return `    <testcase ${head}>\n      <failure ${about}>${escapeText(details(checks))}</failure>\n    </testcase>\n`;
}

function details(checks: readonly CheckResult[]): string {
  return checks
    .filter(({ status }) => status === "failed")
    .map(({ evidence = [], name, reason }) => [`${name}: ${reason ?? ""}`, ...evidence.map(exchangeText)].join("\n"))
    .join("\n\n");
}

/** A requirement below MUST that failed is a failure of the case, too; the level is in its class name. */
function counts(results: readonly RequirementResult[]) {
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

function seconds(milliseconds: number): string {
  return (milliseconds / 1_000).toFixed(3);
}

function attributes(values: Readonly<Record<string, string>>): string {
  return Object.entries(values)
    .map(([name, value]) => `${name}="${escapeAttribute(value)}"`)
    .join(" ");
}

// XML 1.0 has no way to write these, not even escaped.
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const UNWRITABLE = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g;

function escapeText(text: string): string {
  return text
    .toWellFormed()
    .replace(UNWRITABLE, "\ufffd")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;");
}

function escapeAttribute(text: string): string {
  return escapeText(text)
    .replaceAll('"', "&quot;")
    .replace(/[\t\n\r]/g, (character) => `&#${character.charCodeAt(0)};`);
}
