import { expect, test } from "vitest";
import { can } from "../dialects/a2a-v1/index.ts";
import type { CardReader, Dialect } from "../dialects/contract.ts";
import type { AgentCard } from "../model/card.ts";
import { callableDialects, findBinding, offersDialect, readCard, readCardFor, supportedBindings } from "./dialects.ts";

function cardOf(name: string, ...urls: readonly string[]): AgentCard {
  return {
    name,
    description: "",
    version: "1",
    supportedInterfaces: urls.map((url) => ({ url, protocolBinding: name.toUpperCase(), protocolVersion: "1.0" })),
    capabilities: {},
    defaultInputModes: [],
    defaultOutputModes: [],
    skills: [],
  };
}

function dialectOf(name: string, readCard: CardReader): Dialect {
  return { name, can, losses: [], serving: {}, calling: [], readCard };
}

const reads = (card: AgentCard, certain: boolean): Dialect =>
  dialectOf(card.name, () => ({ card, confidence: certain ? "certain" : "possible" }));
const refuses = dialectOf("none", () => undefined);
const urls = (card: AgentCard | undefined) => card?.supportedInterfaces.map(({ url }) => url);

test("the first dialect that is certain has the card; what others are certain of comes after it", () => {
  const guess = reads(cardOf("guess", "g"), false);
  const one = reads(cardOf("one", "a"), true);
  const two = reads(cardOf("two", "b"), true);
  const card = readCard({}, undefined, [guess, refuses, one, two]);
  expect(card?.name).toBe("one");
  expect(urls(card)).toEqual(["a", "b"]);
});

test("an interface is the same whatever the patch number, the case of its binding and a slash at the end", () => {
  const entry = { url: "https://x.example/", protocolBinding: "JSONRPC", protocolVersion: "0.3.0", tenant: "t" };
  const again = { url: "https://x.example", protocolBinding: "jsonrpc", protocolVersion: "0.3" };
  const other = { url: "https://x.example", protocolBinding: "JSONRPC", protocolVersion: "1.0" };
  const first = { ...cardOf("one"), supportedInterfaces: [entry] };
  const second = { ...cardOf("two"), supportedInterfaces: [again, other, other] };
  expect(readCard({}, undefined, [reads(first, true), reads(second, true)])?.supportedInterfaces).toEqual([
    entry,
    other,
  ]);
  expect(readCard({}, undefined, [reads(first, true), refuses])).toBe(first);
});

test("where none is certain all interfaces are kept, in the order of the dialects", () => {
  const empty = reads(cardOf("empty"), false);
  const card = readCard({}, undefined, [empty, reads(cardOf("one", "a"), false), reads(cardOf("two", "b"), false)]);
  expect(card?.name).toBe("one");
  expect(urls(card)).toEqual(["a", "b"]);
  expect(readCard({}, undefined, [empty])?.name).toBe("empty");
  expect(readCard({}, undefined, [refuses])).toBeUndefined();
});

test("readers get the URL of the card", () => {
  const seen: unknown[] = [];
  readCard({ a: 1 }, "https://x.example", [dialectOf("one", (...given) => void seen.push(given))]);
  expect(seen).toEqual([[{ a: 1 }, "https://x.example"]]);
});

test("these dialects and bindings are supported, best first", () => {
  expect(callableDialects().map(({ name }) => name)).toEqual([
    "a2a-v1",
    "a2a-v03",
    "a2a-v01",
    "tasks-rest",
    "xiaoyi-http",
  ]);
  expect(supportedBindings().map(({ calling }) => `${calling.binding} ${calling.version}`)).toEqual([
    "JSONRPC 1.0",
    "HTTP+JSON 1.0",
    "GRPC 1.0",
    "JSONRPC 0.3",
    "HTTP+JSON 0.3",
    "GRPC 0.3",
    "JSONRPC 0.1",
    "urn:dragoman:binding:tasks-rest 1",
    "urn:dragoman:binding:xiaoyi-http 1.0",
  ]);
  expect(findBinding("grpc", "1.0.4")?.dialect.name).toBe("a2a-v1");
  expect(findBinding("JSONRPC", "0.3.0")?.dialect.name).toBe("a2a-v03");
  expect(findBinding("JSONRPC", "2.0")).toBeUndefined();
});

test("a card that speaks 1.0 and 0.3 at once is one card with each interface once", () => {
  const url = "https://x.example";
  const hybrid = {
    ...cardOf("Hybrid"),
    supportedInterfaces: [
      { url, protocolBinding: "JSONRPC", protocolVersion: "1.0" },
      { url, protocolBinding: "JSONRPC", protocolVersion: "0.3" },
    ],
    protocolVersion: "0.3.0",
    url,
    preferredTransport: "JSONRPC",
    additionalInterfaces: [
      { url, transport: "JSONRPC" },
      { url: `${url}/rest`, transport: "HTTP+JSON" },
    ],
  };
  expect(readCard(hybrid)?.supportedInterfaces).toEqual([
    { url, protocolBinding: "JSONRPC", protocolVersion: "1.0" },
    { url, protocolBinding: "JSONRPC", protocolVersion: "0.3" },
    { url: `${url}/rest`, protocolBinding: "HTTP+JSON", protocolVersion: "0.3" },
  ]);
});

test("a required dialect reads a card as its own although another is certain of it", () => {
  const card = { name: "X", url: "https://x.example", protocolVersion: "0.3.0", skills: [] };
  const versions = (wish: object) =>
    readCardFor(card, undefined, wish)?.supportedInterfaces.map((e) => e.protocolVersion);
  expect(versions({})).toEqual(["0.3"]);
  expect(versions({ version: "0.3" })).toEqual(["0.3"]);
  expect(versions({ version: "0.1" })).toEqual(["0.3", "0.1"]);
  expect(versions({ dialect: "tasks-rest" })).toEqual(["0.3", "1"]);
  expect(versions({ dialect: "a2a-v1" })).toEqual(["0.3"]);
  expect(versions({ dialect: "unheard-of" })).toEqual(["0.3"]);
  const read = readCard(card) as AgentCard;
  expect([
    offersDialect(read, {}),
    offersDialect(read, { version: "0.3.1" }),
    offersDialect(read, { version: "1.0" }),
  ]).toEqual([true, true, false]);
  expect([offersDialect(read, { dialect: "a2a-v03" }), offersDialect(read, { dialect: "a2a-v1" })]).toEqual([
    true,
    false,
  ]);
});
