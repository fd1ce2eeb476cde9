/** The platform proves who it is in its head: whoever does not is refused before a large body is read. */
import { createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import { defineAgent } from "../../src/core/agents/define.ts";
import { startServer } from "../support/lifecycle.ts";
import { beginRequest } from "../support/raw-socket.ts";

const AK = "access-key-1";
const SK = "secret-key-1";
const API_KEY = "an-api-key-of-the-platform";
const HOUR_MS = 3_600_000;
const agent = defineAgent({ name: "Quiet", description: "Says little.", skills: [], run: async () => "done" });

async function start(): Promise<number> {
  const { port } = await startServer({
    agents: { signed: agent, keyed: agent, trusted: agent, plain: agent },
    auth: { apiKeys: [{ key: "alice-key-5f0c2b77d1", owner: "alice" }] },
    xiaoyi: {
      http: [
        { agent: "signed", ak: AK, sk: SK },
        { agent: "keyed", apiKey: API_KEY, query: "key" },
        { agent: "trusted", oauth: { clientId: "client", clientSecret: "client-secret" } },
      ],
    },
  });
  return port;
}

const place = (name: string) => `/agents/${name}/agent/message`;

function signature(at: number, ak = AK, sk = SK): string[] {
  const sign = createHmac("sha256", sk).update(String(at)).digest("base64");
  return [`accessKey: ${ak}`, `ts: ${at}`, `sign: ${sign}`];
}

const begin = (port: number, path: string, headers: readonly string[], some = "{") =>
  beginRequest(port, path, headers, some).answer;

const MUCH = "content-length: 1000000";
const WAITING = ["content-length: 1000000", "expect: 100-continue"];

describe("a large request to a place of Xiaoyi", () => {
  it.each<readonly [string, string, () => string[]]>([
    ["no credentials", place("signed"), () => []],
    ["an unknown access key", place("signed"), () => signature(Date.now(), "another")],
    ["a signature of another key", place("signed"), () => signature(Date.now(), AK, "another")],
    ["a stale time", place("signed"), () => signature(Date.now() - HOUR_MS)],
    ["a session that is not good", place("signed"), () => ["agent-session-id: made-up"]],
    ["a wrong API key", place("keyed"), () => ["authorization: Bearer wrong"]],
    ["a wrong API key in the query", `${place("keyed")}?key=wrong`, () => []],
    ["a wrong token", place("trusted"), () => ["authorization: Bearer wrong"]],
    ["an agent that has no such place", place("plain"), () => []],
    ["no agent", place("nobody"), () => []],
  ])("is refused by its head: %s", async (_, path, headers) => {
    const port = await start();
    expect(await begin(port, path, [MUCH, ...headers()])).toMatch(/^HTTP\/1\.1 401 /);
    expect(await begin(port, path, [...WAITING, ...headers()], "")).toMatch(/^HTTP\/1\.1 401 /);
  });

  it("is refused in the platform's words as soon as it turns out to be large", async () => {
    const port = await start();
    const chunk = `8000\r\n${"x".repeat(0x8000)}\r\n`;
    const answer = await begin(port, place("signed"), ["transfer-encoding: chunked"], chunk.repeat(3));
    expect(answer).toMatch(/^HTTP\/1\.1 401 /);
    expect(answer).toMatch(/\r\nconnection: close\r\n/i);
    expect(answer).toContain('"jsonrpc":"2.0"');
  });

  it.each<readonly [string, string, () => string[]]>([
    ["a signature", place("signed"), () => signature(Date.now())],
    ["an API key", place("keyed"), () => [`authorization: ${API_KEY}`]],
    ["an API key in the query", `${place("keyed")}?key=${API_KEY}`, () => []],
  ])("is read where the head shows who calls: %s", async (_, path, headers) => {
    const port = await start();
    expect(await begin(port, path, [...WAITING, ...headers()], "")).toMatch(/^HTTP\/1\.1 100 /);
  });

  it("for a token is refused for its length, as only its body shows who asks", async () => {
    const port = await start();
    const path = "/agents/trusted/agent/token";
    expect(await begin(port, path, [MUCH])).toMatch(/^HTTP\/1\.1 400 /);
    const short = ["content-length: 20", "expect: 100-continue"];
    expect(await begin(port, path, short, "")).toMatch(/^HTTP\/1\.1 100 /);
  });
});
