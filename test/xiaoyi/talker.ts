import { defineAgent } from "../../src/agents/define.ts";
import type { Agent } from "../../src/engine/agent.ts";

export const PHRASES = {
  plain: "hello",
  streamed: `slow ${"a rather long story ".repeat(30)}`,
  slow: `slow ${"word ".repeat(40)}`,
  asking: "ask me",
  reply: "yes",
};

const STEP_MS = 5;

/** Says what it is told, word by word if it is to be slow; asks about what begins with `ask`. */
export function createTalker({ streaming = true }: { readonly streaming?: boolean } = {}): Agent {
  return defineAgent({
    streaming,
    name: "Talker",
    description: "Says what it is told.",
    skills: [{ id: "talk", name: "Talk", description: "Talks.", tags: ["test"] }],
    async *run(turn) {
      yield turn.working();
      if (turn.text.startsWith("ask")) {
        yield turn.inputRequired("Really?");
        return;
      }
      if (!turn.text.startsWith("slow")) yield turn.artifact({ name: "answer", text: turn.text });
      else yield* turn.stream("answer", words(turn.text, turn.signal));
    },
  });
}

async function* words(text: string, signal: AbortSignal): AsyncGenerator<string> {
  for (const word of text.split(/(?<= )/)) {
    if (signal.aborted) return;
    yield word;
    await new Promise((resolve) => setTimeout(resolve, STEP_MS));
  }
}
