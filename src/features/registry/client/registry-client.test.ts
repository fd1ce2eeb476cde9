import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ConnectionError } from "../../../core/client/errors.ts";
import { formatReference, parseReference } from "../../../core/client/reference.ts";
import type { JsonValue } from "../../../core/model/json.ts";
import { createRegistryClient } from "./registry-client.ts";
import { entry, scriptRegistry } from "./testing/scripted-registry.ts";
import { RegistryError } from "./types.ts";

const QUICK = { attempts: 3, baseMs: 1, capMs: 2 };

describe("requests to a registry", () => {
  it("have the paths and bodies of ARD, below /registry of the server", async () => {
    const details = entry("a", { registration: { ttlSeconds: 60 } });
    const { received, url } = await scriptRegistry({
      "POST /registry/search": [200, { results: [{ ...entry("a"), score: 87, source: "http://r" }], pageToken: "p" }],
      "GET /registry/agents": [200, { items: [entry("a")], total: 1 }],
      "GET /registry/agents/a": [200, details],
      "POST /registry/agents": [201, details],
      "POST /registry/agents/a/heartbeat": [200, { id: "a", expiresAt: "2026-11-16T16:00:00.000Z" }],
      "DELETE /registry/agents/a": [204],
    });
    const registry = createRegistryClient(url, { headers: { "X-API-Key": "secret" } });
    const page = await registry.search({ text: "rain", filter: { skill: ["forecast"] }, federation: "none" });
    expect(page).toMatchObject({ results: [{ id: "a", score: 87, source: "http://r" }], pageToken: "p" });
    expect(await registry.listPage({ filter: { tag: ["x", "y"], health: "up" }, pageSize: 5 })).toMatchObject({
      items: [{ id: "a" }],
      total: 1,
    });
    expect(await registry.get("a")).toEqual(details);
    expect(await registry.register({ url: "https://example.com", ttlSeconds: 60 })).toEqual(details);
    expect(await registry.heartbeat("a")).toEqual({ id: "a", expiresAt: "2026-11-16T16:00:00.000Z" });
    expect(await registry.remove("a")).toBeUndefined();
    expect(received.map(({ body, line }) => [line, body])).toEqual([
      ["POST /registry/search", { query: { text: "rain", filter: { skill: ["forecast"] } }, federation: "none" }],
      ["GET /registry/agents?tag=x%2Cy&health=up&pageSize=5", undefined],
      ["GET /registry/agents/a", undefined],
      ["POST /registry/agents", { url: "https://example.com", ttlSeconds: 60 }],
      ["POST /registry/agents/a/heartbeat", {}],
      ["DELETE /registry/agents/a", undefined],
    ]);
    expect(new Set(received.map(({ headers }) => headers["x-api-key"]))).toEqual(new Set(["secret"]));
  });

  it.each(["", "/registry", "/registry/"])("may be given the address with %j", async (path) => {
    const { received, url } = await scriptRegistry({ "GET /registry/agents": [200, { items: [] }] });
    await createRegistryClient(url + path).listPage();
    expect(received.map(({ line }) => line)).toEqual(["GET /registry/agents"]);
  });

  it("reach a registry of others, which is right at its address, and remember where it is", async () => {
    const { received, url } = await scriptRegistry({ "GET /api/agents": [200, { items: [] }] });
    const registry = createRegistryClient(`${url}/api`);
    await registry.listPage();
    await registry.listPage();
    const lines = ["GET /api/registry/agents", "GET /api/agents", "GET /api/agents"];
    expect(received.map(({ line }) => line)).toEqual(lines);
  });

  it("list all pages on demand", async () => {
    const { received, url } = await scriptRegistry({
      "GET /registry/agents": [200, { items: [entry("a")], pageToken: "next" }],
      "GET /registry/agents?pageToken=next": [200, { items: [entry("b")], pageToken: "" }],
    });
    const ids: unknown[] = [];
    for await (const { id } of createRegistryClient(url).list()) ids.push(id);
    expect(ids).toEqual(["a", "b"]);
    expect(received).toHaveLength(2);
  });

  it("are repeated while the registry is not available", async () => {
    const { received, url } = await scriptRegistry({
      "POST /registry/agents/a/heartbeat": [
        [503],
        [429, { errorCode: "RATE_LIMIT_EXCEEDED", message: "." }],
        [200, { id: "a" }],
      ],
    });
    expect(await createRegistryClient(url, { retry: QUICK }).heartbeat("a")).toEqual({ id: "a" });
    expect(received).toHaveLength(3);
  });

  it.each([
    [400, { errorCode: "INVALID_ARGUMENT", message: "The card is broken." }, "INVALID_ARGUMENT", "The card is broken."],
    [404, { errorCode: "NOT_FOUND", message: "Agent not found." }, "NOT_FOUND", "Agent not found."],
    [403, { errorCode: "NEW_CODE", message: "No." }, "PERMISSION_DENIED", "No."],
    [401, undefined, "UNAUTHENTICATED", /answered 401\.$/],
    [500, undefined, "INTERNAL_ERROR", /answered 500\.$/],
    [404, undefined, "NOT_FOUND", /answered 404\. There is no registry at this address\.$/],
    [200, undefined, "INVALID_RESPONSE", /did not answer with a JSON object/],
    [200, { items: [] }, "INVALID_RESPONSE", /not an entry of a catalog/],
  ])("fail with what the registry answers: %i %j", async (status, body, code, message) => {
    const { url } = await scriptRegistry({ "GET /registry/agents/a": [status, body] });
    const error = await createRegistryClient(url, { retry: QUICK })
      .get("a")
      .catch((failed: unknown) => failed);
    expect(error).toBeInstanceOf(RegistryError);
    expect(error).toMatchObject({ code, message: expect.stringMatching(message) });
  });

  it("fail as connections do if no one answers", async () => {
    const registry = createRegistryClient("http://127.0.0.1:9", { retry: { ...QUICK, attempts: 1 } });
    await expect(registry.listPage()).rejects.toSatisfy(ConnectionError.is);
    expect(() => createRegistryClient("ftp://example.com")).toThrow(TypeError);
  });

  it("leave out what is not an entry, whatever the registry sends", async () => {
    let body: JsonValue = null;
    const { url } = await scriptRegistry({
      "GET /registry/agents": (response) => response.end(JSON.stringify(body)),
      "POST /registry/search": (response) => response.end(JSON.stringify(body)),
    });
    const registry = createRegistryClient(url);
    const anything = fc.record({
      items: fc.array(fc.oneof(fc.jsonValue(), fc.constant(entry("a")))),
      results: fc.array(fc.oneof(fc.jsonValue(), fc.constant({ ...entry("a"), score: "9" }))),
      total: fc.jsonValue(),
      pageToken: fc.jsonValue(),
      unanswered: fc.jsonValue(),
    });
    await fc.assert(
      fc.asyncProperty(anything, async (sent) => {
        body = sent as JsonValue;
        for (const { displayName, identifier } of (await registry.listPage()).items) {
          expect([typeof displayName, typeof identifier]).toEqual(["string", "string"]);
        }
        const { results } = await registry.search("x");
        expect(results.every(({ score }) => score === 0)).toBe(true);
      }),
      { numRuns: 50 },
    );
  });
});

describe("watching a registry", () => {
  it("continues after the last event over the next connection, also if there was none yet", async () => {
    const stream =
      (text: string) =>
      (response: Parameters<Extract<Parameters<typeof scriptRegistry>[0][string], (to: never) => void>>[0]) => {
        response.writeHead(200, { "content-type": "text/event-stream" });
        response.end(text);
      };
    const { received, url } = await scriptRegistry({
      "GET /registry/watch": [
        stream(": watching\nid: 7\n\n"),
        [503],
        stream('event: registered\nid: 8\ndata: {"id":"a"}\n\nevent: unheard-of\nid: 9\ndata: {}\n\n'),
        stream('event: reset\nid: 20\ndata: {"oldest":15}\n\n'),
      ],
    });
    const events = createRegistryClient(url).watch({ after: "5" })[Symbol.asyncIterator]();
    expect((await events.next()).value).toEqual({ kind: "registered", id: "a", number: "8", data: { id: "a" } });
    expect((await events.next()).value).toEqual({ kind: "reset", number: "20", data: { oldest: 15 } });
    await events.return?.();
    expect(received.map(({ headers }) => headers["last-event-id"])).toEqual(["5", "7", "7", "9"]);
  });

  it("ends with the signal, and with an error of the registry", async () => {
    const controller = new AbortController();
    const { url } = await scriptRegistry({
      "GET /registry/watch": [
        [400, { errorCode: "INVALID_ARGUMENT", message: "Last-Event-ID must be a number." }],
        (response) => {
          response.writeHead(200, { "content-type": "text/event-stream" });
          response.write(": watching\n\n");
          controller.abort();
        },
      ],
    });
    const registry = createRegistryClient(url);
    const watch = () => registry.watch({ signal: controller.signal })[Symbol.asyncIterator]().next();
    await expect(watch()).rejects.toMatchObject({ code: "INVALID_ARGUMENT" });
    await expect(watch()).rejects.toMatchObject({ name: "ConnectionError", code: "aborted" });
  });
});

describe("finding an agent", () => {
  const withSkill = (id: string, health: string, more = {}) =>
    entry(id, { capabilities: ["write"], metadata: { health }, ...more });

  it("by a skill: healthy ones first, then by id", async () => {
    const items = [withSkill("dead", "dead"), withSkill("c", "up"), withSkill("b", "up"), entry("other")];
    const { received, url } = await scriptRegistry({ "GET /registry/agents": [200, { items }] });
    const found = await createRegistryClient(url).find({ skill: "write" });
    expect(found.map(({ id }) => id)).toEqual(["b", "c", "dead"]);
    expect(received.map(({ line }) => line)).toEqual(["GET /registry/agents?skill=write&pageSize=100"]);
  });

  it("by a skill at the peers, if the registry has no healthy one", async () => {
    const results = [
      { ...withSkill("far", "up"), score: 10, source: "http://peer" },
      { ...withSkill("near", "stale"), score: 90, source: "http://r" },
      { ...withSkill("best", "up"), score: 80, source: "http://peer" },
    ];
    const { url } = await scriptRegistry({
      "GET /registry/agents": [200, { items: [withSkill("near", "stale")] }],
      "POST /registry/search": [200, { results }],
    });
    const found = await createRegistryClient(url).find({ skill: "write" });
    expect(found.map(({ id }) => id)).toEqual(["best", "far", "near"]);
  });

  it("that is held back is refused: another one with the skill is taken, but none with the same name", async () => {
    const held = withSkill("held", "up", { displayName: "Pen", metadata: { health: "up", heldBack: true } });
    const other = withSkill("other", "stale", { displayName: "Pen" });
    const items: JsonValue[] = [held];
    const { url } = await scriptRegistry({
      "GET /registry/agents/held": [200, held],
      "GET /registry/agents": (response) => response.end(JSON.stringify({ items })),
      "POST /registry/search": [200, { results: [] }],
    });
    const registry = createRegistryClient(url);
    const refusal = { code: "UNAVAILABLE", message: expect.stringContaining("Pen (held): The registry holds it back") };
    for (const reference of [{ skill: "write" }, { registered: "held" }, { registered: "Pen" }]) {
      await expect(registry.find(reference)).rejects.toMatchObject(refusal);
    }
    items.push(other);
    expect((await registry.find({ skill: "write" })).map(({ id }) => id)).toEqual(["other"]);
    expect(await registry.find({ registered: "Pen" })).toHaveLength(2);
  });

  it.each([
    ["its id", "x1", ["x1"]],
    ["the name of an agent of the registry's server", "echo", ["self.echo"]],
    ["its display name, in any case", "OUTLINE writer", ["x1", "x2"]],
    ["the end of its identifier", "weather", ["x3"]],
    ["its identifier", "urn:air:example.com:agents:weather", ["x3"]],
    ["a part of its name, which is not enough", "outline", []],
  ])("by %s", async (_what, name, ids) => {
    const all = [
      entry("x1", { displayName: "Outline writer" }),
      entry("x2", { displayName: "Outline Writer" }),
      entry("x3", { identifier: "urn:air:example.com:agents:weather" }),
    ];
    const { url } = await scriptRegistry({
      "GET /registry/agents/x1": [200, all[0]],
      "GET /registry/agents/self.echo": [200, entry("self.echo")],
      "GET /registry/agents": [200, { items: all.slice(0, 2) }],
      "POST /registry/search": [200, { results: all.map((one) => ({ ...one, score: 1, source: "http://r" })) }],
    });
    const found = await createRegistryClient(url).find({ registered: name });
    expect(found.map(({ id }) => id)).toEqual(ids);
  });
});

describe("what may name an agent of a registry", () => {
  it.each(["skill:write", "urn:air:example.com:agents:echo", "echo", "Outline writer", "翻译", "self_1-a"])(
    "is %j",
    (text) => {
      const reference = parseReference(text);
      expect(reference && formatReference(reference)).toBe(text);
    },
  );

  it.each([
    "",
    " ",
    "skill:",
    "skill:a b",
    "localhost",
    "a.example",
    "host:80",
    "./card",
    "/x",
    "C:\\x",
    "a@b",
    "https://a",
  ])("is not %j", (text) => {
    expect(parseReference(text)).toBeUndefined();
  });

  it("is never an address", () => {
    fc.assert(fc.property(fc.webUrl(), (url) => parseReference(url) === undefined));
    fc.assert(fc.property(fc.domain(), (host) => parseReference(host) === undefined));
  });
});
