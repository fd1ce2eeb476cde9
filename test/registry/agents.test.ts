/** Registering agents over HTTP: what is answered, who sees it, and what is refused. */

import { generateKeyPairSync } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { EventStreamReader } from "../support/event-stream-reader.ts";
import { createFolder } from "../support/lifecycle.ts";
import { openRequest } from "../support/raw-http.ts";
import { ALICE, ask, BOB, cardAt, startRegistry, startSite, TWO_OWNERS, translator } from "./support.ts";

const ENTRY = {
  displayName: "翻译专家",
  type: "application/a2a-agent-card+json",
  description: "中文与英文互译。",
  tags: ["language"],
  capabilities: ["translate"],
  version: "2.1.0",
  metadata: { health: "up", source: "url", visibility: "private", signature: "absent", heldBack: false },
};

describe("an agent that is registered by its address", () => {
  test("is answered with its entry, keeps its id, is found, and can be removed", async () => {
    const registry = await startRegistry();
    const other = await startRegistry({ agents: { translator } });
    const made = await ask(registry.url, "/registry/agents", { url: other.url, ttlSeconds: 60 });
    expect(made.status).toBe(201);
    const { id, url } = made.json;
    expect(made.headers.location).toBe(`${registry.url}/registry/agents/${id}`);
    expect(made.json).toMatchObject(ENTRY);
    expect(url).toBe(`${other.url}/.well-known/agent-card.json`);
    expect(made.json.identifier).toMatch(/^urn:air:agent\.localhost:\d+:/);
    expect(made.json.registration).toMatchObject({ ttlSeconds: 60, failures: 0, findings: [], probe: false });
    expect(made.json.card).toMatchObject({ name: "翻译专家", skills: [{ id: "translate" }] });

    const again = await ask(registry.url, "/registry/agents", { url, ttlSeconds: 90 });
    expect([again.status, again.json.id, again.json.registration.ttlSeconds]).toEqual([200, id, 90]);
    const beat = await ask(registry.url, `/registry/agents/${id}/heartbeat`, "", { method: "POST" });
    expect([beat.status, beat.json.id]).toEqual([200, id]);
    expect(Date.parse(beat.json.expiresAt)).toBeGreaterThan(Date.parse(again.json.registration.expiresAt) - 1);
    const listed = await ask(registry.url, "/registry/agents?skill=translate");
    expect(listed.json.items).toMatchObject([{ id, ...ENTRY }]);
    const found = await ask(registry.url, "/registry/search", { query: { text: "翻译文章" } });
    expect(found.json.results).toMatchObject([{ id, source: `${registry.url}/registry` }]);
    expect((await ask(registry.url, `/registry/agents/${id}`)).json).toEqual({
      ...again.json,
      metadata: { ...again.json.metadata, expiresAt: beat.json.expiresAt },
      registration: { ...again.json.registration, expiresAt: beat.json.expiresAt },
    });

    const gone = await ask(registry.url, `/registry/agents/${id}`, undefined, { method: "DELETE" });
    expect([gone.status, gone.text]).toEqual([204, ""]);
    for (const [method, path] of [
      ["GET", ""],
      ["DELETE", ""],
      ["POST", "/heartbeat"],
    ] as const) {
      const reply = await ask(registry.url, `/registry/agents/${id}${path}`, undefined, { method });
      expect([reply.status, reply.json]).toEqual([404, { errorCode: "NOT_FOUND", message: "Agent not found." }]);
    }
  });

  test("that is of this server is the entry that is there already", async () => {
    const { url } = await startRegistry();
    for (const address of [url, `${url}/agents/weather`, `${url}/agents/weather/.well-known/agent-card.json`]) {
      const reply = await ask(url, "/registry/agents", { url: address });
      expect([reply.status, reply.json.id]).toEqual([200, "self.weather"]);
    }
    const removed = await ask(url, "/registry/agents/self.weather", undefined, { method: "DELETE" });
    expect([removed.status, removed.json.errorCode]).toEqual([403, "PERMISSION_DENIED"]);
  });

  test("can be probed: one that does not answer is refused", async () => {
    const { url } = await startRegistry();
    const other = await startRegistry({ agents: { translator } });
    const answering = await ask(url, "/registry/agents", { url: other.url, probe: true });
    expect([answering.status, answering.json.registration.probe]).toEqual([201, true]);
    const dead = await startSite((_, response) => response.writeHead(502).end());
    const silent = await ask(url, "/registry/agents", { card: cardAt(dead), probe: true });
    expect([silent.status, silent.json.errorCode]).toEqual([400, "INVALID_ARGUMENT"]);
    expect(silent.json.message).toContain("the agent did not answer");
  });
});

describe("an agent that is registered by its card", () => {
  test("is listed with the card, and with what is wrong with it", async () => {
    const { url } = await startRegistry();
    const { description: _, ...card } = cardAt("https://chess.example.com/a2a");
    const made = await ask(url, "/registry/agents", { card, visibility: "public" });
    expect(made.status).toBe(201);
    expect(made.json).toMatchObject({
      data: card,
      metadata: { source: "inline", health: "unknown", visibility: "public" },
    });
    expect(made.json.url).toBeUndefined();
    expect(made.json.identifier).toBe("urn:air:chess.example.com:a2a:Chess");
    expect(made.json.registration.findings).toEqual([
      { check: "card-members", requirement: "CARD-STRUCT-001", message: "description is missing" },
    ]);
    const again = await ask(url, "/registry/agents", { card });
    expect([again.status, again.json.id]).toEqual([200, made.json.id]);
  });
});

test("a card with the identifier of someone else's agent is refused", async () => {
  const { url } = await startRegistry(TWO_OWNERS);
  const card = cardAt("https://chess.example.com/a2a");
  const first = await ask(url, "/registry/agents", { card, visibility: "public" }, { key: ALICE });
  const self = await ask(url, "/registry/agents/self.weather", undefined, { key: ALICE });
  const taken = { ...cardAt(`${url}/agents/weather`), name: "weather" };
  for (const [forged, { json: real }] of [
    [{ ...card, description: "Cheats." }, first],
    [taken, self],
  ] as const) {
    const reply = await ask(url, "/registry/agents", { card: forged }, { key: BOB });
    expect([reply.status, reply.json.message]).toEqual([400, expect.stringContaining(real.identifier)]);
  }
  expect((await ask(url, "/registry/agents", { card }, { key: ALICE })).status).toBe(200);
});

describe("owners", () => {
  test("see their own agents and public ones; others do not exist for them", async () => {
    const { url } = await startRegistry(TWO_OWNERS);
    const hidden = await ask(url, "/registry/agents", { card: cardAt("https://one.example.com") }, { key: ALICE });
    const shown = await ask(
      url,
      "/registry/agents",
      { card: cardAt("https://two.example.com"), visibility: "public" },
      { key: ALICE },
    );
    const idsOf = async (key: string) => {
      const { json } = await ask(url, "/registry/agents", undefined, { key });
      return json.items.map(({ id }: { id: string }) => id).sort();
    };
    expect(await idsOf(ALICE)).toEqual(["self.weather", hidden.json.id, shown.json.id].sort());
    expect(await idsOf(BOB)).toEqual(["self.weather", shown.json.id].sort());
    const search = await ask(url, "/registry/search", { query: { text: "chess" } }, { key: BOB });
    expect(search.json.results).toHaveLength(1);
    const explored = await ask(url, "/registry/explore", { resultType: { facets: [{ field: "tags" }] } }, { key: BOB });
    expect(explored.json.facets.tags.buckets).toContainEqual({ value: "games", count: 1 });
    const statuses = async (id: string) => {
      const replies = [
        await ask(url, `/registry/agents/${id}`, undefined, { key: BOB }),
        await ask(url, `/registry/agents/${id}/heartbeat`, undefined, { key: BOB, method: "POST" }),
        await ask(url, `/registry/agents/${id}`, undefined, { key: BOB, method: "DELETE" }),
      ];
      return replies.map(({ status }) => status);
    };
    expect(await statuses(hidden.json.id)).toEqual([404, 404, 404]);
    expect(await statuses(shown.json.id)).toEqual([200, 403, 403]);
    const own = await ask(url, "/registry/agents", { card: cardAt("https://one.example.com") }, { key: BOB });
    expect([own.status, own.json.id === hidden.json.id]).toEqual([201, false]);
  });

  test("have to authenticate where tasks need it; the catalog is public and shows the server's agents only", async () => {
    const { url } = await startRegistry(TWO_OWNERS);
    await ask(
      url,
      "/registry/agents",
      { card: cardAt("https://two.example.com"), visibility: "public" },
      { key: ALICE },
    );
    for (const [method, path, body] of [
      ["GET", "/registry/agents", undefined],
      ["POST", "/registry/agents", { card: cardAt("https://x.example.com") }],
      ["POST", "/registry/search", { query: { text: "x" } }],
      ["GET", "/registry/watch", undefined],
    ] as const) {
      const reply = await ask(url, path, body, { method });
      expect([reply.status, reply.json.errorCode]).toEqual([401, "UNAUTHENTICATED"]);
      expect(reply.headers["www-authenticate"]).toBeDefined();
    }
    const { json } = await ask(url, "/.well-known/ai-catalog.json");
    expect(json.entries.map(({ displayName }: { displayName: string }) => displayName).slice(1)).toEqual(["Weather"]);
  });

  test("have a limited number of agents", async () => {
    const { url } = await startRegistry({ registry: { agentsPerOwner: 2 } });
    const register = (at: number) => ask(url, "/registry/agents", { card: cardAt(`https://a${at}.example.com`) });
    expect([(await register(1)).status, (await register(2)).status]).toEqual([201, 201]);
    const third = await register(3);
    expect([third.status, third.json]).toEqual([
      429,
      { errorCode: "RATE_LIMIT_EXCEEDED", message: "You have 2 agents registered, which is the maximum." },
    ]);
    expect((await register(1)).status).toBe(200);
    expect((await ask(url, "/registry/agents")).json.total).toBe(3);
  });
});

describe("a registration is refused, and nothing is registered", () => {
  test.each([
    ["what is not JSON", "{", "body: The text is not valid JSON."],
    ["a list", "[]", "body: must be an object"],
    ["nothing", "{}", "exactly one of url and card"],
    ["text that is not UTF-8", Buffer.from([0x22, 0xff, 0x22]).toString("latin1"), "body"],
    ["a name of a file", { url: "file:///etc/passwd" }, "must be an http or https URL"],
    ["a path", { url: "/etc/passwd" }, "must be an http or https URL"],
    ["another scheme", { url: "gopher://example.com" }, "must be an http or https URL"],
    ["an address of cloud metadata", { url: "http://169.254.169.254/latest/" }, "network that must not be reached"],
    ["the same in another spelling", { url: "http://0xA9FEA9FE/" }, "network that must not be reached"],
    ["a login in the URL", { url: "http://user:pass@example.com/" }, "must not have a user name"],
    ["a card with a blank name", { card: { ...cardAt("https://a.example.com"), name: " " } }, "needs a name"],
    [
      "a card with an invisible name",
      { card: { ...cardAt("https://a.example.com"), name: " \u200b" } },
      "needs a name",
    ],
    ["a card without a name", { card: { ...cardAt("https://a.example.com"), name: undefined } }, "needs a name"],
    [
      "a card with a number as name",
      { card: { ...cardAt("https://a.example.com"), name: 5 } },
      "a name that is a string",
    ],
    [
      "a card with null as name",
      { card: { ...cardAt("https://a.example.com"), name: null } },
      "a name that is a string",
    ],
    ["a name with a control character", { card: cardAt("https://a.example.com", { name: "a\u0007" }) }, "control"],
    ["half a character", { card: cardAt("https://a.example.com", { description: "\ud800" }) }, "not valid Unicode"],
    ["a card without interfaces", { card: { ...cardAt(""), supportedInterfaces: [] } }, "has no interface"],
    ["a card with an empty address", { card: cardAt("") }, "has no interface"],
    ["a card with a file as interface", { card: cardAt("file:///etc/passwd") }, "not at an http URL"],
    ["a card with a script as interface", { card: cardAt("javascript:alert(1)") }, "not at an http URL"],
    ["something else than a card", { card: { hello: "world" } }, "is not an agent card"],
    ["a huge card", { card: cardAt("https://a.example.com", { description: "x".repeat(300_000) }) }, "larger than"],
    ["a huge request", { card: cardAt("https://a.example.com", { description: "x".repeat(600_000) }) }, "larger than"],
    ["a deep card", `{"card":${'{"a":'.repeat(100)}1${"}".repeat(100)}}`, "nested deeper"],
    [
      "a forged signature",
      { card: cardAt("https://a.example.com", { signatures: [{ protected: "e30", signature: "AAAA" }] }) },
      "signature is not valid",
    ],
    ["an id of its own", { card: cardAt("https://a.example.com"), id: "self.weather" }, "id: is not known"],
  ])("%s", async (_, body, reason) => {
    const { url } = await startRegistry();
    const reply = await ask(url, "/registry/agents", body);
    expect([reply.status, reply.json.errorCode]).toEqual([400, "INVALID_ARGUMENT"]);
    expect(reply.json.message).toContain(reason);
    expect((await ask(url, "/registry/agents")).json.total).toBe(1);
  });

  test("an address in a private network, unless that is allowed", async () => {
    const { url } = await startRegistry({ registry: { allowPrivateTargets: false } });
    const site = await startSite((_, response) => response.end(JSON.stringify(cardAt("https://a.example.com"))));
    for (const target of [
      site,
      site.replace("127.0.0.1", "localhost"),
      site.replace("127.0.0.1", "[::ffff:127.0.0.1]"),
    ]) {
      const reply = await ask(url, "/registry/agents", { url: target });
      expect([reply.status, reply.json.errorCode]).toEqual([400, "INVALID_ARGUMENT"]);
      expect(reply.json.message).toContain("in a network that must not be reached");
    }
    const open = await startRegistry({ registry: { allowPrivateTargets: true } });
    expect((await ask(open.url, "/registry/agents", { url: site })).status).toBe(201);
  });

  test("a site whose answers are not cards, too large, redirects inside, or never come", async () => {
    const { url } = await startRegistry();
    const answers: Readonly<Record<string, readonly [number, string]>> = {
      "/html": [200, "<html>"],
      "/large": [200, JSON.stringify({ name: "x".repeat(400_000) })],
      "/missing": [404, ""],
      "/down": [503, ""],
    };
    const site = await startSite(({ url: path = "" }, response) => {
      const key = Object.keys(answers).find((start) => path.startsWith(start));
      if (path.startsWith("/away")) return void response.writeHead(302, { location: "http://169.254.169.254/" }).end();
      const [status, body] = answers[key ?? "/missing"] ?? [404, ""];
      response.writeHead(status).end(body);
    });
    for (const [path, reason] of [
      ["/html", "not valid JSON"],
      ["/large", "larger than allowed"],
      ["/missing", "HTTP 404"],
      ["/down", "HTTP 503"],
      ["/away", "must not be reached"],
    ] as const) {
      const reply = await ask(url, "/registry/agents", { url: site + path });
      expect([path, reply.status, reply.json.errorCode]).toEqual([path, 400, "INVALID_ARGUMENT"]);
      expect(reply.json.message).toContain(reason);
    }
    const nowhere = await ask(url, "/registry/agents", { url: "http://127.0.0.1:1/" });
    expect(nowhere.json.message).toContain("could not be reached");
  });
});

test("signatures are verified with the keys that are trusted", async () => {
  const folder = createFolder();
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const keyFile = join(folder, "key.pem");
  const publicFile = join(folder, "public.json");
  writeFileSync(keyFile, privateKey.export({ type: "pkcs8", format: "pem" }));
  writeFileSync(
    publicFile,
    JSON.stringify({ keys: [{ ...publicKey.export({ format: "jwk" }), kid: "k1", alg: "ES256" }] }),
  );
  const signed = await startRegistry({ agents: { translator }, signing: { keyFile, kid: "k1" } });
  const { json: card } = await ask(signed.url, "/.well-known/agent-card.json", undefined, {
    headers: { "a2a-version": "1.0" },
  });
  const strict = await startRegistry({ registry: { signatures: "require", keyFiles: [publicFile] } });
  const verified = await ask(strict.url, "/registry/agents", { url: signed.url });
  expect([verified.status, verified.json.registration.signature]).toEqual([
    201,
    { status: "verified", kid: "k1", alg: "ES256" },
  ]);
  for (const [body, reason] of [
    [{ card: cardAt("https://a.example.com") }, "It is not signed."],
    [{ card: { ...card, description: "Forged." } }, "The signature by the key k1 does not fit the card."],
  ] as const) {
    const refused = await ask(strict.url, "/registry/agents", body);
    expect([refused.status, refused.json.errorCode]).toEqual([400, "INVALID_ARGUMENT"]);
    expect(refused.json.message).toContain(reason);
  }
  const lenient = await startRegistry();
  const unknown = await ask(lenient.url, "/registry/agents", { url: signed.url });
  expect(unknown.json.registration.signature).toEqual({
    status: "unverifiable",
    reason: "The key k1 is not trusted here.",
  });
});

test("changes are told as events, and a watcher continues after the last one it has seen", async () => {
  const { url } = await startRegistry();
  const watch = async (headers: Readonly<Record<string, string>> = {}) => {
    const reply = await openRequest(url, { path: "/registry/watch", headers });
    expect([reply.status, reply.headers["content-type"]]).toEqual([200, "text/event-stream"]);
    return new EventStreamReader(reply);
  };
  const first = await watch();
  const { json: made } = await ask(url, "/registry/agents", { card: cardAt("https://a.example.com") });
  const registered = await first.next();
  expect(registered?.event).toBe("registered");
  expect(JSON.parse(registered?.data ?? "")).toEqual({
    id: made.id,
    identifier: made.identifier,
    displayName: "Chess",
    health: "unknown",
    at: expect.any(String),
  });
  first.close();
  await ask(url, `/registry/agents/${made.id}`, undefined, { method: "DELETE" });
  const second = await watch({ "last-event-id": registered?.id ?? "" });
  expect(await second.next()).toMatchObject({ event: "removed" });
  second.close();
  const lost = await watch({ "last-event-id": "5" });
  const reset = await lost.next();
  expect(reset?.event).toBe("reset");
  expect(JSON.parse(reset?.data ?? "").message).toContain("List the agents again");
  lost.close();
  const bad = await ask(url, "/registry/watch", undefined, { headers: { "last-event-id": "yesterday" } });
  expect([bad.status, bad.json.errorCode]).toEqual([400, "INVALID_ARGUMENT"]);
});

test("an agent of this server that is not listed cannot be found out by registering it", async () => {
  const { url } = await startRegistry({ registry: { unlisted: ["weather"] } });
  const reply = await ask(url, "/registry/agents", { url: `${url}/agents/weather` });
  expect([reply.status, reply.json]).toEqual([404, { errorCode: "NOT_FOUND", message: "Agent not found." }]);
});

test("a watch ends with the server", async () => {
  const server = await startRegistry();
  const reader = new EventStreamReader(await openRequest(server.url, { path: "/registry/watch" }));
  await server.close();
  expect(await reader.next()).toBeUndefined();
  expect(reader.cut).toBe(false);
});
