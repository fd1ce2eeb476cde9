import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { ConnectionError, connect, fetchCard } from "../../../client.ts";
import type { Handler, Recorded } from "../testing/fake-agent.ts";
import { cardOf, sendJson, sendResult, startFakeAgent, task } from "../testing/fake-agent.ts";
import { chooseInterfaces } from "./choose-interface.ts";

const FAST = { attempts: 3, baseMs: 1, capMs: 2 };
const CARD_PATH = "/.well-known/agent-card.json";

/** Unlike the fake agent it serves no card of its own. */
async function startServer(handler: Handler) {
  const requests: Recorded[] = [];
  const server = createServer(({ headers, method = "", url: path = "" }, response) => {
    const request: Recorded = { method, path, headers, body: "", rpc: {} };
    requests.push(request);
    void handler(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

test("a host, a base, a card's own URL and a name without scheme all lead to the card", async () => {
  await using server = await startServer(({ path }, response) => {
    if (path === "/cards/7" || (path.endsWith(CARD_PATH) && !path.startsWith("/cards")))
      sendJson(response, cardOf("http://x.example", { card: { name: path } }));
    else response.writeHead(404).end();
  });
  const nameAt = async (target: string) => (await fetchCard(target)).card.name;
  expect(await nameAt(server.url)).toBe(CARD_PATH);
  expect(await nameAt(`${server.url}/`)).toBe(CARD_PATH);
  expect(await nameAt(server.url.replace("http://", ""))).toBe(CARD_PATH);
  expect(await nameAt(`${server.url}/agents/echo`)).toBe(`/agents/echo${CARD_PATH}`);
  expect(await nameAt(`${server.url}/agents/echo/`)).toBe(`/agents/echo${CARD_PATH}`);
  expect(await nameAt(`${server.url}/agents/echo${CARD_PATH}`)).toBe(`/agents/echo${CARD_PATH}`);
  expect((await fetchCard(`${server.url}/cards/7`)).url).toBe(`${server.url}/cards/7`);
  expect(server.requests.every(({ headers }) => headers["a2a-version"] === "1.0")).toBe(true);
});

test("many agents that are down leave no listeners to warn of", async () => {
  const warn = vi.spyOn(process, "emitWarning");
  const down = Array.from({ length: 30 }, (_, at) => fetchCard(`http://127.0.0.1:2/agents/${at}`, { retry: FAST }));
  const outcomes = await Promise.allSettled(down);
  expect(outcomes.map(({ status }) => status)).toEqual(Array(30).fill("rejected"));
  expect(warn).not.toHaveBeenCalled();
  warn.mockRestore();
});

test("a base without a card is never answered by the card of the whole host", async () => {
  await using server = await startServer(({ path }, response) => {
    if (path === CARD_PATH) sendJson(response, cardOf("http://x.example"));
    else response.writeHead(404).end();
  });
  await expect(fetchCard(`${server.url}/agents/typo`)).rejects.toMatchObject({
    code: "bad-card",
    message: expect.stringContaining(`GET ${server.url}/agents/typo${CARD_PATH} answered 404`),
  });
});

test("a card can be a file or an object", async () => {
  const folder = await mkdtemp(join(tmpdir(), "card-"));
  try {
    const file = join(folder, "agent.json");
    await writeFile(file, JSON.stringify(cardOf("http://x.example")));
    expect((await fetchCard(file)).card.name).toBe("Fake");
    const agent = await connect(file);
    expect(agent.interface.url).toBe("http://x.example/rpc");
    await writeFile(file, "{");
    await expect(fetchCard(file)).rejects.toMatchObject({ code: "bad-card" });
  } finally {
    await rm(folder, { recursive: true });
  }
  await expect(fetchCard("./does-not-exist.json")).rejects.toMatchObject({ code: "bad-card" });
  expect((await connect(cardOf("https://x.example") as never)).card.name).toBe("Fake");
});

test.each(["ftp://host/x", "has space", "", "http://"])("%j names no agent", async (target) => {
  await expect(fetchCard(target)).rejects.toMatchObject({ code: "bad-card" });
});

test.each([
  ["[1,2]", /not an agent card/],
  ["<html>", /not valid JSON/],
  ['{"hello":"world"}', /neither a name nor interfaces/],
])("%s is no card", async (body, message) => {
  await using server = await startServer((_, response) => void response.end(body));
  await expect(fetchCard(server.url)).rejects.toThrow(message);
});

test("refusals of the card keep their meaning; a server that stumbles is asked again", async () => {
  const statuses = [401, 403, 503, 500, 200];
  await using server = await startServer((_, response) => {
    const status = statuses.shift() ?? 500;
    if (status === 200) sendJson(response, cardOf("http://x.example"));
    else response.writeHead(status).end();
  });
  await expect(fetchCard(server.url, { retry: FAST })).rejects.toMatchObject({ code: "UNAUTHENTICATED" });
  await expect(fetchCard(server.url, { retry: FAST })).rejects.toMatchObject({ code: "PERMISSION_DENIED" });
  expect((await fetchCard(server.url, { retry: FAST })).card.name).toBe("Fake");
  await expect(fetchCard(server.url, { retry: FAST })).rejects.toMatchObject({ code: "UNAVAILABLE" });
  expect(server.requests).toHaveLength(8);
});

test("an unreachable host says so after the tries that were allowed", async () => {
  let url = "";
  {
    await using server = await startServer(() => {});
    url = server.url;
  }
  await expect(fetchCard(url, { retry: FAST })).rejects.toMatchObject({
    code: "unreachable",
    message: `Connection refused: ${url}${CARD_PATH}. Check that the agent is running and that the port is right.`,
  });
  await expect(fetchCard(url, { signal: AbortSignal.abort() })).rejects.toMatchObject({ code: "aborted" });
});

test("a card is revalidated by its tag, kept while fresh, and kept apart for other callers", async () => {
  let cacheControl = "no-cache";
  await using server = await startServer(({ headers }, response) => {
    response.setHeader("etag", '"v1"').setHeader("cache-control", cacheControl);
    if (headers["if-none-match"] === '"v1"') response.writeHead(304).end();
    else sendJson(response, cardOf("http://x.example"));
  });
  const first = await fetchCard(server.url);
  cacheControl = "public, max-age=60";
  const second = await fetchCard(server.url);
  const third = await fetchCard(server.url);
  expect(first.etag).toBe('"v1"');
  expect(second.card).toBe(first.card);
  expect(third.card).toBe(first.card);
  expect(server.requests.map(({ headers }) => headers["if-none-match"])).toEqual([undefined, '"v1"']);
  await fetchCard(server.url, { headers: { "X-API-Key": "other" } });
  expect(server.requests).toHaveLength(3);
  await fetchCard(server.url, { fetch: (...given) => globalThis.fetch(...given) });
  expect(server.requests).toHaveLength(4);
});

test("a card that must not be stored is not", async () => {
  await using server = await startServer((_, response) => {
    response.setHeader("etag", '"v1"').setHeader("cache-control", "max-age=60, no-store");
    sendJson(response, cardOf("http://x.example"));
  });
  await fetchCard(server.url);
  await fetchCard(server.url);
  expect(server.requests.map(({ headers }) => headers["if-none-match"])).toEqual([undefined, undefined]);
});

test("a redirected card is read without taking the credentials along", async () => {
  await using other = await startServer((_, response) => sendJson(response, cardOf("http://x.example")));
  await using server = await startServer((_, response) => void response.writeHead(302, { location: other.url }).end());
  await fetchCard(server.url, { headers: { "X-API-Key": "secret", Authorization: "Bearer secret" } });
  expect(other.requests).toHaveLength(1);
  expect(JSON.stringify(other.requests[0]?.headers)).not.toContain("secret");
});

test("endless redirects end", async () => {
  await using server = await startServer(
    ({ path }, response) => void response.writeHead(302, { location: `${path}x` }).end(),
  );
  await expect(fetchCard(server.url, { retry: FAST })).rejects.toThrow(/redirected more than 5 times/);
  expect(server.requests).toHaveLength(6);
});

const entry = (protocolBinding: string, protocolVersion: string, url = "https://x.example") => ({
  url,
  protocolBinding,
  protocolVersion,
});
const cardWith = (...supportedInterfaces: object[]) =>
  cardOf("https://x.example", { card: { supportedInterfaces } }) as never;

test("[CLIENT-IFACE-001] supported interfaces are kept in the card's order; patch numbers do not matter", () => {
  const card = cardWith(
    entry("PIGEON", "1.0", "x.example:443"),
    entry("JSONRPC", "9.3"),
    entry("HTTP+JSON", "1.0.7", "https://x.example/rest"),
    entry("JSONRPC", "1.0", "https://x.example/rpc"),
    entry("JSONRPC", "9.9"),
  );
  const { candidates, passedOver } = chooseInterfaces(card);
  expect(candidates.map((candidate) => candidate.interface)).toEqual([
    { url: "https://x.example/rest", binding: "HTTP+JSON", version: "1.0", dialect: "a2a-v1" },
    { url: "https://x.example/rpc", binding: "JSONRPC", version: "1.0", dialect: "a2a-v1" },
  ]);
  expect(passedOver).toEqual(["PIGEON 1.0", "JSONRPC 9.3"]);
  const forced = chooseInterfaces(card, { binding: "jsonrpc", version: "1.0", dialect: "a2a-v1" });
  expect(forced.candidates.map(({ interface: { url } }) => url)).toEqual(["https://x.example/rpc"]);
});

test("without a usable interface the error names what is offered and what is supported", async () => {
  await expect(connect(cardWith(entry("PIGEON", "1.0"), entry("JSONRPC", "9.3")))).rejects.toThrow(
    /offers PIGEON 1\.0, JSONRPC 9\.3; this client supports JSONRPC 1\.0, HTTP\+JSON 1\.0/,
  );
  const one = cardWith(entry("JSONRPC", "1.0"));
  await expect(connect(one, { binding: "HTTP+JSON" })).rejects.toMatchObject({
    code: "no-interface",
    message: expect.stringContaining("offers JSONRPC 1.0; this client"),
  });
  await expect(connect(one, { version: "0.3" })).rejects.toThrow("nothing matches with the version 0.3");
  await expect(connect(one, { dialect: "esperanto" })).rejects.toThrow(
    /the dialect esperanto\. The dialects are a2a-v1/,
  );
  const unusable = await connect(cardWith(entry("JSONRPC", "1.0", "file:///x"))).catch((error: unknown) => error);
  expect(ConnectionError.is(unusable) && unusable.code).toBe("no-interface");
});

test("a relative URL in a card is read from where the card was", async () => {
  await using server = await startFakeAgent((_, response) => sendResult(response, task()), {
    card: { supportedInterfaces: [entry("JSONRPC", "1.0", "/here")] },
  });
  const notices: string[] = [];
  const agent = await connect(server.url, { onNotice: ({ message }) => notices.push(message) });
  await agent.get("t1");
  expect(server.requests[0]?.path).toBe("/here");
  expect(notices).toEqual([]);
});
