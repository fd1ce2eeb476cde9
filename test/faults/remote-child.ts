/** The process that is killed: serves one remote agent for each dialect from one file. */
import "../support/features.ts";
import { buildAgents } from "../../src/core/server/config/build-agents.ts";
import { parseConfig } from "../../src/core/server/config/load.ts";
import { serve } from "../../src/index.ts";

const [file = ""] = process.argv.slice(2);

const config = parseConfig(process.env.REMOTE_AGENTS ?? "", {
  source: "dragoman.yaml",
  folder: process.cwd(),
  environment: {},
});
const agents = Object.fromEntries(await buildAgents(config));
const server = await serve({ agents, store: `sqlite:${file}`, port: 0, times: { drainMs: 200 } });
process.send?.({ url: server.url });
process.on("SIGTERM", () => void server.close().then(() => process.exit(0)));
process.on("disconnect", () => process.exit(1));
