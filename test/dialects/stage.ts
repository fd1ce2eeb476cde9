/** An engine with one agent, for dialects to serve. */
import { defineAgent } from "../../src/core/agents/define.ts";
import type { ServeContext } from "../../src/core/dialects/contract.ts";
import { toolsOf } from "../../src/core/dialects/suite/join.ts";
import { ANONYMOUS } from "../../src/core/model/caller.ts";
import type { Loss } from "../../src/core/model/loss.ts";
import type { TaskStore } from "../../src/core/store/contract.ts";
import { waitForAbort } from "../../src/features/writers/tck.ts";
import { LIMITS, startEngine } from "../support/engine-services.ts";

export interface Stage {
  readonly context: ServeContext;
  readonly store: TaskStore;
  /** What the serving side could not say. */
  readonly losses: Loss[];
  close(): Promise<void>;
}

/** Does what it is told in one word. */
const agent = defineAgent({
  name: "Stagehand",
  description: "Does what one word says.",
  async *run(turn) {
    const [word = "", ...rest] = turn.text.split(" ");
    if (word === "reply") return turn.reply(rest.join(" "));
    yield turn.working();
    if (word === "count")
      for (let step = 1; step <= 5; step++) yield turn.artifact({ name: "count", text: `${step} `, append: step > 1 });
    else if (word === "ask") yield turn.inputRequired("Which colour?");
    else if (word === "mixed") {
      yield turn.artifact({
        name: "mixed",
        parts: [{ text: "see " }, { data: { n: 1 } }, { url: "https://file.example/a" }],
      });
    } else if (word === "wait") {
      await waitForAbort(turn.signal);
    } else yield turn.completed(`${turn.history.length} messages before, now ${turn.text}`);
    return undefined;
  },
});

export async function createStage(): Promise<Stage> {
  const { engine, services, store } = await startEngine({ stagehand: agent });
  const service = services.get("stagehand");
  if (service === undefined) throw new Error("The agent is not served.");
  const losses: Loss[] = [];
  return {
    store,
    losses,
    context: { ...toolsOf(losses), service, caller: ANONYMOUS, limits: LIMITS, agentOfTenant: () => undefined },
    close: () => engine.close(),
  };
}
