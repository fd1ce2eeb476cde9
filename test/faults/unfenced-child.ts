/** A node whose runs write although another node has taken their tasks over: what fences are there to prevent. */
import { defineAgent } from "../../src/core/agents/define.ts";
import { LogEntry } from "../../src/core/model/event.ts";
import { SILENT_LOG } from "../../src/core/model/ports.ts";
import { systemClock } from "../../src/core/server/clock-and-ids.ts";
import type { Append, TaskStore, Write } from "../../src/core/store/contract.ts";
import { openStore } from "../../src/core/store/open.ts";
import { serve } from "../../src/index.ts";
import { createFaultAgents } from "./agents.ts";

const [spec = "", leaseMs = ""] = process.argv.slice(2);

/** Puts what a run appends after whatever there is, with the fence of whoever holds the task. */
async function rebase(store: TaskStore, write: Write): Promise<Write> {
  if (write.kind !== "append" || write.fence === undefined) return write;
  const head = await store.head(write.id);
  if (head === undefined) return write;
  const entries = write.entries.map(({ json, received, request }, index) =>
    LogEntry.fromJson(head.number + 1 + index, json, received, request),
  );
  return { ...write, expect: head.number, fence: head.fence, entries } satisfies Append;
}

/** For the engine the lease never ends, so that it does not give up its runs by itself either. */
const ENDLESS_MS = 3_600_000;

/** Heartbeats as often as others expect them. */
function keepBeating(store: TaskStore, node: string): void {
  const beat = () => void store.heartbeat(node, Number(leaseMs)).catch(() => {});
  setInterval(beat, Number(leaseMs) / 3);
}

let beats = false;
const store = await openStore(spec, { baseDirectory: ".", clock: systemClock, log: SILENT_LOG });
const server = await serve({
  agents: createFaultAgents(defineAgent),
  store: {
    ...store,
    write: async (writes) => store.write(await Promise.all(writes.map((one) => rebase(store, one)))),
    async heartbeat(node) {
      if (!beats) keepBeating(store, node);
      beats = true;
      return store.heartbeat(node, Number(leaseMs));
    },
  },
  port: 0,
  grpcPort: false,
  limits: { attempts: 1_000 },
  times: { leaseMs: ENDLESS_MS },
});
process.send?.({ url: server.url });
process.on("disconnect", () => process.exit(1));
