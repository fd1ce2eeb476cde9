/** The process that is killed while it tells webhooks of its tasks. */
import { defineAgent, serve } from "dragoman";
import { createFaultAgents } from "./agents.ts";

const [file = ""] = process.argv.slice(2);

const server = await serve({
  agents: createFaultAgents(defineAgent),
  store: `sqlite:${file}`,
  port: 0,
  grpcPort: false,
  limits: { attempts: 1_000, pushPerHost: 100 },
  push: { allowPrivateTargets: true, attempts: 100, retryMs: 20, timeoutMs: 2_000 },
});
process.send?.({ url: server.url });
process.on("disconnect", () => process.exit(1));
