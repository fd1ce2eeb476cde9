/** One gate for every carrier: what is refused, and that each refusal is audited. */
import { readFile } from "node:fs/promises";
import { request } from "node:http";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { connect } from "../../src/client.ts";
import { systemClock } from "../../src/core/server/clock-and-ids.ts";
import { createDialInAgent } from "../../src/features/xiaoyi/server/dial-in-agent.ts";
import { createSimulator, seededRandom } from "../../src/features/xiaoyi/simulator/index.ts";
import type { DragomanServer, ServeOptions } from "../../src/index.ts";
import { closeLater, createFolder, startServer } from "../support/lifecycle.ts";
import { readMetric } from "../support/metrics.ts";
import { sendRaw } from "../support/raw-http.ts";
import { createTalker } from "../xiaoyi/talker.ts";

const API_KEY = "the-key-of-the-platform";
const OTHER_KEY = "the-key-of-another-agent";
/** One request, and the next after a hundred seconds. */
const ONE_OF_OWNER = { ratePerOwner: 0.01, burstPerOwner: 1 };
const ONE_OF_ADDRESS = { ratePerAddress: 0.01, burstPerAddress: 1 };

let folder: string;
let server: DragomanServer;

async function start(options: Partial<ServeOptions>): Promise<void> {
  const talker = createTalker();
  folder = createFolder();
  server = await startServer({
    agents: { talker, other: talker },
    baseDirectory: folder,
    audit: { file: "audit.jsonl" },
    auth: { apiKeys: [{ key: "alice-key-5f0c2b77d1", owner: "alice" }] },
    xiaoyi: {
      http: [
        { agent: "talker", apiKey: API_KEY, owner: "phones" },
        { agent: "other", apiKey: OTHER_KEY },
      ],
    },
    ...options,
  });
}

/** The refusals of a server, which is closed. */
async function refusals(): Promise<readonly object[]> {
  await server.close();
  const text = await readFile(join(folder, "audit.jsonl"), "utf8");
  const lines: { operation: string }[] = text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
  return lines.filter(({ operation }) => operation === "authenticate");
}

const refusal = (dialect: string, result: string, more: object = {}) => ({
  time: expect.any(String),
  authenticated: false,
  address: "127.0.0.1",
  dialect,
  operation: "authenticate",
  result,
  ...more,
});

function askXiaoyi(agent: string, key: string, more: object = {}) {
  const body = JSON.stringify({ jsonrpc: "2.0", id: "request-1", method: "clearContext", sessionId: "s", ...more });
  const headers = { "content-type": "application/json", authorization: key };
  return sendRaw(`${server.url}/agents/${agent}`, { method: "POST", path: "/agent/message", headers, body });
}

describe("Xiaoyi over HTTP", () => {
  it("is counted for the owner of its entry, and answered with a time to retry", async () => {
    await start({ limits: ONE_OF_OWNER });
    expect((await askXiaoyi("talker", API_KEY)).status).toBe(200);
    const refused = await askXiaoyi("talker", API_KEY);
    expect([refused.status, refused.headers["retry-after"]]).toEqual([429, "100"]);
    expect(refused.json).toMatchObject({
      id: null,
      error: { message: expect.any(String) },
    });
    expect((await askXiaoyi("other", OTHER_KEY)).status).toBe(200);
    expect(await readMetric(server.url, "dragoman_requests_limited_total")).toBe(1);
    const who = { owner: "phones", authenticated: true, agent: "talker" };
    expect(await refusals()).toEqual([refusal("xiaoyi-http", "RESOURCE_EXHAUSTED", who)]);
  });

  it("does not count requests that show no credentials for any owner", async () => {
    await start({ limits: ONE_OF_OWNER });
    for (let time = 0; time < 3; time++) expect((await askXiaoyi("talker", "wrong")).status).toBe(401);
    expect((await askXiaoyi("talker", API_KEY)).status).toBe(200);
  });

  it("is audited when its credentials are wrong, whether its body is large or small", async () => {
    await start({});
    expect((await askXiaoyi("talker", "wrong")).status).toBe(401);
    expect((await askXiaoyi("talker", "wrong", { filler: "x".repeat(100_000) })).status).toBe(401);
    const expected = refusal("xiaoyi-http", "UNAUTHENTICATED", { agent: "talker" });
    expect(await refusals()).toEqual([expected, expected]);
  });

  it("is counted and audited where it asks for a token", async () => {
    const oauth = { clientId: "client", clientSecret: "client-secret" };
    await start({ limits: ONE_OF_OWNER, xiaoyi: { http: [{ agent: "talker", oauth, owner: "phones" }] } });
    const ask = async (secret: string) => {
      const body = `grant_type=client_credentials&client_id=client&client_secret=${secret}`;
      const headers = { "content-type": "application/x-www-form-urlencoded" };
      const request = { method: "POST", path: "/agents/talker/agent/token", headers, body };
      return (await sendRaw(server.url, request)).status;
    };
    expect([await ask("wrong"), await ask("client-secret"), await ask("client-secret")]).toEqual([401, 200, 429]);
    expect(await refusals()).toEqual([
      refusal("xiaoyi-http", "UNAUTHENTICATED", { agent: "talker" }),
      refusal("xiaoyi-http", "RESOURCE_EXHAUSTED", { owner: "phones", authenticated: true, agent: "talker" }),
    ]);
  });

  it("has the address of its tasks' callers in the audit log", async () => {
    await start({});
    const params = { id: "task", sessionId: "s", message: { role: "user", parts: [{ kind: "text", text: "hello" }] } };
    expect((await askXiaoyi("talker", API_KEY, { method: "message/stream", params })).status).toBe(200);
    await server.close();
    const text = await readFile(join(folder, "audit.jsonl"), "utf8");
    const sent = text.split("\n").find((line) => line.includes('"operation":"stream"'));
    expect(JSON.parse(sent ?? "{}")).toMatchObject({ owner: "phones", address: "127.0.0.1", result: "OK" });
  });
});

describe("Xiaoyi over a link", () => {
  it("is counted for its owner message by message; the phone shows a refusal", async () => {
    const simulator = await createSimulator({ clock: systemClock, random: seededRandom(11) });
    closeLater(() => simulator.close());
    const { accessKey: ak, agentId, secretKey: sk } = simulator.agent;
    const [url = ""] = simulator.linkUrls;
    const link = { agent: "talker", agentId, ak, sk, url, owner: "phones" };
    await start({ xiaoyi: { links: [link] }, limits: ONE_OF_OWNER });
    await simulator.ready();
    const first = simulator.phone.say("hello");
    await first.waitUntilSettled();
    expect([first.ending, first.screen().state]).toEqual(["final", "completed"]);
    const second = simulator.phone.say("hello again");
    await second.waitUntilSettled();
    expect([second.ending, second.screen().state]).toEqual(["final", "failed"]);
    expect(simulator.violations).toEqual([]);
    const { address: _, ...expected } = refusal("xiaoyi-link", "RESOURCE_EXHAUSTED", {
      owner: "phones",
      authenticated: true,
      agent: "talker",
    });
    expect(await refusals()).toEqual([expected]);
  });
});

describe("an agent that dials in", () => {
  const agent = createDialInAgent({ name: "Away", description: "Dials in.", agentId: "a", uid: "u", apiKey: "right" });

  /** The status of a request for a WebSocket. */
  function dial(apiKey: string, more: Readonly<Record<string, string>> = {}): Promise<number> {
    const headers = {
      ...more,
      connection: "upgrade",
      upgrade: "websocket",
      "sec-websocket-version": "13",
      "sec-websocket-key": Buffer.alloc(16).toString("base64"),
      "x-agent-id": "a",
      "x-uid": "u",
      "x-api-key": apiKey,
    };
    return new Promise((resolve, reject) => {
      const dialled = request(`${server.url}/openclaw/v1/ws/link`, { headers });
      dialled.once("response", (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      });
      dialled.once("upgrade", (_, socket) => {
        socket.destroy();
        resolve(101);
      });
      dialled.once("error", reject).end();
    });
  }

  it("is audited when its credentials are wrong", async () => {
    await start({ agents: { agent }, xiaoyi: {} });
    expect([await dial("wrong"), await dial("right")]).toEqual([401, 101]);
    expect(await refusals()).toEqual([refusal("xiaoyi-link", "UNAUTHENTICATED")]);
  });

  it("is counted for its address", async () => {
    await start({ agents: { agent }, xiaoyi: {}, limits: ONE_OF_ADDRESS });
    expect([await dial("right"), await dial("right")]).toEqual([101, 429]);
    expect(await refusals()).toEqual([refusal("xiaoyi-link", "RESOURCE_EXHAUSTED")]);
  });

  it("is counted for the address that a trusted proxy adds", async () => {
    await start({ agents: { agent }, xiaoyi: {}, limits: ONE_OF_ADDRESS, trustProxy: ["127.0.0.1"] });
    const through = (address: string) => dial("wrong", { "x-forwarded-for": address });
    const statuses = [await through("203.0.113.7"), await through("203.0.113.8"), await through("203.0.113.8")];
    expect(statuses).toEqual([401, 401, 429]);
    const addressed = (address: string, result: string) => refusal("xiaoyi-link", result, { address });
    expect(await refusals()).toEqual([
      addressed("203.0.113.7", "UNAUTHENTICATED"),
      addressed("203.0.113.8", "UNAUTHENTICATED"),
      addressed("203.0.113.8", "RESOURCE_EXHAUSTED"),
    ]);
  });
});

describe("a refusal for the address is audited with the dialect that was asked", () => {
  const headers = { "a2a-version": "1.0" };
  it.each([
    ["a2a-v1", { method: "POST", path: "/agents/talker", body: "{}", headers }, { agent: "talker" }],
    ["a2a-v03", { method: "POST", path: "/agents/talker", body: "{}" }, { agent: "talker" }],
    ["a2a-v1", { path: "/agents/talker/rest/tasks", headers }, { agent: "talker" }],
    ["tasks-rest", { path: "/tasks/x" }, { agent: "talker" }],
    ["xiaoyi-http", { method: "POST", path: "/agents/talker/agent/message", body: "{}" }, { agent: "talker" }],
    ["a2a-v1", { method: "POST", path: "/agents/nobody", body: "{}", headers }, {}],
  ])("%s at %o", async (dialect, request, more) => {
    await start({ limits: ONE_OF_ADDRESS });
    await sendRaw(server.url, { path: "/.well-known/agent-card.json" });
    expect((await sendRaw(server.url, request)).status).toBe(429);
    expect(await refusals()).toEqual([refusal(dialect, "RESOURCE_EXHAUSTED", more)]);
  });

  it("over gRPC", async () => {
    await start({ limits: ONE_OF_ADDRESS });
    const agent = await connect(server.url, { binding: "GRPC", retry: { attempts: 1, baseMs: 1, capMs: 1 } });
    await expect(agent.get("x")).rejects.toMatchObject({ code: "RESOURCE_EXHAUSTED" });
    expect(await refusals()).toEqual([refusal("a2a-v1", "RESOURCE_EXHAUSTED")]);
  });
});
