/** Agents on an engine, without a server: what dialects and carriers are given to serve. */
import type { ServeLimits } from "../../src/core/dialects/contract.ts";
import type { Agent } from "../../src/core/engine/agent.ts";
import { Engine } from "../../src/core/engine/engine.ts";
import { SILENT_LOG } from "../../src/core/model/ports.ts";
import { ServedAgentService } from "../../src/core/server/agent-service.ts";
import { systemClock, uuidIds } from "../../src/core/server/clock-and-ids.ts";
import type { TaskStore } from "../../src/core/store/contract.ts";
import { createMemoryStore } from "../../src/core/store/memory/memory-store.ts";

export const LIMITS: ServeLimits = { maxDepth: 64, maxValues: 200_000, maxParts: 1_000, keepAliveMs: 60_000 };

export async function startEngine(
  agents: Readonly<Record<string, Agent>>,
  store: TaskStore = createMemoryStore({ clock: systemClock }),
) {
  const engine = new Engine({ store, clock: systemClock, ids: uuidIds }, new Map(Object.entries(agents)));
  await engine.start();
  const serviceOf = (name: string) =>
    new ServedAgentService({
      name,
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
  return { engine, store, services: new Map(Object.keys(agents).map((name) => [name, serviceOf(name)])) };
}
