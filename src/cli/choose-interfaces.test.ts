import { describe, expect, it } from "vitest";
import type { AgentCard } from "../model/card.ts";
import { bindingName, chooseInterfaces } from "./choose-interfaces.ts";

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
  chooseInterfaces(card, { transport, a2aVersion }).map((entry) => `${entry.protocolBinding} ${entry.protocolVersion}`);

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

  it("speak an older version only when asked", () => {
    expect(choose(card, [], "0.3")).toEqual(["JSONRPC 0.3"]);
    expect(() => choose(cardWith(["JSONRPC", "0.3.0"]))).toThrow("--a2a-version 0.3");
    expect(() => choose(card, [], "2.0")).toThrow("not A2A 2.0");
  });

  it("know a card without any", () => {
    expect(() => choose(cardWith())).toThrow("no interface");
  });

  it("understand the usual spellings of a binding", () => {
    expect(["rest", "json-rpc", "grpc", "urn:other"].map(bindingName)).toEqual([
      "HTTP+JSON",
      "JSONRPC",
      "GRPC",
      "urn:other",
    ]);
  });
});
