import type { Exchange } from "./exchange-log.ts";
import { type Group, type Report, type RequirementResult, type Status, subjectName, type Tally } from "./report.ts";
import { LEVELS, type Level } from "./requirements.ts";

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

export function renderExchange(exchange: Exchange): string {
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
