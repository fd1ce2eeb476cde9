import { describeViolation, type ScenarioReport } from "../simulator/index.ts";
import { safeLine } from "./text-form.ts";

const WORDS = { passed: "passed", failed: "FAILED", "not-shown": "not shown" } as const satisfies Record<
  ScenarioReport["outcome"],
  string
>;

const MOST_VIOLATIONS = 10;

/** One line for how it went, and one for each rule that was broken and each note. */
export function describeReport({ name, notes, outcome, source, violations, why }: ScenarioReport): string {
  const cited = source === undefined ? "" : ` [${source}]`;
  const reason = why === undefined ? "" : `: ${safeLine(why)}${cited}`;
  const all = [...violations.map(describeViolation), ...new Set(notes)];
  const lines = all.slice(0, MOST_VIOLATIONS).map((line) => `  ${safeLine(line)}\n`);
  const rest = all.length - lines.length;
  return `${name}: ${WORDS[outcome]}${reason}\n${lines.join("")}${rest > 0 ? `  and ${rest} more\n` : ""}`;
}
