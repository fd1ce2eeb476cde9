/** What callers without credentials can make the server do: nothing is parsed for them, and little is kept. */
import { describe, expect, it } from "vitest";
import { defineAgent } from "../../src/agents/define.ts";
import type { DragomanServer, ServeOptions } from "../../src/server/serve.ts";
import { startServer } from "../support/lifecycle.ts";
import { A2A_V1, sendRaw } from "../support/raw-http.ts";

const KEY = "alice-key-5f0c2b77d1";
const agent = defineAgent({ name: "Quiet", description: "Says little.", skills: [], run: async () => "done" });

function start(options: Partial<ServeOptions> = {}): Promise<DragomanServer> {
  return startServer({ agents: { quiet: agent }, auth: { apiKeys: [{ key: KEY, owner: "alice" }] }, ...options });
}

const PLACES = [
  "/",
  "/agents/quiet",
  "/rest/message:send",
  "/rest/v1/message:send",
  "/tasks/send",
  "/registry/search",
  "/registry/agents",
];

describe("the body of a caller without credentials", () => {
  const post = (url: string, path: string, body: string, headers = {}) =>
    sendRaw(url, { path, body, headers: { ...A2A_V1, ...headers } });

  it.each(PLACES)("is not parsed: %s", async (path) => {
    const { url } = await start();
    const valid = await post(url, path, '{"jsonrpc":"2.0","id":7,"method":"ListTasks"}');
    expect([valid.status, valid.json.id ?? null]).toEqual([401, null]);
    expect(await post(url, path, "{".repeat(1_000))).toMatchObject({ status: 401, text: valid.text });
    expect((await post(url, path, "{".repeat(1_000), { "x-api-key": KEY })).status).not.toBe(401);
  });
});
