/** A registry as its callers see it: requests as they are typed, answers as they come. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { defineAgent } from "../../src/core/agents/define.ts";
import type { ServeOptions } from "../../src/index.ts";
import { listen, startServer } from "../support/lifecycle.ts";
import { type RawReply, sendRaw } from "../support/raw-http.ts";

const weather = defineAgent({
  name: "Weather",
  description: "Weather forecasts for every city.",
  version: "1.0.0",
  skills: [
    {
      id: "get_forecast",
      name: "Forecast",
      description: "Tells the weather of tomorrow.",
      tags: ["weather"],
      examples: ["Will it rain in Rome?", "北京明天的天气怎么样"],
    },
  ],
  async *run() {},
});

export const translator = defineAgent({
  name: "翻译专家",
  description: "中文与英文互译。",
  version: "2.1.0",
  skills: [{ id: "translate", name: "翻译", description: "把文章翻译成英文。", tags: ["language"] }],
  async *run() {},
});

export function startRegistry(options: Partial<ServeOptions> = {}) {
  return startServer({ agents: { weather }, grpcPort: false, ...options });
}

export interface Ask {
  readonly method?: string;
  readonly key?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A request below the base of a server, with JSON unless it is given as text. */
export function ask(base: string, path: string, body?: unknown, { method, key, headers }: Ask = {}): Promise<RawReply> {
  return sendRaw(base, {
    path,
    ...(method !== undefined && { method }),
    headers: {
      ...(body !== undefined && { "content-type": "application/json" }),
      ...(key !== undefined && { "x-api-key": key }),
      ...headers,
    },
    ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
}

export const ALICE = "alice-has-a-long-key";
export const BOB = "bob-has-another-key";
export const TWO_OWNERS = {
  auth: {
    apiKeys: [
      { key: ALICE, owner: "alice" },
      { key: BOB, owner: "bob" },
    ],
  },
};

export function cardAt(url: string, members: Readonly<Record<string, unknown>> = {}) {
  return {
    name: "Chess",
    description: "Plays chess.",
    version: "1.0.0",
    supportedInterfaces: [{ url, protocolBinding: "JSONRPC", protocolVersion: "1.0" }],
    capabilities: { streaming: false },
    defaultInputModes: ["text/plain"],
    defaultOutputModes: ["text/plain"],
    skills: [{ id: "play_chess", name: "Chess", description: "Plays a game.", tags: ["games"] }],
    ...members,
  };
}

/** A web server whose answers a test decides. */
export async function startSite(answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<string> {
  return `http://127.0.0.1:${await listen(createServer(answer))}`;
}
