/** A server whose agents are remote ones, and servers for them to be, each called in one dialect. */
import { connect } from "../../src/core/client/connect.ts";
import type { RemoteAgent } from "../../src/core/client/options.ts";
import { buildAgents } from "../../src/core/server/config/build-agents.ts";
import { parseConfig } from "../../src/core/server/config/load.ts";
import type { DragomanServer, ServeOptions } from "../../src/index.ts";
import { createFolder, startServer } from "./lifecycle.ts";
import { sendRaw } from "./raw-http.ts";
import { Stage } from "./stage.ts";

export const KEYS = { ak: "gateway-ak", sk: "gateway-sk-secret" };

/** How an agent named `stage` at `server` is called in one dialect and binding, as the keys of a remote agent. */
export interface UpstreamSpec {
  readonly name: string;
  readonly dialect: string;
  remote(server: DragomanServer): Readonly<Record<string, unknown>>;
  /** A client that calls any agent of a server in this dialect and binding. */
  connect(server: DragomanServer, agent: string): Promise<RemoteAgent>;
}

const spec = (name: string, more: { readonly dialect: string; readonly binding?: string }): UpstreamSpec => ({
  name,
  dialect: more.dialect,
  remote: ({ url }) => ({ remote: `${url}/agents/stage`, ...more }),
  connect: ({ url }, agent) => connect(`${url}/agents/${agent}`, more),
});

export const UPSTREAMS: readonly UpstreamSpec[] = [
  spec("A2A 1.0 over JSON-RPC", { dialect: "a2a-v1", binding: "JSONRPC" }),
  spec("A2A 1.0 over HTTP+JSON", { dialect: "a2a-v1", binding: "HTTP+JSON" }),
  spec("A2A 1.0 over gRPC", { dialect: "a2a-v1", binding: "GRPC" }),
  spec("A2A 0.3 over JSON-RPC", { dialect: "a2a-v03", binding: "JSONRPC" }),
  spec("A2A 0.3 over HTTP+JSON", { dialect: "a2a-v03", binding: "HTTP+JSON" }),
  spec("A2A 0.3 over gRPC", { dialect: "a2a-v03", binding: "GRPC" }),
  spec("A2A 0.1", { dialect: "a2a-v01" }),
  spec("tasks-rest", { dialect: "tasks-rest" }),
  {
    name: "xiaoyi-http",
    dialect: "xiaoyi-http",
    connect: ({ url }, agent) => connect(`${url}/agents/${agent}`, { dialect: "xiaoyi-http", keys: KEYS }),
    remote: ({ url }) => ({
      remote: `${url}/agents/stage/agent/message`,
      dialect: "xiaoyi-http",
      credentials: KEYS,
    }),
  },
];

/** A server with a scripted agent, which can be called in every dialect. */
export async function startUpstream(options: Partial<ServeOptions> = {}) {
  const stage = new Stage();
  const server = await startServer({
    agents: { stage: stage.agent({ name: "Staged", inputModes: ["*/*"] }) },
    xiaoyi: { http: [{ agent: "stage", ...KEYS }] },
    ...options,
  });
  return { server, stage };
}

/** Serves agents as a configuration file would declare them. */
export async function startGateway(
  agents: Readonly<Record<string, object>>,
  options: Partial<ServeOptions> = {},
): Promise<DragomanServer> {
  const place = { source: "dragoman.yaml", folder: createFolder(), environment: {} };
  const config = parseConfig(JSON.stringify({ agents }), place);
  const log = options.log ? { log: options.log } : {};
  const built = await buildAgents(config, log);
  return startServer({ agents: Object.fromEntries(built), ...options });
}

/** The card of an agent, once it satisfies the condition. */
export async function untilCard(
  { url }: DragomanServer,
  agent: string,
  isExpected: (card: Readonly<Record<string, unknown>>) => boolean,
) {
  for (;;) {
    const { json } = await sendRaw(url, {
      path: `/agents/${agent}/.well-known/agent-card.json`,
      headers: { "a2a-version": "1.0" },
    });
    if (isExpected(json)) return json;
  }
}
