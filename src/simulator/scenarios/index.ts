import type { Simulator } from "../simulator.ts";
import { describeViolation, isNote, SOURCES, type Violation } from "../violations.ts";
import {
  cancel,
  clear,
  crowd,
  cut,
  disconnects,
  duplicates,
  kick,
  long,
  normal,
  question,
  reordering,
  spellings,
  streaming,
  twoMessages,
} from "./conversations.ts";
import { NotShown, ScenarioContext, ScenarioFailure, type ScenarioOptions } from "./scenario-context.ts";

export { PHRASE_NAMES, type Phrases, type ScenarioOptions } from "./scenario-context.ts";

interface Scenario {
  readonly about: string;
  /** The document that requires agents to support this. */
  readonly source: string;
  readonly run: (context: ScenarioContext) => Promise<void>;
  /** Requires an agent that connects over a link. */
  readonly overLink?: true;
}

export const SCENARIOS = {
  normal: { about: "messages and answers, with the app opened again in between", source: SOURCES.STREAM, run: normal },
  streaming: { about: "an answer in pieces", source: SOURCES.DEVICE_REPORT, run: streaming },
  long: { about: "an answer that one frame cannot carry", source: SOURCES.DEVICE_REPORT, run: long },
  "two-messages": {
    about: "a second message before the first is answered",
    source: SOURCES.CHANNEL_PLUGIN,
    run: twoMessages,
  },
  cancel: { about: "a task stopped in the middle", source: SOURCES.CANCEL, run: cancel },
  clear: { about: "a conversation cleared and begun again", source: SOURCES.CANCEL, run: clear },
  question: { about: "a question of the agent, answered under the same ids", source: SOURCES.PLUGIN, run: question },
  duplicates: { about: "every frame twice", source: SOURCES.PLUGIN, run: duplicates, overLink: true },
  kick: { about: "the connection closed by the platform", source: SOURCES.PLUGIN, run: kick, overLink: true },
  cut: { about: "the connection torn while the agent works", source: SOURCES.PLUGIN, run: cut, overLink: true },
  disconnects: {
    about: "the connection lost again and again while people talk",
    source: SOURCES.PLUGIN,
    run: disconnects,
    overLink: true,
  },
  crowd: { about: "a thousand conversations at once", source: SOURCES.STREAM, run: crowd },
  spellings: { about: "everything in all ways the platform spells it", source: SOURCES.PLUGIN, run: spellings },
  reordering: {
    about: "long bodies overtaken by what follows them",
    source: SOURCES.CHANNEL_PLUGIN,
    run: reordering,
    overLink: true,
  },
} as const satisfies Record<string, Scenario>;

export type ScenarioName = keyof typeof SCENARIOS;

export const SCENARIO_NAMES = Object.keys(SCENARIOS) as readonly ScenarioName[];

export interface ScenarioReport {
  readonly name: ScenarioName;
  readonly outcome: "passed" | "failed" | "not-shown";
  /** Why it failed or could not be shown. */
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
  const { run, source, ...scenario }: Scenario = SCENARIOS[name];
  const ended = (outcome: ScenarioReport["outcome"], why?: string): ScenarioReport => {
    const result = violations.length === 0 ? outcome : "failed";
    const cited = result === "failed" && why !== undefined ? { source } : {};
    return { name, outcome: result, why, ...cited, violations, notes };
  };
  try {
    if (scenario.overLink === true && simulator.cloud !== undefined) {
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
