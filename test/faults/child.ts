/** The process that is killed: serves the agents from one file until nobody needs it any more. */
import { defineAgent, serve } from "dragoman";
import { createFaultAgents } from "./agents.ts";

const [file = "", port = "0"] = process.argv.slice(2);

const server = await serve({
  agents: createFaultAgents(defineAgent),
  store: `sqlite:${file}`,
  port: Number(port),
  limits: { attempts: 1_000 },
});
process.send?.({ url: server.url });
process.on("disconnect", () => process.exit(1));
