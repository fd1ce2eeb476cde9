/** The process that is killed while agents are registered. */

import { serve } from "../../src/index.ts";
import { BUILTIN_AGENTS } from "../support/builtin-agents.ts";

const [file = ""] = process.argv.slice(2);

const agents = { echo: BUILTIN_AGENTS.echo() };
const server = await serve({ agents, store: `sqlite:${file}`, port: 0, grpcPort: false });
process.send?.({ url: server.url });
process.on("disconnect", () => process.exit(1));
