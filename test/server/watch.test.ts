import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { buildAgents, loadConfig } from "../../src/server/config/index.ts";
import { watchModules } from "../../src/server/config/watch-modules.ts";
import { type DragomanServer, serve } from "../../src/server/serve.ts";

let folder: string;
let server: DragomanServer;
let stop: () => void;
const told: string[] = [];
let tellReloaded = () => {};

const agent = (word: string) => `
export default {
  profile: { name: "A", description: "A", version: "1", skills: [], inputModes: [], outputModes: [], streaming: true, extensions: [] },
  onCrash: "fail", concurrency: Infinity, timeoutMs: undefined,
  async *run() { return { parts: [{ text: ${JSON.stringify(word)} }] }; },
};`;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "watch-"));
  await writeFile(join(folder, "agent.ts"), agent("one"));
  await writeFile(join(folder, "dragoman.yaml"), "agents: { a: { module: ./agent.ts } }\nstore: 'memory:'\n");
  const config = await loadConfig(join(folder, "dragoman.yaml"), {});
  server = await serve({ port: 0, agents: Object.fromEntries(await buildAgents(config)) });
  const log = {
    debug() {},
    warn() {},
    info: (_fields: object, message: string) => {
      told.push(message);
      tellReloaded();
    },
    error: (_fields: object, message: string) => {
      told.push(message);
      tellReloaded();
    },
  };
  stop = watchModules(config, server, log);
});

afterAll(async () => {
  stop();
  await server.close();
  await rm(folder, { recursive: true });
});

async function say(): Promise<string> {
  const body = {
    jsonrpc: "2.0",
    id: 1,
    method: "SendMessage",
    params: { message: { messageId: "m", role: "ROLE_USER", parts: [{ text: "?" }] } },
  };
  const headers = { "content-type": "application/json", "a2a-version": "1.0" };
  const response = await fetch(server.url, { method: "POST", headers, body: JSON.stringify(body) });
  const answer = (await response.json()) as { result: { message: { parts: [{ text: string }] } } };
  return answer.result.message.parts[0].text;
}

function changed(): Promise<void> {
  return new Promise((resolve) => {
    tellReloaded = resolve;
  });
}

test("a changed module answers anew; one that does not load leaves the old one; other files are none of its business", async () => {
  expect(await say()).toBe("one");
  let change = changed();
  await writeFile(join(folder, "agent.ts"), agent("two"));
  await change;
  expect(await say()).toBe("two");
  await writeFile(join(folder, "server.log"), "noise");
  await writeFile(join(folder, "data.db"), "noise");
  change = changed();
  await writeFile(join(folder, "agent.ts"), "this is no TypeScript (");
  await change;
  expect(await say()).toBe("two");
  expect(told).toEqual([
    "Agent reloaded",
    expect.stringMatching(/^Agent not reloaded, the last version that loaded stays in use: .*agent\.ts/),
  ]);
});
