import { createWriterAgent } from "../../features/writers/agents.ts";
import { createTckAgent } from "../../features/writers/tck.ts";
import type { Agent } from "../engine/agent.ts";
import type { BuiltinName } from "./builtin-names.ts";
import { defineAgent } from "./define.ts";

/** Repeats its input: the shortest agent that uses every feature of a task. */
export function createEchoAgent(): Agent {
  return defineAgent({
    name: "Echo",
    description: "Sends back what it is sent, as an artifact.",
    skills: [
      {
        id: "echo",
        name: "Echo",
        description: "Returns the parts of the message unchanged.",
        tags: ["echo", "test"],
        examples: ["hello"],
      },
    ],
    inputModes: ["*/*"],
    outputModes: ["*/*"],
    onCrash: "resume",
    async *run(turn) {
      yield turn.working();
      yield turn.artifact({ name: "echo", parts: turn.parts });
    },
  });
}

export const BUILTIN_AGENTS = {
  echo: createEchoAgent,
  outline: () => createWriterAgent("outline"),
  document: () => createWriterAgent("document"),
  summary: () => createWriterAgent("summary"),
  tck: createTckAgent,
} as const satisfies Record<BuiltinName, () => Agent>;
