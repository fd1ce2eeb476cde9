/** An engine with one agent, for dialects to speak to. */
import { defineAgent } from "../../src/agents/define.ts";
import type { ServeContext } from "../../src/dialects/contract.ts";
import { toolsOf } from "../../src/dialects/suite/join.ts";
import { Engine } from "../../src/engine/engine.ts";
import { ANONYMOUS } from "../../src/model/caller.ts";
import type { Loss } from "../../src/model/loss.ts";
import { SILENT_LOG } from "../../src/model/ports.ts";
import { ServedAgentService } from "../../src/server/agent-service.ts";
import { systemClock, uuidIds } from "../../src/server/clock-and-ids.ts";
import type { TaskStore } from "../../src/store/contract.ts";
import { createMemoryStore } from "../../src/store/memory/memory-store.ts";

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
      await new Promise<void>((resolve) => {
        turn.signal.addEventListener("abort", () => resolve());
      });
    } else yield turn.completed(`${turn.history.length} messages before, now ${turn.text}`);
    return undefined;
  },
});

export async function createStage(): Promise<Stage> {
  const store = createMemoryStore({ clock: systemClock });
  const engine = new Engine({ store, clock: systemClock, ids: uuidIds }, new Map([["stagehand", agent]]));
  await engine.start();
  const service = new ServedAgentService({
    name: "stagehand",
    engine,
    log: SILENT_LOG,
    ids: uuidIds,
    clock: systemClock,
    interfaces: () => [],
    authentication: {
      identifies: false,
      security: { schemes: {}, requirements: [] },
      challenged: (error) => error,
    },
  });
  const losses: Loss[] = [];
  return {
    store,
    losses,
    context: {
      ...toolsOf(losses),
      service,
      caller: ANONYMOUS,
      limits: { maxDepth: 64, maxValues: 200_000, maxParts: 1_000, keepAliveMs: 60_000 },
      agentOfTenant: () => undefined,
    },
    close: () => engine.close(),
  };
}
