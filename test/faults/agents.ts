/** Agents for the crash tests: slow enough to be caught at any moment, exact enough to tell whether anything is missing. */
import { setTimeout as pause } from "node:timers/promises";
import type { defineAgent as DefineAgent } from "../../src/core/agents/define.ts";
import type { AgentTurn } from "../../src/core/agents/turn.ts";
import type { Agent } from "../../src/core/engine/agent.ts";

const QUESTION = "Go on?";
export const CRASH_REASON = /stopped before the task was finished/;

/** What the artifact of a task that completed must say. */
export function wholeText(steps: number): string {
  return Array.from({ length: steps }, (_, step) => `${step} `).join("");
}

async function* count(turn: AgentTurn, steps: number) {
  yield turn.working("Counting.");
  for (let step = 0; step < steps; step++) {
    await pause(Math.random() * 12);
    yield turn.artifact({ name: "numbers", text: `${step} `, append: step > 0, lastChunk: step === steps - 1 });
  }
}

export function createFaultAgents(defineAgent: typeof DefineAgent): Readonly<Record<string, Agent>> {
  return {
    fragile: defineAgent({
      name: "Fragile",
      description: "Counts; a crash fails it.",
      run: (turn) => count(turn, Number(turn.text)),
    }),
    sturdy: defineAgent({
      name: "Sturdy",
      description: "Counts; a crash makes it count again, from what it noted.",
      onCrash: "resume",
      async *run(turn) {
        const steps = await turn.memory.once("steps", () => Number(turn.text));
        yield* count(turn, steps);
      },
    }),
    asking: defineAgent({
      name: "Asking",
      description: "Asks before it counts; a crash makes it begin its turn again.",
      onCrash: "resume",
      async *run(turn) {
        if (turn.text !== "yes") {
          await turn.memory.set("steps", Number(turn.text));
          yield turn.inputRequired(QUESTION);
          return;
        }
        yield* count(turn, (await turn.memory.get<number>("steps")) ?? 0);
      },
    }),
  };
}
