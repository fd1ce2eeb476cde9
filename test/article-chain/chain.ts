/** The configurations of examples/article-chain, served in this process on free ports and from memory. */
import { join } from "node:path";
import type { Agent } from "../../src/core/engine/agent.ts";
import { buildAgents, loadConfig } from "../../src/core/server/config/index.ts";
import { toServeOptions } from "../../src/core/server/start.ts";
import type { DragomanServer, ServeOptions } from "../../src/index.ts";
import { ROOT } from "../built/cli.ts";
import { startServer } from "../support/lifecycle.ts";
import { sendRaw } from "../support/raw-http.ts";

export const KEY = "key-of-the-orchestrator-0123456789";
export const WRITERS = ["outline", "document", "summary"] as const;
export type Writer = (typeof WRITERS)[number];

export interface Chain {
  readonly orchestrator: DragomanServer;
  readonly writers: Readonly<Record<Writer, DragomanServer>>;
}

/** Serves a configuration of this repository. */
export async function serveFile(
  file: string,
  environment: Readonly<Record<string, string>> = {},
  options: Partial<ServeOptions> = {},
): Promise<DragomanServer> {
  const config = await loadConfig(join(ROOT, file), environment, { store: "memory:" });
  const agents = await buildAgents(config);
  const { log: _, ...served } = toServeOptions(config, agents);
  const replaced = { ...served.agents, ...options.agents };
  return startServer({ ...served, port: 0, ...options, agents: replaced });
}

export function serveWriter(name: Writer, options: Partial<ServeOptions> = {}): Promise<DragomanServer> {
  return serveFile(`examples/article-chain/${name}.yaml`, { CHAIN_KEY: KEY }, options);
}

export function serveOrchestrator(
  ports: Readonly<Record<Writer, number>>,
  options: Partial<ServeOptions> = {},
): Promise<DragomanServer> {
  const environment = {
    CHAIN_KEY: KEY,
    OUTLINE_PORT: String(ports.outline),
    DOCUMENT_PORT: String(ports.document),
    SUMMARY_PORT: String(ports.summary),
  };
  return serveFile("examples/article-chain/orchestrator.yaml", environment, options);
}

/** `instead`: agents that take the place of writers. */
export async function startChain(
  options: Partial<ServeOptions> = {},
  instead: Partial<Record<Writer, Agent>> = {},
): Promise<Chain> {
  const start = (name: Writer) => {
    const agent = instead[name];
    return serveWriter(name, agent && { agents: { [name]: agent } });
  };
  const [outline, document, summary] = await Promise.all([start("outline"), start("document"), start("summary")]);
  const ports = { outline: outline.port, document: document.port, summary: summary.port };
  return { orchestrator: await serveOrchestrator(ports, options), writers: { outline, document, summary } };
}

/** A task as `tasks-rest` has it. */
export interface RestTask {
  readonly id: string;
  readonly contextId: string;
  readonly status: { readonly state: string; readonly message?: RestMessage };
  readonly artifacts?: readonly { readonly name: string; readonly parts: readonly RestPart[] }[];
  readonly history?: readonly RestMessage[];
}

interface RestMessage {
  readonly role: string;
  readonly parts: readonly RestPart[];
}

interface RestPart {
  readonly type: string;
  readonly text?: string;
  readonly data?: Readonly<Record<string, unknown>>;
}

export const textParts = (text: string) => [{ type: "text", text }];

export function restMessage(parts: readonly object[], more: object = {}): string {
  return JSON.stringify({ message: { role: "user", parts, ...more } });
}

/** `POST /tasks/send`. */
export function postTask({ url }: DragomanServer, body: string, headers: Readonly<Record<string, string>> = {}) {
  return sendRaw(url, {
    method: "POST",
    path: "/tasks/send",
    headers: { "content-type": "application/json", ...headers },
    body,
  });
}

export async function sendRest(server: DragomanServer, parts: readonly object[], more?: object): Promise<RestTask> {
  const { json, status } = await postTask(server, restMessage(parts, more));
  if (status !== 200) throw new Error(`HTTP ${status}: ${JSON.stringify(json)}`);
  return json;
}

/** The tasks at a writer, as the orchestrator sees them, oldest first. */
export async function tasksAt({ url }: DragomanServer): Promise<readonly RestTask[]> {
  const headers = { "x-api-key": KEY };
  const { json } = await sendRaw(url, { path: "/rest/tasks", headers: { ...headers, "a2a-version": "1.0" } });
  const ids = (json.tasks as { id: string }[]).map(({ id }) => id).reverse();
  return Promise.all(ids.map(async (id) => (await sendRaw(url, { path: `/tasks/${id}`, headers })).json));
}

/** What the chain makes of a bare topic. */
export const TOPICS = [
  { language: "en", topic: "City bees", note: "This is a skeleton for “City bees”" },
  { language: "zh", topic: "城市养蜂", note: "城市养蜂" },
] as const;
