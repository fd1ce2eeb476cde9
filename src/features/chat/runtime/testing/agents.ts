/** Agents for tests of chat channels. */
import { defineAgent } from "../../../../core/agents/define.ts";

export const echo = defineAgent({
  name: "Echo",
  description: "Repeats what it is asked.",
  skills: [{ id: "repeat", name: "Repeat", description: "Repeats a text.", tags: [] }],
  async *run(turn) {
    const { skill } = turn.message.metadata ?? {};
    yield turn.artifact({ name: "echo", text: `${skill === undefined ? "" : `${skill}: `}${turn.text}` });
  },
});

/** Asks which colour, then completes. */
export const asker = defineAgent({
  name: "Asker",
  description: "Asks which colour.",
  async *run(turn) {
    if (turn.history.length === 0) yield turn.inputRequired("Which colour?");
    else yield turn.completed(`It is ${turn.text}.`);
  },
});

/** Counts one step each time it is let, up to a number. */
export function createCounter(end = 3) {
  const waiting: (() => void)[] = [];
  let runs = 0;
  const agent = defineAgent({
    name: "Counter",
    description: "Counts.",
    async *run(turn) {
      runs++;
      for (let number = 1; number <= end; number++) {
        yield turn.working(`Step ${number} of ${end}, ${Math.round((100 * number) / end)}%`);
        await new Promise<void>((resolve) => {
          waiting.push(resolve);
          turn.signal.addEventListener("abort", () => resolve(), { once: true });
        });
        if (turn.signal.aborted) return;
      }
      yield turn.artifact({ name: "count", text: `${end}!` });
    },
  });
  return { agent, step: () => waiting.shift()?.(), runs: () => runs };
}
