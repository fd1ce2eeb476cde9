import { describe, expect, test } from "vitest";
import { createEchoAgent } from "../../src/core/agents/builtin.ts";
import { defineAgent } from "../../src/core/agents/define.ts";
import { ProtocolError } from "../../src/core/model/errors.ts";
import { createHostCheck } from "../../src/core/server/access/loopback.ts";
import type { DragomanServer, ServeOptions } from "../../src/index.ts";
import { startServer } from "../support/lifecycle.ts";
import { A2A_V1, callRpc, type RawReply, rpcBody, sendRaw } from "../support/raw-http.ts";
import { userMessage } from "../support/wire-client.ts";

function start(options: Partial<ServeOptions> = {}): Promise<DragomanServer> {
  return startServer({ agents: { echo: createEchoAgent() }, ...options });
}

const ask = (url: string, headers: Record<string, string>, body?: string): Promise<RawReply> =>
  sendRaw(url, { headers, ...(body === undefined ? undefined : { body }) });

describe("a server on loopback", () => {
  test("does not answer to names that a web page may have bound to its address", async () => {
    const { url, port } = await start();
    const card = `${url}/.well-known/agent-card.json`;
    expect((await ask(card, { host: `evil.example.com:${port}` })).status).toBe(403);
    expect((await ask(card, { host: `localhost:${port}` })).status).toBe(200);
    const evil = { ...A2A_V1, host: `evil.example.com:${port}`, origin: `http://evil.example.com:${port}` };
    expect((await ask(url, evil, rpcBody("ListTasks"))).status).toBe(403);
  });

  const evilHost = { ...A2A_V1, host: "evil.example.com" };
  const apiKeys = [{ key: "alice-key", owner: "alice" }];
  test.each([
    ["may be anonymous beside others", { auth: { apiKeys, anonymous: true } }, 403],
    ["are anonymous to a check of one's own", { authenticate: () => undefined }, 403],
    ["must show credentials, which no such page has", { auth: { apiKeys } }, 401],
  ])("asks for its name where callers %s", async (_, options, status) => {
    const { url } = await start(options);
    expect((await ask(url, evilHost, rpcBody("ListTasks"))).status).toBe(status);
    expect((await ask(`${url}/healthz`, evilHost)).status).toBe(status === 403 ? 403 : 200);
  });

  test("answers to any name for a caller with credentials where all must have them", async () => {
    const { url } = await start({ auth: { apiKeys } });
    expect((await ask(url, { ...evilHost, "x-api-key": "alice-key" }, rpcBody("ListTasks"))).status).toBe(200);
    const metrics = await ask(`${url}/metrics`, { host: "evil.example.com" });
    expect(metrics.status).toBe(401);
  });

  test("does not take writes from pages of other origins, and takes those of its own", async () => {
    const { url, port } = await start();
    expect((await ask(url, { ...A2A_V1, origin: "https://evil.example.com" }, rpcBody("ListTasks"))).status).toBe(403);
    expect((await ask(url, { ...A2A_V1, origin: `http://127.0.0.1:${port}` }, rpcBody("ListTasks"))).status).toBe(200);
  });

  test("answers to the name its public URL gives it", () => {
    const isOwn = createHostCheck("127.0.0.1", "https://agents.example.com/base");
    const answers = ["agents.example.com", "AGENTS.example.com:443", "[::1]:4000", "127.9.9.9", "other.example.com"];
    expect(answers.map(isOwn)).toEqual([true, true, true, true, false]);
    expect(createHostCheck("0.0.0.0", undefined)("anything.example.com")).toBe(true);
  });
});

test("a server that others can reach is not opened to callers it does not know, unless that is configured", async () => {
  await expect(start({ host: "0.0.0.0" })).rejects.toThrow(/auth: \{ anonymous: true \}/);
  const publicUrl = "https://agents.example.com";
  await expect(start({ publicUrl })).rejects.toThrow(/"agents\.example\.com" can be reached/);
  const proxied = await start({ publicUrl, auth: { anonymous: true } });
  const answer = await ask(`http://127.0.0.1:${proxied.port}/rest/tasks`, { ...A2A_V1, host: "agents.example.com" });
  expect(answer.status).toBe(200);
  await proxied.close();
  await (await start({ publicUrl: "http://localhost:8080" })).close();
  const { url } = await start({ host: "0.0.0.0", auth: { anonymous: true } });
  expect(url).toMatch(/^http:\/\/\d+\.\d+\.\d+\.\d+:\d+$/);
  expect(url).not.toContain("0.0.0.0");
});

describe("a check of one's own", () => {
  const secretive = defineAgent({
    name: "Secretive",
    description: "Public.",
    run: async () => "hi",
    extended: { description: "For friends.", skills: [{ id: "more", name: "More", description: "More." }] },
  });
  const authenticate: NonNullable<ServeOptions["authenticate"]> = ({ headers }) => {
    if (headers.authorization === undefined) return undefined;
    if (headers.authorization === "Bearer alice") return { owner: "alice", authenticated: true };
    throw new ProtocolError("UNAUTHENTICATED", "Who are you?");
  };

  test("[CARD-EXT-001] shows the extended card to callers it knows, and to no one else", async () => {
    const { url } = await start({ agents: { secretive }, authenticate });
    const card = (await ask(`${url}/.well-known/agent-card.json`, {})).json;
    expect(card.capabilities.extendedAgentCard).toBe(true);
    const known = await ask(url, { ...A2A_V1, authorization: "Bearer alice" }, rpcBody("GetExtendedAgentCard"));
    expect(known.json.result).toMatchObject({ description: "For friends." });
    const unknown = await ask(url, A2A_V1, rpcBody("GetExtendedAgentCard"));
    expect([unknown.status, unknown.json.error.code]).toEqual([401, -32050]);
    const wrong = await ask(url, { ...A2A_V1, authorization: "Bearer eve" }, rpcBody("ListTasks"));
    expect([wrong.status, wrong.json.error.code]).toEqual([401, -32050]);
  });

  test("keeps owners apart", async () => {
    const { url } = await start({ authenticate });
    const alice = { authorization: "Bearer alice" };
    await callRpc(url, "SendMessage", { message: userMessage("x") }, alice);
    const sizes = await Promise.all(
      [alice, {}].map(async (headers) => (await callRpc(url, "ListTasks", {}, headers)).json.result.totalSize),
    );
    expect(sizes).toEqual([1, 0]);
  });

  test("[CARD-EXT-002] says so when an extended card is offered but nothing is in it", async () => {
    const bare = defineAgent({ name: "Bare", description: "Bare.", run: async () => "hi", extended: {} });
    const { url } = await start({ agents: { bare }, authenticate });
    const answer = await ask(url, { ...A2A_V1, authorization: "Bearer alice" }, rpcBody("GetExtendedAgentCard"));
    expect(answer.json.error.code).toBe(-32007);
  });
});
