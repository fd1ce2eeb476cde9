import { renderExchange } from "./render-report.ts";
import {
  type CheckResult,
  type Group,
  type Report,
  type RequirementResult,
  subjectName,
  type Tally,
} from "./report.ts";
import { LEVELS } from "./requirements.ts";

/** For pages and job summaries: counts by interface, failures with what was sent and received, and what was not tested. */
export function renderMarkdown(report: Report): string {
  const { agent, complete, conformant, durationMs, groups, startedAt, untested } = report;
  const verdict = conformant ? (complete ? "Conformant" : "Conformant as far as the run got") : "Not conformant";
  const failed = groups.flatMap(({ requirements, subject }) =>
    requirements.flatMap((result) => (result.status === "failed" ? renderFailure(result, subjectName(subject)) : [])),
  );
  const lines = [
    `# A2A conformance of ${escapeText(`${agent.name} ${agent.version}`.trim())}`,
    "",
    `**${verdict}.** Card: ${escapeText(agent.card)}. ${startedAt}, ${(durationMs / 1_000).toFixed(1)} s${complete ? "" : ", cut short"}.`,
    "",
    `| passed of tested | ${LEVELS.join(" | ")} |`,
    `| --- |${" --- |".repeat(LEVELS.length)}`,
    ...groups.map(renderRow),
    ...(failed.length === 0 ? [] : ["", "## Failed", ...failed]),
    ...renderNotShown(groups, untested),
  ];
  return `${lines.join("\n")}\n`;
}

function renderRow({ subject, tally }: Group): string {
  const cells = LEVELS.map((level) => countText(tally[level]));
  return `| ${[escapeText(subjectName(subject)), ...cells].join(" | ")} |`;
}

function countText({ failed, notShown, passed }: Tally): string {
  return `${passed}/${passed + failed}${notShown === 0 ? "" : ` (${notShown} not applicable)`}`;
}

function renderFailure({ checks, id, level, section, title }: RequirementResult, subject: string): string[] {
  const failed = checks.filter(({ status }) => status === "failed");
  return [
    "",
    `### ${id}: ${escapeText(title)}`,
    "",
    `${level}, section ${section}, in ${escapeText(subject)}`,
    "",
    ...failed.map(({ name, reason = "" }) => `- ${name}: ${escapeText(reason)}`),
    ...failed.flatMap(renderEvidence),
  ];
}

function renderEvidence({ evidence = [], name }: CheckResult): string[] {
  if (evidence.length === 0) return [];
  const content = sanitize(evidence.slice(-2).map(renderExchange).join("\n\n"));
  const fence = "`".repeat(Math.max(3, longestRun(content) + 1));
  const summary = `<details><summary>${name}: what was sent and received</summary>`;
  return ["", summary, "", `${fence}text`, content, fence, "", "</details>"];
}

function longestRun(text: string): number {
  return Math.max(0, ...(text.match(/`+/g) ?? []).map(({ length }) => length));
}

/** By reason: a capability that an agent does not have leaves many requirements without a test. */
function renderNotShown(groups: readonly Group[], untested: readonly string[]): string[] {
  const ids = new Map<string, Set<string>>();
  for (const { checks, id, status } of groups.flatMap(({ requirements }) => requirements)) {
    if (status !== "not-shown") continue;
    const reason = checks[0]?.reason ?? "";
    ids.set(reason, (ids.get(reason) ?? new Set()).add(id));
  }
  if (ids.size === 0 && untested.length === 0) return [];
  return [
    "",
    "## Not tested",
    "",
    ...untested.map((one) => `- ${escapeText(one)}: this suite does not support it`),
    ...[...ids].map(([reason, some]) => `- ${escapeText(reason)}: ${[...some].join(", ")}`),
  ];
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROL_CHARACTERS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029]/g;

function sanitize(text: string): string {
  return text.toWellFormed().replaceAll("\r\n", "\n").replace(CONTROL_CHARACTERS, "\ufffd");
}

/** Everything that could be markup becomes a character reference, which is only ever text: the text is the server's. */
function escapeText(text: string): string {
  return sanitize(text)
    .replace(/\s+/g, " ")
    .replace(/[^\p{L}\p{N} ,.;'"()/+=%?\ufffd-]/gu, (character) => `&#${character.codePointAt(0)};`);
}
