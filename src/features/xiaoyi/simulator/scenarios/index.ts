import type { Simulator } from "../simulator.ts";
import { describeViolation, isNote, type Violation } from "../violations.ts";
import { NotShown, ScenarioContext, ScenarioFailure, type ScenarioOptions } from "./scenario-context.ts";
import { SCENARIOS } from "./scenarios.ts";

export { PHRASE_NAMES, type Phrases, type ScenarioOptions } from "./scenario-context.ts";
export { SCENARIOS } from "./scenarios.ts";

export type ScenarioName = keyof typeof SCENARIOS;

export const SCENARIO_NAMES = Object.keys(SCENARIOS) as readonly ScenarioName[];

export interface ScenarioReport {
  readonly name: ScenarioName;
  readonly outcome: "passed" | "failed" | "not-shown";
  readonly why: string | undefined;
  /** Source of the rule that `why` refers to; only for failures. */
  readonly source?: string;
  /** Documented rules broken during the run; any of them makes it a failure. */
  readonly violations: readonly Violation[];
  /** Deviations from other agents in what no document specifies. */
  readonly notes: readonly string[];
}

export async function runScenario(
  name: ScenarioName,
  simulator: Simulator,
  options: ScenarioOptions,
): Promise<ScenarioReport> {
  const violations: Violation[] = [];
  const notes: string[] = [];
  const stop = simulator.subscribe((event) => {
    if (event.kind !== "violation") return;
    if (isNote(event.violation)) notes.push(describeViolation(event.violation));
    else violations.push(event.violation);
  });
  const { overLink, run, source } = SCENARIOS[name];
  const ended = (outcome: ScenarioReport["outcome"], why?: string): ScenarioReport => {
    const result = violations.length === 0 ? outcome : "failed";
    const cited = result === "failed" && why !== undefined ? { source } : {};
    return { name, outcome: result, why, ...cited, violations, notes };
  };
  try {
    if (overLink && simulator.cloud !== undefined) {
      throw new NotShown("An agent that is called has no connection to disturb.");
    }
    const context = new ScenarioContext(simulator, options, (note) => notes.push(note));
    await run(context);
    await context.waitForQuiet();
    return ended("passed");
  } catch (error) {
    if (error instanceof NotShown) return ended("not-shown", error.message);
    if (error instanceof ScenarioFailure) return ended("failed", error.message);
    throw error;
  } finally {
    stop();
  }
}
