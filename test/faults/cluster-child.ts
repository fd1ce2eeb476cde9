/** A node of a cluster that is killed, stopped and cut off: the built package, as it is installed. */
import { inspect } from "node:util";
import { defineAgent, serve } from "dragoman";
import { createFaultAgents } from "./agents.ts";

const [store = "", leaseMs = ""] = process.argv.slice(2);

const server = await serve({
  agents: createFaultAgents(defineAgent),
  store,
  port: 0,
  grpcPort: false,
  limits: { attempts: 1_000 },
  // What a caller is not told in detail. That the database is away is no news here.
  log: {
    debug() {},
    info() {},
    warn() {},
    error({ err }, message) {
      const isExpected = err === undefined || (err as { temporary?: boolean }).temporary === true;
      if (!isExpected) process.stderr.write(`${message} ${inspect(err)}\n`);
    },
  },
  times: { leaseMs: Number(leaseMs) },
});
process.send?.({ url: server.url });
process.on("disconnect", () => process.exit(1));
