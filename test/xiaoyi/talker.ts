import { defineAgent } from "../../src/core/agents/define.ts";
import type { Agent } from "../../src/core/engine/agent.ts";

export const PHRASES = {
  plain: "hello",
  streamed: `slow ${"a rather long story ".repeat(30)}`,
  slow: `slow ${"word ".repeat(40)}`,
  asking: "ask me",
  reply: "yes",
  long: "a long story ".repeat(1_000),
  memorable: "keep",
  recalling: "recall",
};

const STEP_MS = 5;

/**
 * Says what it is told, word by word if it is to be slow; asks about what begins with `ask`, and answers `recall` with
 * what it was last told in the conversation.
 */
export function createTalker({ streaming = true }: { readonly streaming?: boolean } = {}): Agent {
  const memory = new Map<string, string>();
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
      const isRecall = turn.text === PHRASES.recalling;
      const text = isRecall ? (memory.get(turn.task.contextId) ?? "nothing") : turn.text;
      memory.set(turn.task.contextId, text);
      if (!text.startsWith("slow")) yield turn.artifact({ name: "answer", text });
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
