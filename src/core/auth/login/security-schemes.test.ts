import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readCard } from "../../dialects/a2a-v03/json/card.ts";
import type { AgentCard, SecurityRequirement } from "../../model/card.ts";
import type { JsonObject } from "../../model/json.ts";
import {
  acceptedSchemeSets,
  allowsAnonymous,
  chooseLogin,
  chooseStoredSchemes,
  readScheme,
} from "./security-schemes.ts";

const TOKEN = "https://id.example.com/token";
const flow = (flows: JsonObject, more: JsonObject = {}): JsonObject => ({ oauth2SecurityScheme: { flows, ...more } });
const key = (location: string, name: string): JsonObject => ({ apiKeySecurityScheme: { location, name } });

function cardWith(
  securitySchemes: Record<string, JsonObject>,
  required?: readonly (readonly string[])[],
  scopes: readonly string[] = [],
): AgentCard {
  const toRequirement = (names: readonly string[]): SecurityRequirement => ({
    schemes: Object.fromEntries(names.map((name) => [name, { list: scopes }])),
  });
  return {
    name: "Agent",
    description: "",
    version: "1",
    supportedInterfaces: [],
    capabilities: {},
    defaultInputModes: [],
    defaultOutputModes: [],
    skills: [],
    securitySchemes,
    ...(required === undefined ? {} : { securityRequirements: required.map(toRequirement) }),
  };
}

describe("a scheme of a card", () => {
  it.each([
    [key("header", "X-Key"), { kind: "api-key", location: "header", parameter: "X-Key" }],
    [key("query", "k&y"), { kind: "api-key", location: "query", parameter: "k&y" }],
    [key("COOKIE", "sid"), { kind: "api-key", location: "cookie", parameter: "sid" }],
    [{ httpAuthSecurityScheme: { scheme: "Bearer" } }, { kind: "bearer" }],
    [{ httpAuthSecurityScheme: { scheme: "basic" } }, { kind: "basic" }],
    [
      flow({ clientCredentials: { tokenUrl: TOKEN, scopes: { a: "", b: "" } } }),
      { kind: "oauth2", grant: "client-credentials", tokenUrl: TOKEN, scopes: ["a", "b"] },
    ],
    [
      flow({ deviceCode: { tokenUrl: TOKEN, deviceAuthorizationUrl: "https://id.example.com/device", scopes: {} } }),
      {
        kind: "oauth2",
        grant: "device-code",
        tokenUrl: TOKEN,
        deviceAuthorizationUrl: "https://id.example.com/device",
        scopes: [],
      },
    ],
    [
      flow({}, { oauth2MetadataUrl: "https://id.example.com/.well-known/oauth-authorization-server" }),
      {
        kind: "oauth2",
        grant: "authorization-code",
        scopes: [],
        metadataUrl: "https://id.example.com/.well-known/oauth-authorization-server",
      },
    ],
    [
      { openIdConnectSecurityScheme: { openIdConnectUrl: "https://id.example.com/.well-known/openid-configuration" } },
      { kind: "openid", discoveryUrl: "https://id.example.com/.well-known/openid-configuration" },
    ],
  ])("is read: %j", (scheme, expected) => {
    expect(readScheme(scheme)).toEqual(expected);
  });

  it.each([
    [key("header", "Host"), "Host"],
    [key("header", "a b"), "a b"],
    [key("cookie", "a;b"), "a;b"],
    [key("body", "k"), "body"],
    [{ apiKeySecurityScheme: {} }, "does not name the key"],
    [{ httpAuthSecurityScheme: { scheme: "digest" } }, "digest"],
    [flow({ password: { tokenUrl: TOKEN } }), "password"],
    [flow({ implicit: { authorizationUrl: TOKEN } }), "implicit"],
    [flow({ clientCredentials: { tokenUrl: "file:///etc/passwd" } }), "no token URL"],
    [{ openIdConnectSecurityScheme: { openIdConnectUrl: "javascript:alert(1)" } }, "no OpenID provider"],
    [{ mtlsSecurityScheme: {} }, "certificate"],
    [{}, "unknown"],
  ])("is not used: %j", (scheme, reason) => {
    expect(readScheme(scheme)).toEqual({ kind: "unsupported", reason: expect.stringContaining(reason) });
  });

  it("may be anything without harm", () => {
    const members = fc.constantFrom(
      "apiKeySecurityScheme",
      "httpAuthSecurityScheme",
      "oauth2SecurityScheme",
      "openIdConnectSecurityScheme",
      "flows",
      "authorizationCode",
      "tokenUrl",
      "name",
      "location",
      "__proto__",
    );
    const { tree } = fc.letrec((tie) => ({
      tree: fc.oneof({ depthSize: "small" }, fc.string(), fc.constant(null), fc.array(tie("tree")), tie("object")),
      object: fc.dictionary(members, tie("tree")),
    }));
    fc.assert(
      fc.property(fc.dictionary(members, tree), (scheme) => {
        const read = readScheme(scheme as JsonObject);
        if (read.kind === "api-key" && read.location !== "query") expect(read.parameter).toMatch(/^[^\s;:]+$/);
        if (read.kind === "oauth2") expect(read.tokenUrl ?? read.metadataUrl).toMatch(/^https?:/i);
      }),
    );
  });
});

describe("the way into an agent", () => {
  const schemes = {
    certificate: { mtlsSecurityScheme: {} },
    key: key("header", "X-Key"),
    id: { openIdConnectSecurityScheme: { openIdConnectUrl: "https://id.example.com" } },
    job: flow({ clientCredentials: { tokenUrl: TOKEN } }),
  };
  const names = (card: AgentCard, wish?: Parameters<typeof chooseLogin>[1]) =>
    chooseLogin(card, wish).map(({ name }) => name);

  it("is the first the card accepts that can be used", () => {
    expect(names(cardWith(schemes, [["certificate"], ["key", "id"], ["job"]]))).toEqual(["key", "id"]);
    expect(names(cardWith(schemes, [["certificate", "key"], ["job"]]))).toEqual(["job"]);
    expect(names(cardWith(schemes))).toEqual(["key"]);
  });

  it("asks for the scopes the card requires", () => {
    expect(chooseLogin(cardWith(schemes, [["job"]], ["read", "write"]))[0]?.scopes).toEqual(["read", "write"]);
  });

  it("follows what the caller names, wants or already has", () => {
    const card = cardWith(schemes, [["key"], ["job"], ["id"]]);
    expect(names(card, { scheme: "id" })).toEqual(["id"]);
    expect(names(card, { grant: "client-credentials" })).toEqual(["job"]);
    expect(names(card, { grant: "device-code" })).toEqual(["id"]);
    expect(names(card, { prepared: ["oauth2", "openid"] })).toEqual(["job"]);
    expect(names(cardWith(schemes, [["key"]]), { scheme: "job" })).toEqual(["job"]);
  });

  it("may not exist, and then the error gives the reason", () => {
    expect(() => chooseLogin(cardWith({}))).toThrow(/requires no credentials/);
    expect(() => chooseLogin(cardWith(schemes, [["certificate"], ["gone"]]))).toThrow(
      /certificate: it requires a client certificate; gone: the card does not describe it/,
    );
    expect(() => chooseLogin(cardWith(schemes), { scheme: "other" })).toThrow(
      /no security scheme other; it has certificate, key/,
    );
    expect(() => chooseLogin(cardWith(schemes), { scheme: "job", grant: "device-code" })).toThrow(
      /its flow is client-credentials/,
    );
  });

  it("is found on a card of 0.3, where one scheme may have several flows", () => {
    const flows = {
      authorizationCode: { authorizationUrl: "https://id.example.com/auth", tokenUrl: TOKEN, scopes: { a: "" } },
      clientCredentials: { tokenUrl: TOKEN, scopes: { a: "" } },
    };
    const old = {
      protocolVersion: "0.3.0",
      name: "Old",
      description: "",
      version: "1",
      url: "https://agent.example.com",
      capabilities: {},
      defaultInputModes: [],
      defaultOutputModes: [],
      skills: [],
      securitySchemes: { sso: { type: "oauth2", flows }, key: { type: "apiKey", in: "cookie", name: "sid" } },
      security: [{ sso: ["a"] }, { key: [] }],
    };
    const { card } = readCard(old, undefined) ?? {};
    if (card === undefined) throw new Error("The card was not read.");
    expect(chooseLogin(card)).toMatchObject([{ name: "sso", scheme: { grant: "authorization-code" }, scopes: ["a"] }]);
    expect(chooseLogin(card, { grant: "client-credentials" })).toMatchObject([
      { name: "sso-clientCredentials", scheme: { tokenUrl: TOKEN }, scopes: ["a"] },
    ]);
    expect(chooseLogin(card, { prepared: ["api-key"] })).toMatchObject([
      { scheme: { location: "cookie", parameter: "sid" } },
    ]);
  });

  it("may be none at all for those who say nothing", () => {
    expect([
      allowsAnonymous(cardWith(schemes)),
      allowsAnonymous(cardWith(schemes, [["key"]])),
      allowsAnonymous(cardWith(schemes, [["key"], []])),
    ]).toEqual([true, false, true]);
    expect(acceptedSchemeSets(cardWith(schemes, [[], ["key"]])).map((way) => way.map(({ name }) => name))).toEqual([
      ["key"],
    ]);
  });

  it("can be taken with what is known: a whole way if there is one, else what the card describes", () => {
    const card = cardWith(schemes, [["key", "id"], ["job"]]);
    expect(chooseStoredSchemes(card, new Set(["id", "key"]))).toEqual(["key", "id"]);
    expect(chooseStoredSchemes(card, new Set(["job", "key"]))).toEqual(["job"]);
    expect(chooseStoredSchemes(card, new Set(["id", "elsewhere"]))).toEqual(["id"]);
    expect(chooseStoredSchemes(cardWith({}), new Set(["id"]))).toEqual([]);
  });
});
