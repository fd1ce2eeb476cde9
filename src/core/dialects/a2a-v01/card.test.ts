import { describe, expect, it } from "vitest";
import type { AgentCard } from "../../model/card.ts";
import { readCard, toCardDocument } from "./card.ts";

const CARD: AgentCard = {
  name: "Outline",
  description: "Makes outlines.",
  version: "2.1.0",
  supportedInterfaces: [
    { url: "agent.example:4001", protocolBinding: "GRPC", protocolVersion: "1.0" },
    { url: "https://agent.example/agents/outline", protocolBinding: "JSONRPC", protocolVersion: "1.0" },
  ],
  provider: { organization: "Example", url: "https://example.com" },
  documentationUrl: "https://example.com/docs",
  capabilities: { streaming: true, pushNotifications: false, extendedAgentCard: true },
  securitySchemes: {
    key: { apiKeySecurityScheme: { location: "header", name: "X-Key" } },
    token: { httpAuthSecurityScheme: { scheme: "Bearer" } },
    login: { httpAuthSecurityScheme: { scheme: "basic" } },
    google: { oauth2SecurityScheme: { flows: {} } },
    other: { openIdConnectSecurityScheme: { openIdConnectUrl: "https://id.example" } },
  },
  securityRequirements: [{ schemes: { key: { list: [] } } }],
  defaultInputModes: ["text/plain"],
  defaultOutputModes: ["application/json"],
  skills: [
    { id: "outline", name: "Outline", description: "…", tags: ["writing"], examples: ["On tea"] },
    { id: "scan", name: "Scan", description: "", tags: [], inputModes: ["image/png", "*/*"], outputModes: ["text"] },
  ],
};

describe("the card of 0.1", () => {
  it("has what readers of 0.1 look for, and no null", () => {
    const document = toCardDocument(CARD);
    expect(JSON.parse(JSON.stringify(document))).toStrictEqual({
      name: "Outline",
      description: "Makes outlines.",
      url: "https://agent.example/agents/outline",
      provider: { organization: "Example", url: "https://example.com" },
      version: "2.1.0",
      documentationUrl: "https://example.com/docs",
      capabilities: { streaming: true, pushNotifications: false },
      authentication: { schemes: ["apiKey", "bearer", "basic", "oauth2"] },
      defaultInputModes: ["text/plain"],
      defaultOutputModes: ["application/json"],
      skills: [
        {
          id: "outline",
          name: "Outline",
          description: "…",
          tags: ["writing"],
          examples: ["On tea"],
          inputModes: ["text", "text/plain"],
          outputModes: ["data", "application/json"],
        },
        {
          id: "scan",
          name: "Scan",
          description: "",
          tags: [],
          inputModes: ["file", "text", "data", "image/png", "*/*"],
          outputModes: ["text"],
        },
      ],
    });
    expect(JSON.stringify(document)).not.toContain("null");
    expect(toCardDocument(CARD)).toBe(document);
  });

  it("says nothing of authentication where there is none", () => {
    const { securitySchemes: _schemes, ...open } = CARD;
    expect(toCardDocument(open).authentication).toBeUndefined();
  });
});

describe("other people's cards", () => {
  it("are read with all they say", () => {
    const read = readCard(toCardDocument(CARD), undefined);
    expect(read?.confidence).toBe("likely");
    expect(read?.card).toEqual({
      name: "Outline",
      description: "Makes outlines.",
      supportedInterfaces: [
        { url: "https://agent.example/agents/outline", protocolBinding: "JSONRPC", protocolVersion: "0.1" },
      ],
      provider: { organization: "Example", url: "https://example.com" },
      version: "2.1.0",
      documentationUrl: "https://example.com/docs",
      capabilities: { streaming: true, pushNotifications: false },
      securitySchemes: {
        apiKey: { apiKeySecurityScheme: { location: "header", name: "X-API-Key" } },
        bearer: { httpAuthSecurityScheme: { scheme: "Bearer" } },
        basic: { httpAuthSecurityScheme: { scheme: "Basic" } },
        oauth2: { httpAuthSecurityScheme: { scheme: "Bearer" } },
      },
      securityRequirements: ["apiKey", "bearer", "basic", "oauth2"].map((scheme) => ({
        schemes: { [scheme]: { list: [] } },
      })),
      defaultInputModes: ["text/plain"],
      defaultOutputModes: ["application/json"],
      skills: [
        {
          id: "outline",
          name: "Outline",
          description: "…",
          tags: ["writing"],
          examples: ["On tea"],
          inputModes: ["text/plain"],
          outputModes: ["application/json"],
        },
        {
          id: "scan",
          name: "Scan",
          description: "",
          tags: [],
          inputModes: ["image/png", "*/*"],
          outputModes: ["text/plain"],
        },
      ],
    });
  });

  it("may have nothing but a name and an address", () => {
    const { card, confidence } = readCard({ name: "x", url: "https://x.example" }, undefined) ?? {};
    expect(confidence).toBe("possible");
    expect(card).toEqual({
      name: "x",
      description: "",
      version: "unknown",
      supportedInterfaces: [{ url: "https://x.example", protocolBinding: "JSONRPC", protocolVersion: "0.1" }],
      capabilities: { streaming: false, pushNotifications: false },
      defaultInputModes: ["text/plain"],
      defaultOutputModes: ["text/plain"],
      skills: [],
    });
  });

  it.each([
    ["/a2a", "https://x.example/base/.well-known/agent.json", "https://x.example/a2a"],
    [undefined, "https://x.example/base/.well-known/agent.json", "https://x.example/base"],
    [null, "https://x.example/.well-known/agent.json", "https://x.example"],
    [undefined, undefined, undefined],
    [undefined, "https://x.example/card.json", undefined],
    ["not a url", undefined, undefined],
  ])("with the url %j, found at %j, are called at %j", (url, cardUrl, expected) => {
    expect(readCard({ name: "x", url }, cardUrl)?.card.supportedInterfaces[0]?.url).toBe(expected);
  });

  it("may be wrong in everything else", () => {
    const wrong = {
      name: 5,
      url: "https://x.example",
      description: null,
      version: {},
      provider: { organization: "" },
      capabilities: "all",
      authentication: { schemes: [null, "", "Odd", "__proto__"] },
      defaultInputModes: "text",
      skills: [null, {}, { name: "only" }, { id: "a", tags: [1, "b"], inputModes: [], outputModes: ["text", 1] }],
    };
    const { card } = readCard(wrong, undefined) ?? {};
    expect(card).toMatchObject({
      name: "unnamed agent",
      version: "unknown",
      securitySchemes: { Odd: { httpAuthSecurityScheme: { scheme: "Odd" } } },
      skills: [
        { id: "only", name: "only", description: "", tags: [] },
        { id: "a", name: "a", tags: ["b"], outputModes: ["text/plain"] },
      ],
    });
    expect(card?.provider).toBeUndefined();
  });

  it.each([null, 5, "card", [], {}, { skills: [] }])("are not %j", (value) => {
    expect(readCard(value, undefined)).toBeUndefined();
  });
});
