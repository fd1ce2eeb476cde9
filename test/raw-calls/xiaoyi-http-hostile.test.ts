/** What the platform's place gets that no platform should send, put to a running server. */

import { beforeEach, describe, expect, it } from "vitest";
import type { Part } from "../../src/core/model/message.ts";
import { type Log, SILENT_LOG } from "../../src/core/model/ports.ts";
import { signTimestamp } from "../../src/features/xiaoyi/codec/signature.ts";
import type { DragomanServer } from "../../src/index.ts";
import { defineAgent } from "../../src/index.ts";
import { startServer } from "../support/lifecycle.ts";
import { sendRaw } from "../support/raw-http.ts";

const API_KEY = "the-key-of-the-platform";

/** Keeps what it was given. */
let given: readonly Part[] = [];
const keeper = defineAgent({
  name: "Keeper",
  description: "Keeps.",
  inputModes: ["*/*"],
  async *run(turn) {
    given = turn.parts;
    yield turn.artifact({ name: "answer", parts: [{ text: "Thanks." }] });
  },
});

interface Line {
  readonly level: "warn" | "error";
  readonly agent?: string;
  readonly why?: string;
  readonly hint?: string;
  readonly err?: object;
}
let lines: Line[] = [];
const log: Log = {
  ...SILENT_LOG,
  warn: (fields) => void lines.push({ level: "warn", ...fields }),
  error: (fields) => void lines.push({ level: "error", ...fields }),
};

const AK = "access-key";
const SK = "the-secret-key-of-the-platform";
const account = async (): Promise<never> => {
  throw new TypeError("The disk is gone.");
};

let server: DragomanServer;
beforeEach(async () => {
  server = await startServer({
    agents: { keeper, signed: keeper, login: keeper },
    log,
    limits: { body: 100_000 },
    xiaoyi: {
      http: [
        { agent: "keeper", apiKey: API_KEY, account },
        { agent: "signed", ak: AK, sk: SK },
        { agent: "login", oauth: { clientId: "client", clientSecret: "of-the-client" } },
      ],
    },
  });
  lines = [];
});

const KEYED = { authorization: API_KEY };

function post(body: string | object, headers: Record<string, string> = KEYED, agent = "keeper", path = "message") {
  return sendRaw(`${server.url}/agents/${agent}`, {
    method: "POST",
    path: `/agent/${path}`,
    headers: { "content-type": "application/json", ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
}

function signed(sk: string, minutes = 0): Record<string, string> {
  const ts = String(Date.now() + minutes * 60_000);
  return { accessKey: AK, ts, sign: signTimestamp(sk, ts) };
}

const rpc = (method: string, more: object = {}) => ({ jsonrpc: "2.0", id: "1", method, ...more });
const CLEAR = rpc("clearContext", { sessionId: "s" });

describe("files of a message", () => {
  it.each([
    "\u0001file:///etc/passwd",
    "fi\tle:///etc/passwd",
    "fi\nle:///etc/passwd",
    "ht\ttp://10.0.0.1/",
    "http://169.254.169.254/latest/meta-data/",
    "data:text/plain,hi",
    "",
  ])("at %j are not named to the agent, which receives the reason", async (uri) => {
    const file = { kind: "file", file: { name: "x.txt", mimeType: "text/plain", uri } };
    const message = { role: "user", parts: [{ kind: "text", text: "Look:" }, file] };
    const params = { id: "task", sessionId: "session", message };
    await post(rpc("message/stream", { params }));
    expect(given).toEqual([{ text: "Look:" }, { text: expect.stringContaining('无法获取文件 "x.txt"') }]);
  });
});

describe("a refusal is logged once for each agent and reason", () => {
  it.each<[string, string, Record<string, string>, string, RegExp]>([
    ["a wrong signature", "signed", signed("wrong"), "wrong-credentials", /compare them.* cuts .* 64 characters/],
    ["a clock that is behind", "signed", signed(SK, -90), "stale", /is 90 minutes behind the clock/],
    ["a clock that is ahead", "signed", signed(SK, 20), "stale", /is 20 minutes ahead of the clock/],
    ["no credentials", "signed", {}, "no-credentials", /proxy/],
    ["a session that is over", "signed", { "agent-session-id": "0.x.y" }, "bad-session", /expired/],
    ["a wrong API key", "keeper", { authorization: "Bearer other" }, "wrong-credentials", /compare them/],
  ])("%s", async (_, agent, headers, why, hint) => {
    for (let time = 0; time < 3; time++) expect((await post(CLEAR, headers, agent)).status).toBe(401);
    expect(lines).toEqual([{ level: "warn", agent, why, hint: expect.stringMatching(hint) }]);
    expect(JSON.stringify(lines)).not.toMatch(/the-secret-key|the-key-of/);
  });

  it.each<[string, string, string | object, string]>([
    ["an unknown method", "keeper", rpc("foo"), "METHOD_NOT_FOUND"],
    ["no JSON", "keeper", "{", "PARSE_ERROR"],
    ["no request", "keeper", "[]", "INVALID_REQUEST"],
    ["a message without params", "keeper", rpc("message/stream"), "INVALID_PARAMS"],
    ["a cancel of nothing", "keeper", rpc("tasks/cancel", { sessionId: "nobody" }), "nothing-to-cancel"],
  ])("%s", async (_, agent, body, why) => {
    for (let time = 0; time < 3; time++) await post(body);
    expect(lines).toEqual([{ level: "warn", agent, why, hint: expect.any(String) }]);
  });

  it("a body that is too large, before its agent is determined", async () => {
    for (let time = 0; time < 3; time++) expect((await post("x".repeat(100_001))).status).toBe(413);
    expect(lines).toEqual([{ level: "warn", agent: undefined, why: "INVALID_REQUEST", hint: expect.any(String) }]);
  });

  it("wrong client credentials", async () => {
    const form = { "content-type": "application/x-www-form-urlencoded" };
    const asked = "grant_type=client_credentials&client_id=client&client_secret=wrong";
    for (let time = 0; time < 3; time++) expect((await post(asked, form, "login", "token")).status).toBe(401);
    expect(lines).toMatchObject([{ agent: "login", why: "wrong-credentials" }]);
  });
});

it("an unexpected error is logged with its cause, which is not sent", async () => {
  const params = { message: { role: "user", parts: [{ kind: "data", data: { authCode: "code" } }] } };
  const reply = await post(rpc("authorize", { params }));
  expect(reply.text).not.toContain("disk");
  expect(reply.json).toMatchObject({ error: { code: -32_603 } });
  expect(lines).toMatchObject([{ level: "error", agent: "keeper", err: { message: "The disk is gone." } }]);
});
