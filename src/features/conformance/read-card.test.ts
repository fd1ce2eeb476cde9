import { describe, expect, it } from "vitest";
import { findTargets, readCapabilities } from "./read-card.ts";

const CARD_URL = "https://agent.example/.well-known/agent-card.json";
const named = (documents: readonly unknown[]) =>
  findTargets(documents, CARD_URL).targets.map(({ binding, url, version }) => `${binding} ${version} ${url}`);

describe("targets", () => {
  it("are the interfaces of a 1.0 card, in its order, whatever the patch of their versions", () => {
    const card = {
      supportedInterfaces: [
        { url: "agent.example:443", protocolBinding: "GRPC", protocolVersion: "1.0", tenant: "acme" },
        { url: "https://agent.example/rpc", protocolBinding: "JSONRPC", protocolVersion: "1.0.1" },
        { url: "/rest", protocolBinding: "HTTP+JSON", protocolVersion: "0.3" },
      ],
    };
    const { targets } = findTargets([card], CARD_URL);
    expect(targets).toEqual([
      { binding: "GRPC", version: "1.0", url: "agent.example:443", tenant: "acme" },
      { binding: "JSONRPC", version: "1.0", url: "https://agent.example/rpc", tenant: undefined },
      { binding: "HTTP+JSON", version: "0.3", url: "https://agent.example/rest", tenant: undefined },
    ]);
  });

  it("are the URL and the other interfaces of a 0.3 card, each once", () => {
    const card = {
      protocolVersion: "0.3.0",
      url: "https://agent.example/rpc",
      additionalInterfaces: [
        { url: "https://agent.example/rpc/", transport: "JSONRPC" },
        { url: "https://agent.example/rest", transport: "HTTP+JSON" },
        { url: "http://agent.example:50051", transport: "GRPC" },
      ],
    };
    expect(named([card])).toEqual([
      "JSONRPC 0.3 https://agent.example/rpc",
      "HTTP+JSON 0.3 https://agent.example/rest",
      "GRPC 0.3 http://agent.example:50051",
    ]);
    expect(named([{ ...card, preferredTransport: "HTTP+JSON", additionalInterfaces: [] }])).toEqual([
      "HTTP+JSON 0.3 https://agent.example/rpc",
    ]);
  });

  it("are gathered from several documents, and none twice", () => {
    const entry = { url: "https://agent.example/rpc", protocolBinding: "JSONRPC", protocolVersion: "0.3" };
    const old = { protocolVersion: "0.3.0", url: "https://agent.example/rpc" };
    expect(named([{ supportedInterfaces: [entry] }, old])).toEqual(["JSONRPC 0.3 https://agent.example/rpc"]);
  });

  it("leave out what is not supported, and report it", () => {
    const card = {
      supportedInterfaces: [
        { url: "wss://agent.example", protocolBinding: "https://example.com/websocket/v1", protocolVersion: "1.0" },
        { url: "https://agent.example", protocolBinding: "JSONRPC", protocolVersion: "2.0" },
        "no object",
      ],
    };
    const { targets, unsupported } = findTargets([card, null, "text"], CARD_URL);
    expect(targets).toEqual([]);
    expect(unsupported).toEqual([
      "https://example.com/websocket/v1 1.0 at wss://agent.example",
      "JSONRPC 2.0 at https://agent.example",
    ]);
  });
});

describe("what a card declares", () => {
  it("is read by version", () => {
    const card = {
      capabilities: {
        streaming: true,
        extendedAgentCard: true,
        extensions: [{ uri: "urn:a", required: true }, { uri: "urn:b" }],
      },
      defaultInputModes: ["text/plain"],
      securityRequirements: [{ schemes: { key: { list: [] } } }],
    };
    expect(readCapabilities(card, "1.0")).toEqual({
      streaming: true,
      push: false,
      extendedCard: true,
      inputModes: ["text/plain"],
      requiredExtensions: ["urn:a"],
      optionalExtensions: ["urn:b"],
      authenticated: true,
    });
    expect(readCapabilities({ ...card, supportsAuthenticatedExtendedCard: false }, "0.3").extendedCard).toBe(false);
    expect(readCapabilities({ security: [{ key: [] }] }, "0.3").authenticated).toBe(true);
  });

  it("lets everyone in where one alternative asks for nothing", () => {
    expect(readCapabilities({ securityRequirements: [{ schemes: {} }] }, "1.0").authenticated).toBe(false);
    expect(readCapabilities({ security: [{ key: [] }, {}] }, "0.3").authenticated).toBe(false);
    expect(readCapabilities({}, "1.0").authenticated).toBe(false);
  });
});
