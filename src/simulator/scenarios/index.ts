import type { Simulator } from "../simulator.ts";
import type { Violation } from "../violations.ts";
import { cancel, clear, crowd, long, normal, question, spellings, streaming, twoMessages } from "./conversations.ts";
import { cut, disconnects, duplicates, kick, reordering } from "./disturbances.ts";
import { NotShown, ScenarioFailure, Scene, type SceneOptions } from "./scene.ts";

export { DEFAULT_PHRASES, PHRASE_NAMES, type Phrases, type SceneOptions } from "./scene.ts";

export interface Scenario {
  readonly about: string;
  readonly run: (scene: Scene) => Promise<void>;
  /** Needs an agent that has dialled. */
  readonly overLink?: true;
}

export const SCENARIOS = {
  normal: { about: "messages and answers, with the app opened anew in between", run: normal },
  streaming: { about: "an answer in pieces", run: streaming },
  long: { about: "an answer that one frame cannot carry", run: long },
  "two-messages": { about: "a second message before the first is answered", run: twoMessages },
  cancel: { about: "a task stopped in the middle", run: cancel },
  clear: { about: "a conversation forgotten and begun anew", run: clear },
  question: { about: "a question of the agent, answered under the same ids", run: question },
  duplicates: { about: "every frame twice", run: duplicates, overLink: true },
  kick: { about: "the connection closed by the platform", run: kick, overLink: true },
  cut: { about: "the connection torn while the agent works", run: cut, overLink: true },
  disconnects: { about: "the connection lost again and again while people talk", run: disconnects, overLink: true },
  crowd: { about: "a thousand conversations at once", run: crowd },
  spellings: { about: "everything in all ways the platform spells it", run: spellings },
  reordering: { about: "long bodies overtaken by what follows them", run: reordering, overLink: true },
} as const satisfies Record<string, Scenario>;

export type ScenarioName = keyof typeof SCENARIOS;

export const SCENARIO_NAMES = Object.keys(SCENARIOS) as readonly ScenarioName[];

export interface ScenarioReport {
  readonly name: ScenarioName;
  readonly outcome: "passed" | "failed" | "not-shown";
  /** What went wrong, or why it could not be seen. */
  readonly why: string | undefined;
  /** Rules broken on the way; any makes it a failure. */
  readonly violations: readonly Violation[];
}

export async function runScenario(
  name: ScenarioName,
  simulator: Simulator,
  options: SceneOptions,
): Promise<ScenarioReport> {
  const violations: Violation[] = [];
  const stop = simulator.listenTo((event) => {
    if (event.kind === "violation") violations.push(event.violation);
  });
  try {
    const { run, ...scenario }: Scenario = SCENARIOS[name];
    if (scenario.overLink === true && simulator.cloud !== undefined) {
      throw new NotShown("An agent that is called has no connection to disturb.");
    }
    const scene = new Scene(simulator, options);
    await run(scene);
    await scene.quiet();
    return report(name, violations.length === 0 ? "passed" : "failed", undefined, violations);
  } catch (error) {
    if (error instanceof NotShown) {
      return report(name, violations.length === 0 ? "not-shown" : "failed", error.message, violations);
    }
    if (error instanceof ScenarioFailure) return report(name, "failed", error.message, violations);
    throw error;
  } finally {
    stop();
  }
}

function report(
  name: ScenarioName,
  outcome: ScenarioReport["outcome"],
  why: string | undefined,
  violations: readonly Violation[],
): ScenarioReport {
  return { name, outcome, why, violations };
}
