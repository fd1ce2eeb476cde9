import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cases } from "../../../model/testing/exploring.ts";
import { fromWireCard, readCard } from "./card.ts";

const URL_OF_CARD = "https://h.example/.well-known/agent.json";

function interfacesOf(card: object, cardUrl: string | undefined = URL_OF_CARD) {
  return readCard(card, cardUrl)?.card.supportedInterfaces.map(({ url, protocolBinding, protocolVersion }) => [
    url,
    protocolBinding,
    protocolVersion,
  ]);
}

describe("cards of 0.3 and 0.2", () => {
  it("name the preferred interface first, each once", () => {
    const card = {
      protocolVersion: "0.3.0",
      url: "https://a.example/rest/",
      preferredTransport: "HTTP+JSON",
      additionalInterfaces: [
        { url: "https://a.example/rpc", transport: "JSONRPC" },
        { url: "https://a.example/rest", transport: "http+json" },
        { url: "a.example:50051", transport: "GRPC" },
        { url: "https://a.example/odd" },
        null,
      ],
    };
    expect(interfacesOf(card)).toEqual([
      ["https://a.example/rest/", "HTTP+JSON", "0.3"],
      ["https://a.example/rpc", "JSONRPC", "0.3"],
      ["a.example:50051", "GRPC", "0.3"],
    ]);
  });

  it("of before 0.2.4 mean JSON-RPC at their address", () => {
    expect(interfacesOf({ name: "A", url: "https://a.example/" })).toEqual([["https://a.example/", "JSONRPC", "0.3"]]);
    expect(interfacesOf({ name: "A", url: "/a2a" })).toEqual([["https://h.example/a2a", "JSONRPC", "0.3"]]);
    expect(readCard({ name: "A", url: "/a2a" }, undefined)?.card.supportedInterfaces[0]?.url).toBe("/a2a");
  });

  it.each([
    [{ protocolVersion: "0.3.0" }, true],
    [{ protocolVersion: "0.2.5" }, true],
    [{ protocolVersion: "0.3" }, true],
    [{ protocolVersion: "1.0", preferredTransport: "JSONRPC" }, false],
    [{ protocolVersion: "0.1" }, false],
    [{ preferredTransport: "JSONRPC" }, true],
    [{ additionalInterfaces: [] }, true],
    [{ securitySchemes: {} }, true],
    [{ securitySchemes: null }, false],
    [{ authentication: { schemes: ["Bearer"] } }, false],
    [{}, false],
  ])("are certain by their marks: %j", (marks, certain) => {
    expect(readCard({ name: "A", url: "https://a.example", ...marks }, undefined)?.confidence).toBe(
      certain ? "certain" : "possible",
    );
  });

  it("need an address", () => {
    for (const value of [undefined, null, [], "card", {}, { name: "A" }, { url: "" }, { url: 1 }]) {
      expect(readCard(value, URL_OF_CARD)).toBeUndefined();
    }
  });

  it("may be wrong in everything else", () => {
    expect(
      readCard(
        {
          url: "https://a.example",
          name: 1,
          description: null,
          version: "",
          provider: "P",
          capabilities: { streaming: "yes", extensions: [{ uri: "" }, 1, { uri: "urn:x", required: "no" }] },
          skills: [{ name: "only a name", tags: "t", inputModes: [1] }, {}, null],
          defaultInputModes: "text",
          securitySchemes: [],
          security: {},
        },
        undefined,
      )?.card,
    ).toEqual({
      name: "unnamed agent",
      description: "",
      version: "unknown",
      supportedInterfaces: [{ url: "https://a.example", protocolBinding: "JSONRPC", protocolVersion: "0.3" }],
      capabilities: { extensions: [{ uri: "urn:x" }] },
      defaultInputModes: [],
      defaultOutputModes: [],
      skills: [{ id: "only a name", name: "only a name", description: "", tags: [] }],
    });
  });

  it("may name kinds of parts instead of media types", () => {
    const skill = { id: "s", name: "S", inputModes: ["text", "text/markdown"], outputModes: ["data", "image/png"] };
    const card = {
      url: "https://a.example",
      defaultInputModes: ["text"],
      defaultOutputModes: ["a/b"],
      skills: [skill],
    };
    expect(readCard(card, undefined)?.card).toMatchObject({
      defaultInputModes: ["text/plain"],
      defaultOutputModes: ["a/b"],
      skills: [{ inputModes: ["text/markdown"], outputModes: ["application/json", "image/png"] }],
    });
  });

  it("report what 1.0 has no place for", () => {
    const read = fromWireCard(
      {
        url: "https://a.example",
        capabilities: { stateTransitionHistory: true },
        signatures: [{ protected: "p", signature: "s" }],
        securitySchemes: { odd: { type: "smoke signals" } },
      },
      undefined,
    );
    expect(read?.losses.map(({ kind, path }) => `${kind} ${path}`)).toEqual([
      "dropped card.signatures",
      "dropped card.securitySchemes.odd",
      "dropped card.capabilities.stateTransitionHistory",
    ]);
    expect(read?.value).not.toHaveProperty("signatures");
    expect(read?.value.securitySchemes).toEqual({ odd: {} });
    expect(
      fromWireCard({ url: "https://a.example", capabilities: { stateTransitionHistory: false } }, undefined)?.losses,
    ).toEqual([]);
  });
});

describe("several flows in one scheme", () => {
  const flow = { tokenUrl: "https://t.example", scopes: { read: "Reading" } };
  const card = {
    url: "https://a.example",
    securitySchemes: {
      login: {
        type: "oauth2",
        description: "d",
        flows: { clientCredentials: flow, password: flow, implicit: { scopes: {} } },
      },
      "login-implicit": { type: "apiKey", in: "query", name: "k" },
    },
    security: [{ login: ["read"], "login-implicit": [] }, {}],
    skills: [{ id: "s", name: "S", security: [{ login: [] }] }],
  };

  it("become several schemes, any of which will do", () => {
    const read = readCard(card, undefined)?.card;
    const scheme = (flows: object) => ({ oauth2SecurityScheme: { description: "d", flows } });
    expect(read?.securitySchemes).toEqual({
      login: scheme({ clientCredentials: flow }),
      "login-implicit-": scheme({ implicit: { scopes: {} } }),
      "login-password": scheme({ password: flow }),
      "login-implicit": { apiKeySecurityScheme: { location: "query", name: "k" } },
    });
    const both = (name: string) => ({ schemes: { [name]: { list: ["read"] }, "login-implicit": { list: [] } } });
    expect(read?.securityRequirements).toEqual([
      both("login"),
      both("login-implicit-"),
      both("login-password"),
      { schemes: {} },
    ]);
    expect(read?.skills[0]?.securityRequirements?.map(({ schemes }) => Object.keys(schemes))).toEqual([
      ["login"],
      ["login-implicit-"],
      ["login-password"],
    ]);
  });

  it("do not multiply without bound", () => {
    const flows = { clientCredentials: flow, password: flow, implicit: flow, authorizationCode: flow };
    const names = Array.from({ length: 30 }, (_, at) => `s${at}`);
    const many = {
      url: "https://a.example",
      securitySchemes: Object.fromEntries(names.map((name) => [name, { type: "oauth2", flows }])),
      security: [Object.fromEntries(names.map((name) => [name, []]))],
    };
    expect(readCard(many, undefined)?.card.securityRequirements?.length).toBe(64);
  });
});

describe("anything at all", () => {
  it("is a card or none, and never an exception", () => {
    const names = [
      "url",
      "name",
      "preferredTransport",
      "additionalInterfaces",
      "transport",
      "capabilities",
      "skills",
      "id",
      "securitySchemes",
      "security",
      "type",
      "flows",
      "authorizationCode",
      "scopes",
      "provider",
      "signatures",
      "__proto__",
    ];
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        fc.constantFrom<unknown>("https://a.example", "JSONRPC", "oauth2", "", 0, true, null),
        fc.dictionary(fc.constantFrom(...names), tie("value"), { maxKeys: 6 }),
        fc.array(tie("value"), { maxLength: 3 }),
      ),
    }));
    fc.assert(
      fc.property(value, fc.option(fc.string(), { nil: undefined }), (any, cardUrl) => {
        const read = readCard(JSON.parse(JSON.stringify(any)), cardUrl);
        if (read !== undefined) expect(read.card.supportedInterfaces.length).toBeGreaterThan(0);
      }),
      { numRuns: cases(10_000) },
    );
  });
});
