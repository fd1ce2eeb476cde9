/** The process that is killed while agents are registered. */
import { BUILTIN_AGENTS } from "../../src/core/agents/builtin.ts";
import { serve } from "../../src/core/server/serve.ts";

const [file = ""] = process.argv.slice(2);

const agents = { echo: BUILTIN_AGENTS.echo() };
const server = await serve({ agents, store: `sqlite:${file}`, port: 0, grpcPort: false });
process.send?.({ url: server.url });
process.on("disconnect", () => process.exit(1));
