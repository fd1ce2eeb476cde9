import { describe, expect, it } from "vitest";
import type { AgentCard, AgentInterface } from "../../model/card.ts";
import { canonicalBinding, chooseInterfaces } from "./choose-interfaces.ts";

function cardWith(...interfaces: readonly (readonly [binding: string, version: string])[]): AgentCard {
  return {
    name: "Agent",
    description: "",
    version: "1",
    supportedInterfaces: interfaces.map(([protocolBinding, protocolVersion]) => ({
      url: "http://agent.example",
      protocolBinding,
      protocolVersion,
    })),
    capabilities: {},
    defaultInputModes: [],
    defaultOutputModes: [],
    skills: [],
  };
}

const choose = (card: AgentCard, transport: readonly string[] = [], a2aVersion?: string): string[] =>
  chooseInterfaces(card, { transport, a2aVersion }).map(inWords);
const inWords = (entry: AgentInterface): string => `${entry.protocolBinding} ${entry.protocolVersion}`;

describe("interfaces", () => {
  const card = cardWith(["GRPC", "1.0"], ["JSONRPC", "1.0"], ["HTTP+JSON", "1.0"], ["JSONRPC", "0.3"]);

  it("keep the card's order, and leave out what is older than 1.0", () => {
    expect(choose(card)).toEqual(["GRPC 1.0", "JSONRPC 1.0", "HTTP+JSON 1.0"]);
  });

  it("put the user's bindings first, in the user's order, and skip those the card lacks", () => {
    expect(choose(card, ["carrier-pigeon", "http+json", "jsonrpc"])).toEqual([
      "HTTP+JSON 1.0",
      "JSONRPC 1.0",
      "GRPC 1.0",
    ]);
  });

  it("speak an older version when asked, and no other then", () => {
    expect(choose(card, [], "0.3")).toEqual(["JSONRPC 0.3"]);
    expect(choose(cardWith(["JSONRPC", "0.3.0"]), [], "0.3")).toEqual(["JSONRPC 0.3.0"]);
    expect(() => choose(cardWith(["JSONRPC", "0.3.0"]), [], "1.0")).toThrow("offers only 0.3, not A2A 1.0");
    expect(() => choose(card, [], "2.0")).toThrow("not A2A 2.0");
  });

  it("[A2ACLI_VER_001] use nothing older than 1.0 by themselves, and name the flags that do", () => {
    const old = cardWith(["JSONRPC", "0.3"], ["GRPC", "0.3.0"], ["JSONRPC", "0.1"], ["urn:x:binding:own", "1"]);
    expect(() => choose(old)).toThrow(
      "offers only 0.3, 0.1, nothing of A2A 1.0 or later. What is older is used on request only: add --a2a-version 0.3 or --a2a-version 0.1.",
    );
    expect(choose(old, ["grpc"], "0.3")).toEqual(["GRPC 0.3.0", "JSONRPC 0.3"]);
    expect(() => choose(old, [], "1.0")).toThrow("not A2A 1.0. What is older is used on request only");
    expect(() => choose(cardWith(["urn:dragoman:binding:xiaoyi-http", "1.0"]))).toThrow("add --dialect xiaoyi-http");
    expect(choose(cardWith(["urn:x:binding:own", "1"]))).toEqual(["urn:x:binding:own 1"]);
  });

  it("leave the version to a dialect that is asked for", () => {
    expect(chooseInterfaces(card, { transport: [], a2aVersion: undefined, dialect: "a2a-v03" })).toHaveLength(4);
  });

  it("know a card without any", () => {
    expect(() => choose(cardWith())).toThrow("no interface");
  });

  it("understand the usual spellings of a binding", () => {
    expect(["rest", "json-rpc", "grpc", "urn:other"].map(canonicalBinding)).toEqual([
      "HTTP+JSON",
      "JSONRPC",
      "GRPC",
      "urn:other",
    ]);
  });
});
