import type { Exchange } from "./exchange-log.ts";
import {
  type CheckResult,
  type Group,
  type Report,
  type RequirementResult,
  type Status,
  subjectName,
  type Tally,
} from "./report.ts";
import { LEVELS, type Level } from "./requirements.ts";

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
  return text
    .toWellFormed()
    .replace(INVALID_XML_CHARACTERS, "\ufffd")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;");
}

function escapeAttribute(text: string): string {
  return escapeText(text)
    .replaceAll('"', "&quot;")
    .replace(/[\t\n\r]/g, (character) => `&#${character.charCodeAt(0)};`);
}

interface TextOptions {
  /** Also lists passed requirements and the reasons why others were not applicable. */
  readonly verbose?: boolean;
}

const MARKS = { passed: "pass", failed: "FAIL", "not-shown": "  - " } as const satisfies Record<Status, string>;

/** Column widths that fit common values. */
const ID_WIDTH = 23;
const PLACE_WIDTH = 14;

/** For the terminal: failures with their evidence by interface, and the totals. */
export function renderText(report: Report, options: TextOptions = {}): string {
  const { agent, complete, conformant, durationMs, groups, tally, untested } = report;
  const title = [`Agent: ${agent.name} ${agent.version}`.trimEnd(), `Card: ${agent.card}`];
  const failed = groups.flatMap(({ requirements, subject }) =>
    requirements.flatMap((result) => (result.status === "failed" ? [renderFailure(result, subjectName(subject))] : [])),
  );
  const open = complete ? "not applicable" : "not applicable or not run";
  const lines = [
    ...title,
    "",
    ...groups.flatMap((group) => [...groupLines(group, open, options), ""]),
    ...failed.flatMap((block) => [block, ""]),
    ...untested.map((one) => `Not tested: ${one}`),
    ...countLines(tally, open),
    `Time: ${(durationMs / 1_000).toFixed(1)} s${complete ? "" : ", cut short"}`,
    `Conformant: ${conformant ? (complete ? "yes" : "as far as the run got") : "no"}`,
  ];
  return `${lines.join("\n")}\n`;
}

function groupLines(group: Group, open: string, { verbose }: TextOptions): string[] {
  const { requirements, subject, tally } = group;
  const shown = requirements.filter(({ status }) => verbose === true || status === "failed");
  const counts = LEVELS.map((level) => `${level} ${countText(tally[level], open)}`).join(", ");
  return [subjectName(subject), `  ${counts}`, ...shown.map((result) => requirementLine(result, verbose === true))];
}

function requirementLine(result: RequirementResult, verbose: boolean): string {
  const { checks, id, level, section, status, title } = result;
  const why = status === "not-shown" && verbose ? `: ${checks[0]?.reason ?? ""}` : "";
  const place = `${level} §${section}`;
  return `  ${MARKS[status]}  ${id.padEnd(ID_WIDTH)}  ${place.padEnd(PLACE_WIDTH)}  ${title}${why}`;
}

function countText({ failed, notShown, passed }: Tally, open: string): string {
  const rest = notShown === 0 ? "" : ` (${notShown} ${open})`;
  return `${passed}/${passed + failed}${rest}`;
}

function countLines(tally: Readonly<Record<Level, Tally>>, open: string): string[] {
  return LEVELS.map((level) => {
    const { failed, notShown, passed } = tally[level];
    return `${level}: ${passed} passed, ${failed} failed, ${notShown} ${open}`;
  });
}

function renderFailure({ checks, id, level, section, title }: RequirementResult, subject: string): string {
  const failed = checks.filter(({ status }) => status === "failed");
  const blocks = failed.map(({ evidence = [], name, reason }) =>
    [`  ${name}: ${reason ?? ""}`, ...evidence.slice(-2).map(renderExchange)].join("\n"),
  );
  return [`${id} (${level}, section ${section}): ${title}`, `  in ${subject}`, ...blocks].join("\n");
}

function renderExchange(exchange: Exchange): string {
  const { request, requestBody, requestHeaders, response, responseBody, responseHeaders } = exchange;
  const lines = [
    `> ${request}`,
    ...Object.entries(requestHeaders).map(([name, value]) => `> ${name}: ${value}`),
    ...(requestBody === "" ? [] : [`> ${requestBody}`]),
    `< ${response}`,
    ...Object.entries(responseHeaders).map(([name, value]) => `< ${name}: ${value}`),
    ...responseBody.split("\n").flatMap((line) => (line.trim() === "" ? [] : [`< ${line}`])),
  ];
  return lines.map((line) => `    ${line}`).join("\n");
}
