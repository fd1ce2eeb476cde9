import { describe, expect, it } from "vitest";
import { signTimestamp } from "../../codec/signature.ts";
import { issueToken, isValidToken } from "./access.ts";
import { API_KEY, bodyOf, entryOf, NOW, serve } from "./fixtures/serving.ts";
import type { Access } from "./options.ts";

const INITIALIZE = { jsonrpc: "2.0", id: "1", method: "initialize" };
const CLEAR = { jsonrpc: "2.0", id: "2", method: "clearContext", sessionId: "s" };

const SIGNED = entryOf({ access: { kind: "signature", accessKey: "AK", secretKey: "SK" } });
const OAUTH = entryOf({ access: { kind: "oauth", clientId: "client", clientSecret: "client secret" } });

function keyIn(more: Partial<Extract<Access, { kind: "api-key" }>>) {
  return entryOf({ access: { kind: "api-key", apiKey: API_KEY, header: "authorization", query: undefined, ...more } });
}

function signedAt(at: number, { ak = "AK", sk = "SK" } = {}) {
  return { accesskey: ak, ts: String(at), sign: signTimestamp(sk, String(at)) };
}

async function statusOf(headers: Record<string, string>, entry = SIGNED, query = "", now = NOW): Promise<number> {
  const { reply } = await serve(CLEAR, { entries: [entry], headers, query, now });
  return reply.status;
}

describe("signed requests", () => {
  it("are let in while their time is near", async () => {
    expect(await statusOf(signedAt(NOW))).toBe(200);
    expect(await statusOf(signedAt(NOW - 14 * 60_000))).toBe(200);
    expect(await statusOf(signedAt(NOW - 15 * 60_000))).toBe(401);
    expect(await statusOf(signedAt(NOW + 15 * 60_000))).toBe(401);
  });

  it.each([
    ["another key", signedAt(NOW, { sk: "other" })],
    ["another name", signedAt(NOW, { ak: "other" })],
    ["no name", { ...signedAt(NOW), accesskey: "" }],
    ["nothing", {}],
    ["another time", { ...signedAt(NOW), ts: String(NOW + 1) }],
    ["the key itself", { authorization: "Bearer SK" }],
  ])("are refused with %s", async (_name, headers) => {
    const { asked, reply } = await serve(CLEAR, { entries: [SIGNED], headers });
    expect(reply.status).toBe(401);
    expect(asked).toEqual([]);
    expect(JSON.stringify(bodyOf(reply))).not.toContain("SK");
  });

  it("that are stale are refused as such", async () => {
    const { reply } = await serve(CLEAR, { entries: [SIGNED], headers: signedAt(0) });
    expect(bodyOf(reply)).toMatchObject({ error: { message: expect.stringContaining("too old") } });
  });
});

describe("API keys", () => {
  it.each([
    ["as a bearer", keyIn({}), { authorization: `Bearer ${API_KEY}` }, ""],
    ["as it is", keyIn({}), { authorization: API_KEY }, ""],
    ["in a header of choice", keyIn({ header: "x-key" }), { "x-key": API_KEY }, ""],
    ["in the query", keyIn({ query: "key" }), {}, `a=b&key=${API_KEY}`],
  ])("come %s", async (_name, entry, headers, query) => {
    expect(await statusOf(headers, entry, query)).toBe(200);
  });

  it.each([
    ["in a query that was not configured", keyIn({}), {}, `key=${API_KEY}`],
    ["in another header", keyIn({ header: "x-key" }), { authorization: API_KEY }, ""],
    ["cut short", keyIn({}), { authorization: API_KEY.slice(1) }, ""],
    ["empty", keyIn({}), { authorization: "Bearer " }, ""],
  ])("do not come %s", async (_name, entry, headers, query) => {
    expect(await statusOf(headers, entry, query)).toBe(401);
  });
});

describe("client credentials", () => {
  const FORM = { "content-type": "application/x-www-form-urlencoded" };
  const ask = (body: string, headers: Record<string, string> = FORM, entries = [OAUTH]) =>
    serve(body, { to: "token", headers, entries });
  const GOOD = "grant_type=client_credentials&client_id=client&client_secret=client+secret";

  it.each([
    ["a form", GOOD, FORM],
    [
      "JSON",
      '{"grant_type":"client_credentials","client_id":"client","client_secret":"client secret"}',
      {
        "content-type": "application/json",
      },
    ],
    [
      "a header",
      "grant_type=client_credentials",
      {
        ...FORM,
        authorization: `Basic ${Buffer.from("client:client+secret").toString("base64")}`,
      },
    ],
  ] as const)("in %s are traded for a token that opens the door for an hour", async (_name, body, headers) => {
    const { reply } = await ask(body, headers);
    expect(reply).toMatchObject({ status: 200, headers: { "cache-control": "no-store" } });
    const token = bodyOf(reply) as { access_token: string };
    expect(token).toEqual({ access_token: expect.any(String), token_type: "Bearer", expires_in: 3_600 });
    const bearer = { authorization: `Bearer ${token.access_token}` };
    expect(await statusOf(bearer, OAUTH)).toBe(200);
    expect(await statusOf(bearer, OAUTH, "", NOW + 3_600_000)).toBe(401);
    expect(await statusOf({ "agent-session-id": token.access_token }, OAUTH)).toBe(401);
    const other = entryOf({ access: { kind: "oauth", clientId: "client", clientSecret: "changed" } });
    expect(await statusOf(bearer, other)).toBe(401);
  });

  it.each([
    ["grant_type=client_credentials&client_id=client&client_secret=wrong", 401, "invalid_client"],
    ["grant_type=client_credentials", 401, "invalid_client"],
    ["grant_type=password&client_id=client&client_secret=client+secret", 400, "unsupported_grant_type"],
    ["", 400, "unsupported_grant_type"],
    [`${GOOD}&more=${"x".repeat(20_000)}`, 400, "invalid_request"],
  ])("are refused: %.60s", async (body, status, error) => {
    const { reply } = await ask(body);
    expect(reply.status).toBe(status);
    expect(bodyOf(reply)).toEqual({ error });
  });

  it("are asked for only where there are any", async () => {
    await expect(ask(GOOD, FORM, [SIGNED])).rejects.toThrow("Nobody serves agent/token.");
    expect((await serve("", { to: "token", method: "GET", entries: [OAUTH] })).reply.status).toBe(405);
    expect((await serve("", { to: "token", path: "/x", entries: [OAUTH] })).reply.status).toBe(404);
  });

  it("do not open the door themselves", async () => {
    expect(await statusOf({ authorization: "Bearer client secret" }, OAUTH)).toBe(401);
    expect(await statusOf({ authorization: "Bearer client" }, OAUTH)).toBe(401);
  });
});

describe("sessions", () => {
  const open = async () => {
    const { reply } = await serve(INITIALIZE);
    return (bodyOf(reply) as { result: { agentSessionId: string } }).result.agentSessionId;
  };

  it("are opened by credentials and valid for as long as announced", async () => {
    const { reply } = await serve(INITIALIZE);
    const body = bodyOf(reply) as { result: { agentSessionId: string } };
    expect(body).toEqual({
      jsonrpc: "2.0",
      id: "1",
      result: { version: "1.0", agentSessionId: expect.any(String), agentSessionTtl: "60" },
      error: { code: 0, message: "" },
    });
    const session = body.result.agentSessionId;
    expect(session.length).toBeLessThanOrEqual(64);
    const entry = entryOf();
    expect(await statusOf({ "agent-session-id": session }, entry)).toBe(200);
    expect(await statusOf({ "agent-session-id": ` ${session} ` }, entry)).toBe(200);
    expect(await statusOf({ "agent-session-id": session }, entry, "", NOW + 60_000)).toBe(401);
  });

  it("are as many as are wanted, and end with their credential", async () => {
    const sessions = await Promise.all(Array.from({ length: 6 }, open));
    for (const session of sessions) expect(await statusOf({ "agent-session-id": session }, entryOf())).toBe(200);
    const changed = keyIn({ apiKey: "another" });
    expect(await statusOf({ "agent-session-id": sessions[0] as string }, changed)).toBe(401);
  });

  it("open no others", async () => {
    const headers = { "agent-session-id": await open() };
    const { reply } = await serve(INITIALIZE, { headers });
    expect(reply.status).toBe(401);
  });

  it.each(["", "x", "a.b.c", `${"z".repeat(9)}.x.${"A".repeat(32)}`])("are not made up: %j", async (session) => {
    expect(await statusOf({ "agent-session-id": session }, entryOf())).toBe(401);
  });

  it("of one of several entries belong to its owner", async () => {
    const entries = [SIGNED, entryOf({ owner: "alice" }), OAUTH];
    const { reply } = await serve(INITIALIZE, { entries });
    const { agentSessionId } = (bodyOf(reply) as { result: { agentSessionId: string } }).result;
    const { calls } = await serve(CLEAR, { entries, headers: { "agent-session-id": agentSessionId } });
    expect(calls[0]?.caller.owner).toBe("alice");
  });
});

describe("tokens", () => {
  const scope = { secret: "s", purpose: "p" };

  it("fit where the platform keeps them, whatever makes them unique", () => {
    const token = issueToken(scope, 4_102_444_800_000, "0197a3c1-0000-7000-8000-0123456789ab");
    expect(token.length).toBeLessThanOrEqual(64);
    expect(isValidToken(scope, token, NOW)).toBe(true);
    expect(isValidToken({ ...scope, purpose: "q" }, token, NOW)).toBe(false);
    expect(isValidToken({ ...scope, secret: "t" }, token, NOW)).toBe(false);
  });

  it("cannot be prolonged", () => {
    const token = issueToken(scope, NOW + 1_000, "u");
    const later = token.replace(/^[^.]+/, (expiry) => (Number.parseInt(expiry, 36) + 9_999).toString(36));
    expect(isValidToken(scope, later, NOW)).toBe(false);
  });
});
