import type { Agent } from "../engine/agent.ts";
import { defineAgent } from "./define.ts";

/** Says what it is told: the shortest agent that does everything a task can. */
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
