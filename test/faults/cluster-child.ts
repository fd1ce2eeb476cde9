/** A node of a cluster that is killed, stopped and cut off: the built package, as it is installed. */
import { defineAgent, serve } from "dragoman";
import { createFaultAgents } from "./agents.ts";

const [store = "", leaseMs = ""] = process.argv.slice(2);

const server = await serve({
  agents: createFaultAgents(defineAgent),
  store,
  port: 0,
  grpcPort: false,
  limits: { attempts: 1_000 },
  times: { leaseMs: Number(leaseMs) },
});
process.send?.({ url: server.url });
process.on("disconnect", () => process.exit(1));
