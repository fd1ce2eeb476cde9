import type { Clock, Log } from "../model/ports.ts";
import type { TaskStore } from "./contract.ts";
import { createMemoryStore } from "./memory/memory-store.ts";
export async function openStore(_spec: string, options: { baseDirectory: string; clock: Clock; log: Log }): Promise<TaskStore> {
  return createMemoryStore(options);
}
