import { describeViolation, type ScenarioReport } from "../simulator/index.ts";
import { safeLine } from "./text-form.ts";

const WORDS = { passed: "passed", failed: "FAILED", "not-shown": "not shown" } as const satisfies Record<
  ScenarioReport["outcome"],
  string
>;

const MOST_VIOLATIONS = 10;

/** One line for how it went, and one for each rule that was broken. */
export function describeReport({ name, outcome, violations, why }: ScenarioReport): string {
  const reason = why === undefined ? "" : `: ${safeLine(why)}`;
  const lines = violations
    .slice(0, MOST_VIOLATIONS)
    .map((violation) => `  ${safeLine(describeViolation(violation))}\n`);
  const rest = violations.length - lines.length;
  return `${name}: ${WORDS[outcome]}${reason}\n${lines.join("")}${rest > 0 ? `  and ${rest} more\n` : ""}`;
}
