import type { Agent } from "../engine/agent.ts";
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
