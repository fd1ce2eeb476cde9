import { describe, expect, test } from "vitest";
import { defineAgent } from "../../src/core/agents/define.ts";
import { ProtocolError } from "../../src/core/model/errors.ts";
import type { DragomanServer, ServeOptions } from "../../src/index.ts";
import { createHandler } from "../../src/index.ts";
import { Issuer } from "../support/issuer.ts";
import { startServer } from "../support/lifecycle.ts";
import { A2A_V1, type RawReply, rpcBody, sendRaw } from "../support/raw-http.ts";
import { userMessage } from "../support/wire-client.ts";

const agent = defineAgent({
  name: "Careful",
  description: "Does some things for everyone, and some for few.",
  skills: [
    { id: "read", name: "Read", description: "Reads." },
    { id: "write", name: "Write", description: "Writes.", scopes: ["write"] },
    {
      id: "admin",
      name: "Administer",
      description: "For those with a token.",
      securityRequirements: [{ schemes: { bearer: { list: ["admin", "write"] } } }],
    },
  ],
  run: async () => "done",
});

const AUTH: NonNullable<ServeOptions["auth"]> = {
  apiKeys: [
    { key: "alice-key", owner: "alice" },
    { key: "writer-key", owner: "alice", scopes: ["write"] },
  ],
  apiKey: { query: "key", cookie: "key" },
};

const issuer = await Issuer.start();

function start(options: Partial<ServeOptions> = {}): Promise<DragomanServer> {
  return startServer({ agents: { careful: agent }, auth: AUTH, ...options });
}

const ask = (url: string, headers: Record<string, string> = {}, body?: string): Promise<RawReply> =>
  sendRaw(url, { headers, ...(body === undefined ? undefined : { body }) });

/** Sends a message that names a skill, in its own metadata or in that of the request. */
const asking = (metadata: object, place: "message" | "request" = "message") =>
  rpcBody(
    "SendMessage",
    place === "message" ? { message: userMessage("x", { metadata }) } : { message: userMessage("x"), metadata },
  );

describe("credentials", () => {
  test.each([
    ["a header", "", { "x-api-key": "alice-key" }],
    ["a token", "", { authorization: "Bearer alice-key" }],
    ["the query", "?key=alice-key", {}],
    ["a cookie", "", { cookie: "a=b; key=alice-key" }],
  ])("are taken from %s", async (_where, query, headers) => {
    const { url } = await start();
    expect((await ask(`${url}/rest/tasks${query}`, { "a2a-version": "1.0", ...headers })).status).toBe(200);
    expect((await ask(`${url}/${query}`, { ...A2A_V1, ...headers }, rpcBody("ListTasks"))).status).toBe(200);
  });

  test("are not needed for cards and health", async () => {
    const { url } = await start();
    for (const path of ["/.well-known/agent-card.json", "/.well-known/agent.json", "/healthz", "/readyz"]) {
      expect([path, (await ask(`${url}${path}`)).status]).toEqual([path, 200]);
    }
  });

  test.each([
    ["no JSON", "{", -32050],
    ["an unknown method", rpcBody("Nothing"), -32050],
    ["an unsupported version", rpcBody("ListTasks"), -32050],
  ])("come before anything else is looked at: %s", async (_what, body, code) => {
    const { url } = await start();
    const answer = await ask(url, { ...A2A_V1, "a2a-version": body.includes("ListTasks") ? "99.0" : "1.0" }, body);
    expect([answer.status, answer.json.error.code]).toEqual([401, code]);
  });

  test("let a server be opened that others can reach", async () => {
    const { url } = await start({ host: "0.0.0.0" });
    expect((await ask(url, A2A_V1, rpcBody("ListTasks"))).status).toBe(401);
    expect((await ask(url, { ...A2A_V1, "x-api-key": "alice-key" }, rpcBody("ListTasks"))).status).toBe(200);
    expect((await ask(`${url}/metrics`)).status).toBe(401);
    expect((await ask(`${url}/metrics`, { "x-api-key": "alice-key" })).status).toBe(200);
  });

  test("are needed for metrics by who comes through a proxy on this machine", async () => {
    const { url } = await start();
    expect((await ask(`${url}/metrics`)).status).toBe(200);
    const forwarded = { "x-forwarded-for": "192.0.2.1" };
    expect((await ask(`${url}/metrics`, forwarded)).status).toBe(401);
    expect((await ask(`${url}/metrics`, { ...forwarded, "x-api-key": "alice-key" })).status).toBe(200);
  });

  test("are needed for metrics by a page of another origin", async () => {
    const { url } = await start({ cors: { origins: ["*"] } });
    expect((await ask(`${url}/metrics`, { origin: "https://evil.example" })).status).toBe(401);
  });

  test("keep answers out of caches, in every dialect", async () => {
    const { url } = await start();
    const known = { "x-api-key": "alice-key" };
    const asked = [
      ask(`${url}/rest/tasks`, { "a2a-version": "1.0", ...known }),
      ask(`${url}/rest/tasks/none`, { "a2a-version": "1.0", ...known }),
      ask(`${url}/tasks/none`, known),
      ask(`${url}/v1/tasks/none`, known),
      ask(`${url}/`, { ...A2A_V1, ...known }, rpcBody("ListTasks")),
      ask(`${url}/`, { ...A2A_V1, ...known }, asking({}).replace("SendMessage", "SendStreamingMessage")),
      ask(`${url}/`, A2A_V1, rpcBody("ListTasks")),
      ask(`${url}/metrics`, known),
    ];
    for (const { headers } of await Promise.all(asked)) expect(headers["cache-control"]).toMatch(/private, no-store$/);
    const card = await ask(`${url}/.well-known/agent-card.json`);
    expect(card.headers["cache-control"]).toMatch(/^public/);
  });

  test("are not taken from a browser for what its page may send without being asked about", async () => {
    const { url } = await start({ cors: { origins: ["*"] } });
    const page = { origin: "https://evil.example", cookie: "key=alice-key", "a2a-version": "1.0" };
    const statusOf = async (path: string, type: Record<string, string>, body: string) =>
      (await ask(`${url}${path}`, { ...page, ...type }, body)).status;
    const types: Record<string, string>[] = [
      {},
      { "content-type": "text/plain" },
      { "content-type": "multipart/form-data" },
    ];
    for (const type of types) {
      expect(await statusOf("/", type, rpcBody("ListTasks"))).toBe(415);
      expect(await statusOf("/rest/tasks/none:cancel", type, "")).toBe(415);
      expect(await statusOf("/tasks/send", type, "{}")).toBe(415);
    }
    expect(await statusOf("/", { "content-type": "application/json" }, rpcBody("ListTasks"))).toBe(200);
    expect(await statusOf("/rest/tasks/none:cancel", { "content-type": "application/a2a+json" }, "")).toBe(404);
    const { host } = new URL(url);
    expect(await statusOf("/", { origin: `http://${host}` }, rpcBody("ListTasks"))).toBe(200);
  });

  test("are checked where the server is mounted in another one", async () => {
    const handler = await createHandler({ agents: { careful: agent }, auth: AUTH, publicUrl: "https://app.example" });
    const send = (headers: Record<string, string>) =>
      handler(
        new Request("https://app.example/", {
          method: "POST",
          headers: { ...A2A_V1, ...headers },
          body: rpcBody("ListTasks"),
        }),
      );
    const refused = await send({});
    expect(refused.status).toBe(401);
    expect(refused.headers.get("www-authenticate")).toContain('resource_metadata="https://app.example/.well-known/');
    expect((await send({ "x-api-key": "alice-key" })).status).toBe(200);
    await handler.close();
  });
});

describe("a caller that is not authorised", () => {
  test("learns how to authenticate, and where to read more", async () => {
    const { url } = await start({ auth: { ...AUTH, jwt: { issuer: issuer.url, audience: issuer.audience } } });
    const refused = await ask(`${url}/agents/careful`, A2A_V1, rpcBody("ListTasks"));
    expect(refused.status).toBe(401);
    const place = /resource_metadata="([^"]+)"/.exec(String(refused.headers["www-authenticate"]))?.[1] ?? "";
    expect(place).toBe(`${url}/.well-known/oauth-protected-resource/agents/careful`);
    const metadata = await ask(place);
    expect(metadata.json).toEqual({
      resource: `${url}/agents/careful`,
      authorization_servers: [issuer.url],
      scopes_supported: ["write"],
      bearer_methods_supported: ["header"],
    });
    const atRoot = await ask(url, A2A_V1, rpcBody("ListTasks"));
    expect(atRoot.headers["www-authenticate"]).toContain(`"${url}/.well-known/oauth-protected-resource"`);
    const root = await ask(`${url}/.well-known/oauth-protected-resource`);
    expect(root.json.resource).toBe(url);
    expect((await ask(`${url}/.well-known/oauth-protected-resource/agents/none`)).status).toBe(404);
    const forged = { ...A2A_V1, authorization: `Bearer ${await issuer.token("alice", { forged: true })}` };
    expect((await ask(url, forged, rpcBody("ListTasks"))).headers["www-authenticate"]).toContain(
      'error="invalid_token"',
    );
  });

  test("finds no such metadata where no one can authenticate", async () => {
    const { url } = await start({ auth: {} });
    expect((await ask(`${url}/.well-known/oauth-protected-resource`)).status).toBe(404);
  });

  test("is told to wait after too many wrong credentials, while valid ones are accepted", async () => {
    const { url } = await start({ limits: { failedLogins: 3 } });
    const wrong = () => ask(url, { ...A2A_V1, "x-api-key": "wrong" }, rpcBody("ListTasks"));
    for (let at = 0; at < 3; at++) expect((await wrong()).status).toBe(401);
    const sent = await wrong();
    expect([sent.status, sent.json.error.code]).toEqual([429, -32052]);
    expect(Number(sent.headers["retry-after"])).toBeGreaterThan(0);
    const rest = (key: string) => ask(`${url}/rest/tasks`, { "a2a-version": "1.0", "x-api-key": key });
    const refused = await rest("wrong");
    expect([refused.status, refused.headers["retry-after"] !== undefined]).toEqual([429, true]);
    expect((await rest("alice-key")).status).toBe(200);
    expect((await ask(`${url}/.well-known/agent-card.json`)).status).toBe(200);
  });
});

describe("the card", () => {
  const cardOf = async (url: string, version: string) =>
    (await ask(`${url}/.well-known/agent-card.json`, { "a2a-version": version })).json;

  test("declares what is enforced, in both versions", async () => {
    const { url } = await start();
    const card = await cardOf(url, "1.0");
    expect(card.securitySchemes).toEqual({
      apiKey: { apiKeySecurityScheme: { location: "header", name: "X-API-Key" } },
      apiKeyQuery: { apiKeySecurityScheme: { location: "query", name: "key" } },
      apiKeyCookie: { apiKeySecurityScheme: { location: "cookie", name: "key" } },
      bearer: { httpAuthSecurityScheme: { scheme: "Bearer" } },
    });
    expect(card.securityRequirements).toEqual([
      { schemes: { apiKey: {} } },
      { schemes: { apiKeyQuery: {} } },
      { schemes: { apiKeyCookie: {} } },
      { schemes: { bearer: {} } },
    ]);
    const earlier = await cardOf(url, "0.3");
    expect(earlier.securitySchemes.apiKey).toEqual({ type: "apiKey", in: "header", name: "X-API-Key" });
    expect(earlier.security).toContainEqual({ bearer: [] });
  });

  test("shows the scopes of skills and nothing of how they are written", async () => {
    const { url } = await start();
    const { skills } = await cardOf(url, "1.0");
    expect(skills[0].securityRequirements).toBeUndefined();
    expect(skills[1].securityRequirements).toContainEqual({ schemes: { apiKey: { list: ["write"] } } });
    expect(skills[1].scopes).toBeUndefined();
    expect(skills[2].securityRequirements).toEqual([{ schemes: { bearer: { list: ["admin", "write"] } } }]);
  });

  test("declares nothing where nothing is enforced, and what is configured for a check of one's own", async () => {
    const open = await start({ auth: {} });
    expect(await cardOf(open.url, "1.0")).not.toHaveProperty("securitySchemes");
    await open.close();
    const schemes = { own: { httpAuthSecurityScheme: { scheme: "Hawk" } } };
    const requirements = [{ schemes: { own: { list: [] } } }];
    const { url } = await start({ auth: {}, authenticate: () => undefined, security: { schemes, requirements } });
    expect(await cardOf(url, "1.0")).toMatchObject({
      securitySchemes: schemes,
      securityRequirements: [{ schemes: { own: {} } }],
    });
  });
});

describe("skills with scopes", () => {
  test.each([
    ["message", { skill: "write" }],
    ["message", { skillId: "write" }],
    ["request", { skill: "write" }],
    ["request", { skillId: "write" }],
  ] as const)("are for those who have them: named in the %s as %j", async (place, skill) => {
    const { url } = await start();
    const without = await ask(url, { ...A2A_V1, "x-api-key": "alice-key" }, asking(skill, place));
    expect([without.status, without.json.error.code]).toEqual([403, -32051]);
    expect(without.headers["www-authenticate"]).toContain('error="insufficient_scope", scope="write"');
    const granted = await ask(url, { ...A2A_V1, "x-api-key": "writer-key" }, asking(skill, place));
    expect(granted.json.result).toBeDefined();
  });

  test("take scopes of tokens, and all that a requirement lists", async () => {
    const { url } = await start({ auth: { jwt: { issuer: issuer.url, audience: issuer.audience } } });
    const statusWith = async (scope: string) => {
      const headers = { ...A2A_V1, authorization: `Bearer ${await issuer.token("alice", { scope })}` };
      return (await ask(url, headers, asking({ skill: "admin" }))).status;
    };
    expect([await statusWith("admin"), await statusWith("write admin")]).toEqual([403, 200]);
  });

  test("do not stand in the way of others", async () => {
    const { url } = await start();
    for (const skill of [{ skill: "read" }, { skill: "unknown" }, { skill: 7 }, {}]) {
      expect((await ask(url, { ...A2A_V1, "x-api-key": "alice-key" }, asking(skill))).status).toBe(200);
    }
  });

  test("ask anonymous callers to authenticate", async () => {
    const { url } = await start({ auth: { ...AUTH, anonymous: true } });
    expect((await ask(url, A2A_V1, asking({ skill: "read" }))).status).toBe(200);
    const refused = await ask(url, A2A_V1, asking({ skill: "write" }));
    expect([refused.status, refused.headers["www-authenticate"] !== undefined]).toEqual([401, true]);
  });
});

test("a stream ends when the token it was opened with expires, and continues with a new one", async () => {
  const slow = defineAgent({
    name: "Slow",
    description: "Waits.",
    run: async (turn) => {
      await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
    },
  });
  const jwt = { issuer: issuer.url, audience: issuer.audience, clockSkew: 1_000 };
  const { url } = await start({ agents: { slow }, auth: { jwt } });
  const headersFor = async (lasts: number) => ({
    ...A2A_V1,
    authorization: `Bearer ${await issuer.token("alice", { lasts })}`,
  });
  const brief = await headersFor(1);
  const ended = await ask(url, brief, rpcBody("SendStreamingMessage", { message: userMessage("x") }));
  expect(ended.status).toBe(200);
  const { id } = JSON.parse(/^data: (.*)$/m.exec(ended.text)?.[1] ?? "").result.task;
  const resume = { ...brief, "last-event-id": "1" };
  expect((await ask(url, resume, rpcBody("SubscribeToTask", { id }))).status).toBe(401);
  const again = await ask(url, { ...(await headersFor(1)), "last-event-id": "1" }, rpcBody("SubscribeToTask", { id }));
  expect([again.status, again.headers["content-type"]]).toEqual([200, "text/event-stream"]);
});

describe("a check of one's own", () => {
  test("may take its time, and goes before the others", async () => {
    const { url } = await start({
      authenticate: async ({ headers, query }) => {
        if (query.includes("refuse")) throw new ProtocolError("PERMISSION_DENIED", "Not you.");
        return headers["x-user"] === undefined ? undefined : { owner: headers["x-user"], authenticated: true };
      },
    });
    const statusOf = async (path: string, headers: Record<string, string>) =>
      (await ask(`${url}${path}`, { ...A2A_V1, ...headers }, rpcBody("ListTasks"))).status;
    expect(await statusOf("", { "x-user": "carol" })).toBe(200);
    expect(await statusOf("", { "x-api-key": "alice-key" })).toBe(200);
    expect(await statusOf("", {})).toBe(401);
    expect(await statusOf("/?refuse", { "x-user": "carol" })).toBe(403);
  });

  test("that throws authorises no one", async () => {
    const { url } = await start({
      auth: {},
      authenticate: () => {
        throw new Error("out of order");
      },
    });
    const answer = await ask(url, A2A_V1, rpcBody("ListTasks"));
    expect([answer.status, answer.text]).toEqual([500, ""]);
  });

  test("refuses also with an error of another copy of the package", async () => {
    const foreign = Object.assign(new Error("Who are you?"), { code: "UNAUTHENTICATED" });
    Object.defineProperty(foreign, Symbol.for("dragoman.ProtocolError"), { value: true });
    const { url } = await start({
      auth: {},
      authenticate: () => {
        throw foreign;
      },
    });
    expect((await ask(url, A2A_V1, rpcBody("ListTasks"))).status).toBe(401);
  });
});
