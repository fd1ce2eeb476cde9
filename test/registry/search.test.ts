/** What ARD 0.9 asks of a registry (its conformance tool checks the same), search with pages, and peers. */
import { describe, expect, test } from "vitest";
import { freePort } from "../support/lifecycle.ts";
import { ask, cardAt, startRegistry, startSite, translator } from "./support.ts";

type Entry = Readonly<Record<string, unknown>>;

const URN = /^urn:air:[a-zA-Z0-9.-]+(:[a-zA-Z0-9._-]+)+$/;

/** The rules of the schema of AI Catalog for an entry. */
function violationsOf(entry: Entry): readonly string[] {
  const { identifier, displayName, type, representativeQueries, metadata = {} } = entry;
  const isText = (value: unknown) => typeof value === "string";
  const isTexts = (value: unknown) => value === undefined || (Array.isArray(value) && value.every(isText));
  const rules: Readonly<Record<string, boolean>> = {
    identifier: isText(identifier) && URN.test(String(identifier)),
    displayName: isText(displayName) && displayName !== "",
    type: isText(type) && type !== "",
    "url or data": "url" in entry !== "data" in entry,
    tags: isTexts(entry.tags),
    capabilities: isTexts(entry.capabilities),
    representativeQueries:
      representativeQueries === undefined ||
      (isTexts(representativeQueries) && [2, 3, 4, 5].includes((representativeQueries as unknown[]).length)),
    updatedAt: entry.updatedAt === undefined || !Number.isNaN(Date.parse(String(entry.updatedAt))),
    metadata: Object.values(metadata as object).every((value) => value === null || typeof value !== "object"),
  };
  return Object.entries(rules).flatMap(([rule, holds]) => (holds ? [] : [`${String(identifier)}: ${rule}`]));
}

async function fill(url: string, count: number, members: Readonly<Record<string, unknown>> = {}): Promise<void> {
  for (let at = 0; at < count; at++) {
    const card = cardAt(`https://chess${at}.example.com/a2a`, { name: `Chess ${at}`, ...members });
    expect((await ask(url, "/registry/agents", { card })).status).toBe(201);
  }
}

describe("what ARD asks of a registry", () => {
  test("the catalog has valid entries, the registry among them, and an ETag", async () => {
    const { url } = await startRegistry({ agents: { translator, second: translator } });
    await fill(url, 3);
    const reply = await ask(url, "/.well-known/ai-catalog.json");
    expect([reply.status, reply.headers["content-type"]]).toEqual([200, "application/json"]);
    const { specVersion, host, entries, ...rest } = reply.json;
    expect([specVersion, Object.keys(rest)]).toEqual(["1.0", []]);
    expect(host.displayName).toMatch(/./);
    expect(entries.flatMap(violationsOf)).toEqual([]);
    expect(new Set(entries.map(({ identifier }: Entry) => identifier)).size).toBe(6);
    expect(entries[0]).toMatchObject({ type: "application/ai-registry+json", url: `${url}/registry/` });
    expect((await ask(entries[0].url, "agents")).status).toBe(200);
    const { etag = "" } = reply.headers;
    const known = await ask(url, "/.well-known/ai-catalog.json", undefined, { headers: { "if-none-match": etag } });
    expect([known.status, known.text, known.headers.etag]).toEqual([304, "", etag]);
    await fill(url, 1, { name: "Another" });
    const changed = await ask(url, "/.well-known/ai-catalog.json", undefined, { headers: { "if-none-match": etag } });
    expect(changed.status).toBe(200);
  });

  test("lists, searches and facets have the shapes of its OpenAPI document", async () => {
    const { url } = await startRegistry();
    await fill(url, 3);
    const list = await ask(url, "/registry/agents");
    expect(Object.keys(list.json).sort()).toEqual(["items", "total"]);
    expect(list.json.items.flatMap(violationsOf)).toEqual([]);
    const body = { query: { text: "weather forecast tools" }, federation: "none", pageSize: 2 };
    const { json } = await ask(url, "/registry/search", body);
    expect(Object.keys(json)).toEqual(["results"]);
    expect(json.results.flatMap(violationsOf)).toEqual([]);
    for (const { score, source } of json.results) {
      expect(Number.isInteger(score) && score >= 0 && score <= 100).toBe(true);
      expect(URL.canParse(source)).toBe(true);
    }
    const none = { type: ["application/mcp-server-card+json"] };
    const other = await ask(url, "/registry/search", { ...body, query: { text: "weather", filter: none } });
    expect([other.status, other.json]).toEqual([200, { results: [] }]);
    const explored = await ask(url, "/registry/explore", {
      query: { text: "chess" },
      resultType: { facets: [{ field: "type" }, { field: "publisher", limit: 2 }] },
    });
    expect(explored.json).toEqual({
      resultType: "facets",
      facets: {
        type: { buckets: [{ value: "application/a2a-agent-card+json", count: 3 }], otherCount: 0 },
        publisher: {
          buckets: [
            { value: "chess0.example.com", count: 1 },
            { value: "chess1.example.com", count: 1 },
          ],
          otherCount: 1,
        },
      },
    });
  });

  test.each([
    ["POST", "/registry/search", "{", 400],
    ["POST", "/registry/search", { query: {} }, 400],
    ["POST", "/registry/search", { query: { text: "x" }, pageToken: "nonsense" }, 400],
    ["POST", "/registry/search", { query: { text: "x", filter: { colour: "red" } } }, 400],
    ["POST", "/registry/search", '{"query":{"text":"x","filter":{"__proto__":"red"}}}', 400],
    ["POST", "/registry/explore", {}, 400],
    ["GET", "/registry/agents?pageToken=nonsense", undefined, 400],
    ["GET", "/registry/agents?filter=(", undefined, 400],
    ["GET", "/registry/search", undefined, 405],
    ["PUT", "/registry/agents", "{}", 405],
    ["GET", "/registry/nothing", undefined, 404],
    ["GET", "/registry/agents/no%ZZthing", undefined, 404],
  ])("%s %s %j is answered with an error of its form", async (method, path, body, status) => {
    const { url } = await startRegistry();
    const reply = await ask(url, path, body, { method });
    expect([reply.status, Object.keys(reply.json)]).toEqual([status, ["errorCode", "message"]]);
    if (status === 400) expect(reply.json.errorCode).toBe("INVALID_ARGUMENT");
  });

  test("without a registry its paths do not exist", async () => {
    const { url } = await startRegistry({ registry: false });
    const statuses = [
      await ask(url, "/registry/agents"),
      await ask(url, "/registry/search", { query: { text: "x" } }),
      await ask(url, "/.well-known/ai-catalog.json"),
    ].map(({ status }) => status);
    expect(statuses).toEqual([404, 404, 404]);
    const on = await startRegistry();
    expect((await ask(on.url, "/agents/weather/registry/agents")).status).toBe(404);
  });
});

test("pages of a list and of a search show every agent once; a token is good for its own request only", async () => {
  const { url } = await startRegistry();
  await fill(url, 25);
  const listed: string[] = [];
  for (let token = ""; ; ) {
    const { json } = await ask(
      url,
      `/registry/agents?pageSize=7&tag=games&pageToken=${token}`.replace(/&pageToken=$/, ""),
    );
    listed.push(...json.items.map(({ displayName }: Entry) => displayName));
    token = json.pageToken;
    if (token === undefined) break;
  }
  expect(listed).toEqual(Array.from({ length: 25 }, (_, at) => `Chess ${at}`).sort());
  const found = new Set<unknown>();
  let token: string | undefined;
  let count = 0;
  do {
    const body = { query: { text: "plays chess" }, pageSize: 7, ...(token !== undefined && { pageToken: token }) };
    const { json } = await ask(url, "/registry/search", body);
    for (const { identifier } of json.results) found.add(identifier);
    count += json.results.length;
    token = json.pageToken;
    if (token !== undefined) {
      const other = await ask(url, "/registry/search", { query: { text: "plays go" }, pageToken: token });
      expect([other.status, other.json.errorCode]).toEqual([400, "INVALID_ARGUMENT"]);
    }
  } while (token !== undefined);
  expect([found.size, count]).toEqual([25, 25]);
});

test("entries with the same identifier do not hide each other", async () => {
  const { url } = await startRegistry();
  for (const tenant of ["a", "b"]) {
    const [place] = cardAt("https://chess.example.com/a2a").supportedInterfaces;
    const card = { ...cardAt(""), supportedInterfaces: [{ ...place, tenant }] };
    expect((await ask(url, "/registry/agents", { card })).status).toBe(201);
  }
  const { json } = await ask(url, "/registry/search", { query: { text: "chess" } });
  expect(json.results.map(({ identifier }: Entry) => identifier)).toEqual(
    Array(2).fill("urn:air:chess.example.com:a2a:Chess"),
  );
});

describe("peers", () => {
  test("are asked too, each agent is shown once, and those that do not answer are named", async () => {
    const far = await startRegistry({ agents: { translator } });
    await fill(far.url, 12);
    const broken = await startSite((_, response) => response.writeHead(500).end());
    const strange = await startSite((_, response) => response.end('{"results": 5}'));
    const dead = "http://127.0.0.1:1";
    const peers = [`${far.url}/registry`, `${broken}/registry/`, strange, dead];
    const near = await startRegistry({ registry: { peers } });
    await ask(near.url, "/registry/agents", { card: cardAt("https://chess0.example.com/a2a", { name: "Chess 0" }) });
    const search = async (body: object) => (await ask(near.url, "/registry/search", body)).json;
    const first = await search({ query: { text: "chess" }, pageSize: 5 });
    expect(first.unanswered).toEqual([
      { url: `${broken}/registry`, reason: "HTTP 500" },
      { url: strange, reason: "not understood" },
      { url: dead, reason: "unreachable" },
    ]);
    const all = [...first.results];
    for (let { pageToken } = first; pageToken !== undefined; ) {
      const next = await search({ query: { text: "chess" }, pageSize: 5, pageToken });
      all.push(...next.results);
      pageToken = next.pageToken;
    }
    expect(all.map(({ displayName }: Entry) => displayName).sort()).toEqual(
      Array.from({ length: 12 }, (_, at) => `Chess ${at}`).sort(),
    );
    const sources = new Set(all.map(({ source }: Entry) => source));
    expect(sources).toEqual(new Set([`${near.url}/registry`, `${far.url}/registry`]));
    const own = await search({ query: { text: "chess" }, federation: "none" });
    expect([own.results.length, own.unanswered]).toEqual([1, undefined]);
    const referred = await search({ query: { text: "chess" }, federation: "referrals" });
    expect(referred.results).toHaveLength(1);
    expect(referred.referrals).toHaveLength(4);
    expect(referred.referrals[0]).toMatchObject({
      type: "application/ai-registry+json",
      url: `${far.url}/registry/search`,
      identifier: expect.stringMatching(URN),
    });
  });

  test("that ask each other come to an end, and are found through one another", async () => {
    const ports = await Promise.all([1, 2, 3].map(freePort));
    const bases = ports.map((port) => `http://127.0.0.1:${port}`);
    for (const [at, port] of ports.entries()) {
      const peers = [`${bases[(at + 1) % bases.length]}/registry`];
      const agents = at === 2 ? { translator } : undefined;
      await startRegistry({ port, registry: { peers }, ...(agents && { agents }) });
    }
    const reply = await ask(bases[0] ?? "", "/registry/search", { query: { text: "翻译" } });
    expect(reply.json.results).toMatchObject([{ displayName: "翻译专家", source: `${bases[1]}/registry` }]);
    expect(reply.json.unanswered).toBeUndefined();
    const metrics = await Promise.all(bases.map((base) => ask(base, "/metrics")));
    const searches = metrics.map(({ text }) => Number(/^dragoman_registry_searches_total (\d+)$/m.exec(text)?.[1]));
    expect(searches.reduce((sum, count) => sum + count)).toBeLessThanOrEqual(4);
  });

  test("cannot pass their entries off as ours, nor hand out scripts or tokens that are refused later", async () => {
    const entry = (name: string, more: object) => ({
      identifier: `urn:air:peer.example:${name}`,
      displayName: `Weather ${name}`,
      type: "application/a2a-agent-card+json",
      url: `https://peer.example/${name}`,
      score: 90,
      ...more,
    });
    let own = "";
    const peer = await startSite((_, response) => {
      const metadata = { health: "up", signature: "verified", source: "server", visibility: "private", note: { a: 1 } };
      const results = [
        entry("good", { source: own, metadata }),
        entry("script", { url: "javascript:alert(1)" }),
        entry("inline", { url: undefined, data: { name: "x", documentationUrl: " javascript:alert(1)" } }),
      ];
      response.end(
        JSON.stringify({ results, pageToken: "x".repeat(20_000), unanswered: [{ url: "data:x", reason: "" }] }),
      );
    });
    const { url } = await startRegistry({ registry: { peers: [peer] } });
    own = `${url}/registry`;
    const { json } = await ask(url, "/registry/search", { query: { text: "weather" } });
    const [found, ...others] = json.results.filter(({ id }: Entry) => id === undefined);
    expect(others).toEqual([]);
    expect(found).toMatchObject({ displayName: "Weather good", source: peer });
    expect(found.metadata).toEqual({ health: "up" });
    expect(json.pageToken).toBeUndefined();
    expect(json.unanswered).toEqual([{ url: peer, reason: "its page token is too long" }]);
  });

  test("that do not answer in time do not hold the others up", async () => {
    const silent = await startSite(() => {});
    const { url } = await startRegistry({ registry: { peers: [silent] } });
    const reply = await ask(url, "/registry/search", { query: { text: "weather" } });
    expect(reply.json).toMatchObject({
      results: [{ id: "self.weather" }],
      unanswered: [{ url: silent, reason: "timeout" }],
    });
  });
});

test("what is registered and searched is counted", async () => {
  const { url } = await startRegistry();
  await fill(url, 2);
  await ask(url, "/registry/search", { query: { text: "chess" } });
  const { text } = await ask(url, "/metrics");
  expect(text).toContain('dragoman_registry_agents{health="up"} 1\n');
  expect(text).toContain('dragoman_registry_agents{health="unknown"} 2\n');
  expect(text).toContain("dragoman_registry_searches_total 1\n");
});
