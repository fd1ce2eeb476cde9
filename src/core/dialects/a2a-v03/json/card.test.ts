import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { AgentCard } from "../../../model/card.ts";
import type { JsonObject } from "../../../model/json.ts";
import { cases } from "../../../model/testing/exploring.ts";
import * as arbitrary from "../../suite/arbitraries.ts";
import { fromWireCard, interfaces, toCardDocument, toLegacyCardDocument, toWireCard } from "./card.ts";

const CARD: AgentCard = {
  name: "Echo",
  description: "Says it again.",
  supportedInterfaces: [
    { url: "https://a.example", protocolBinding: "JSONRPC", protocolVersion: "1.0" },
    { url: "https://a.example", protocolBinding: "JSONRPC", protocolVersion: "0.3" },
    { url: "https://a.example/rest", protocolBinding: "HTTP+JSON", protocolVersion: "0.3" },
    { url: "a.example:4001", protocolBinding: "GRPC", protocolVersion: "0.3" },
  ],
  provider: { url: "https://p.example", organization: "P" },
  version: "1",
  documentationUrl: "https://d.example",
  iconUrl: "https://i.example",
  capabilities: {
    streaming: true,
    pushNotifications: false,
    extendedAgentCard: true,
    extensions: [{ uri: "urn:x", required: true, params: { a: 1 } }],
  },
  securitySchemes: {
    key: { apiKeySecurityScheme: { location: "header", name: "X-API-Key" } },
    bearer: { httpAuthSecurityScheme: { scheme: "Bearer", bearerFormat: "JWT" } },
    login: {
      oauth2SecurityScheme: {
        flows: { clientCredentials: { tokenUrl: "https://t.example", scopes: { read: "Reading" } } },
        oauth2MetadataUrl: "https://m.example",
      },
    },
    oidc: { openIdConnectSecurityScheme: { openIdConnectUrl: "https://o.example" } },
    mtls: { mtlsSecurityScheme: { description: "Certificates." } },
  },
  securityRequirements: [{ schemes: { key: { list: [] } } }, { schemes: { login: { list: ["read"] } } }],
  defaultInputModes: ["text/plain", "application/json"],
  defaultOutputModes: ["image/png"],
  skills: [
    {
      id: "s",
      name: "S",
      description: "d",
      tags: ["t"],
      examples: ["e"],
      outputModes: ["*/*"],
      securityRequirements: [{ schemes: { key: { list: [] } } }],
    },
  ],
};

describe("the document of 0.3", () => {
  it("is spelled as 0.3 spells it", () => {
    expect(toWireCard(CARD)).toEqual({
      value: {
        protocolVersion: "0.3.0",
        name: "Echo",
        description: "Says it again.",
        url: "https://a.example",
        preferredTransport: "JSONRPC",
        additionalInterfaces: [
          { url: "https://a.example", transport: "JSONRPC" },
          { url: "https://a.example/rest", transport: "HTTP+JSON" },
          { url: "a.example:4001", transport: "GRPC" },
        ],
        provider: { organization: "P", url: "https://p.example" },
        version: "1",
        documentationUrl: "https://d.example",
        iconUrl: "https://i.example",
        capabilities: {
          streaming: true,
          pushNotifications: false,
          extensions: [{ uri: "urn:x", required: true, params: { a: 1 } }],
        },
        securitySchemes: {
          key: { type: "apiKey", in: "header", name: "X-API-Key" },
          bearer: { type: "http", scheme: "Bearer", bearerFormat: "JWT" },
          login: {
            type: "oauth2",
            flows: { clientCredentials: { tokenUrl: "https://t.example", scopes: { read: "Reading" } } },
            oauth2MetadataUrl: "https://m.example",
          },
          oidc: { type: "openIdConnect", openIdConnectUrl: "https://o.example" },
          mtls: { type: "mutualTLS", description: "Certificates." },
        },
        security: [{ key: [] }, { login: ["read"] }],
        defaultInputModes: ["text/plain", "application/json"],
        defaultOutputModes: ["image/png"],
        skills: [
          {
            id: "s",
            name: "S",
            description: "d",
            tags: ["t"],
            examples: ["e"],
            outputModes: ["*/*"],
            security: [{ key: [] }],
          },
        ],
        supportsAuthenticatedExtendedCard: true,
      },
      losses: [],
    });
    expect(toCardDocument(CARD)).toEqual(toWireCard(CARD).value);
  });

  it("reports what it cannot say, and says it nowhere", () => {
    const flow = { authorizationUrl: "https://a.example", tokenUrl: "https://t.example", scopes: {} };
    const scheme = (flows: JsonObject) => ({ oauth2SecurityScheme: { flows } });
    const { value, losses } = toWireCard({
      ...CARD,
      supportedInterfaces: [
        { url: "https://a.example", protocolBinding: "JSONRPC", protocolVersion: "0.3.0", tenant: "acme" },
      ],
      signatures: [{ protected: "p", signature: "s" }],
      securitySchemes: {
        code: scheme({ authorizationCode: { ...flow, pkceRequired: true } }),
        device: scheme({ deviceCode: { ...flow, deviceAuthorizationUrl: "https://d.example" } }),
        odd: {},
      },
    });
    expect(losses.map(({ kind, path }) => `${kind} ${path}`)).toEqual([
      "dropped card.signatures",
      "dropped card.supportedInterfaces[0].tenant",
      "dropped card.securitySchemes.code.oauth2SecurityScheme.flows.authorizationCode.pkceRequired",
      "dropped card.securitySchemes.device.oauth2SecurityScheme.flows.deviceCode",
      "dropped card.securitySchemes.odd",
    ]);
    expect(value).not.toHaveProperty("signatures");
    expect(value.securitySchemes).toEqual({
      code: { type: "oauth2", flows: { authorizationCode: flow } },
      device: { type: "oauth2", flows: {} },
    });
  });

  it("has an address also where none of 0.3 is offered", () => {
    const { value } = toWireCard({ ...CARD, supportedInterfaces: CARD.supportedInterfaces.slice(0, 1) });
    expect(value).toMatchObject({ url: "https://a.example", preferredTransport: "JSONRPC", additionalInterfaces: [] });
  });
});

describe("the document of 0.2", () => {
  it("has modes for readers of words and of media types", () => {
    expect(toLegacyCardDocument(CARD)).toMatchObject({
      protocolVersion: "0.2.6",
      url: "https://a.example",
      defaultInputModes: ["text/plain", "application/json"],
      skills: [
        {
          id: "s",
          inputModes: ["text", "data", "text/plain", "application/json"],
          outputModes: ["text", "data", "file", "*/*"],
        },
      ],
    });
  });
});

describe("interfaces", () => {
  const place = { base: "https://h/agents/a", rpc: "h:4001", name: "a", isDefault: true };

  it("are all three, and no gRPC where an agent would have to be named", () => {
    const overHttp = [
      { url: "https://h/agents/a", protocolBinding: "JSONRPC", protocolVersion: "0.3" },
      { url: "https://h/agents/a/rest", protocolBinding: "HTTP+JSON", protocolVersion: "0.3" },
    ];
    expect(interfaces(place)).toEqual([
      ...overHttp,
      { url: "h:4001", protocolBinding: "GRPC", protocolVersion: "0.3" },
    ]);
    expect(interfaces({ ...place, isDefault: false })).toEqual(overHttp);
    expect(interfaces({ ...place, rpc: undefined })).toEqual(overHttp);
  });
});

describe("any card", () => {
  it("is read as it was, where nothing is reported as lost", () => {
    let whole = 0;
    fc.assert(
      fc.property(arbitrary.card, (any) => {
        const at = new Map(
          any.supportedInterfaces.map(({ url, protocolBinding }) => [
            `${protocolBinding.toUpperCase()} ${url.replace(/\/+$/, "")}`,
            { url, protocolBinding, protocolVersion: "0.3" },
          ]),
        );
        const card = { ...any, supportedInterfaces: [...at.values()] };
        const { value, losses } = toWireCard(card);
        const read = fromWireCard(JSON.parse(JSON.stringify(value)), undefined);
        if (losses.length > 0) return;
        whole++;
        expect(read?.losses).toEqual([]);
        expect(canonical(read?.value)).toEqual(canonical(card));
      }),
      { numRuns: cases(10_000) },
    );
    expect(whole).toBeGreaterThan(cases(1_000));
  });

  /** Optional text that is empty says nothing. */
  function canonical(card: AgentCard | undefined): unknown {
    return JSON.parse(
      JSON.stringify(card, (name, value) =>
        ["documentationUrl", "iconUrl"].includes(name) && value === "" ? undefined : value,
      ),
    );
  }
});
