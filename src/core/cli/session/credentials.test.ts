import { describe, expect, it } from "vitest";
import type { AgentCard } from "../../model/card.ts";
import type { JsonObject } from "../../model/json.ts";
import { attachCredentials, credentialHint, fetchWithQuery } from "./credentials.ts";

function cardWith(securitySchemes: Record<string, JsonObject>, required: readonly string[] = []): AgentCard {
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
    securityRequirements: required.map((name) => ({ schemes: { [name]: { list: [] } } })),
  };
}

const key = (location: string, name: string): JsonObject => ({ apiKeySecurityScheme: { location, name } });

describe("credentials", () => {
  it.each([
    ["header", { headers: { "x-key": "s p" }, query: [] }],
    ["cookie", { headers: { Cookie: "x-key=s%20p" }, query: [] }],
    ["query", { headers: {}, query: [["x-key", "s p"]] }],
  ])("put an API key into the %s the card names", (location, expected) => {
    const card = cardWith({ k: key(location, "x-key") });
    expect(attachCredentials(card, { bearer: undefined, apiKey: "s p" })).toEqual({ ...expected, notes: [] });
  });

  it("[A2ACLI_AUTH_001] prefer a scheme the card requires over one it only describes", () => {
    const card = cardWith({ a: key("header", "x-a"), b: key("header", "x-b") }, ["b"]);
    expect(attachCredentials(card, { bearer: undefined, apiKey: "s" }).headers).toEqual({ "x-b": "s" });
  });

  it("do not depend on the order of members, which is not signed", () => {
    const [query, header] = [key("query", "q"), key("header", "x")];
    for (const required of [["h", "q"], []]) {
      for (const schemes of [
        { q: query, h: header },
        { h: header, q: query },
      ]) {
        const attached = attachCredentials(cardWith(schemes, required), { bearer: undefined, apiKey: "s" });
        expect(attached).toMatchObject({ headers: { x: "s" }, query: [] });
      }
    }
  });

  it("send a bearer token for HTTP bearer, OAuth 2 and OpenID Connect, and say when the card has none of these", () => {
    for (const scheme of [
      { httpAuthSecurityScheme: { scheme: "Bearer" } },
      { oauth2SecurityScheme: {} },
      { openIdConnectSecurityScheme: { openIdConnectUrl: "https://id.example.com" } },
    ]) {
      const { headers, notes } = attachCredentials(cardWith({ s: scheme }), { bearer: "t", apiKey: undefined });
      expect([headers, notes]).toEqual([{ Authorization: "Bearer t" }, []]);
    }
    expect(attachCredentials(cardWith({}), { bearer: "t", apiKey: "k" })).toMatchObject({
      headers: { Authorization: "Bearer t", "X-API-Key": "k" },
      notes: [expect.stringContaining("bearer"), expect.stringContaining("API key")],
    });
  });

  it("tell which of them the card asks for", () => {
    expect(credentialHint(cardWith({ k: key("header", "x") }))).toContain("A2ACLI_API_KEY");
    expect(credentialHint(cardWith({ k: key("header", "x") }))).not.toContain("A2ACLI_BEARER");
  });

  it("go into the query of the agent's own origin only", async () => {
    const seen: string[] = [];
    const inner: typeof fetch = async (input) => {
      seen.push(String(input));
      return new Response();
    };
    const wrapped = fetchWithQuery([["key", "s&p"]], "http://agent.example", inner);
    await wrapped("http://agent.example/rpc?a=1");
    await wrapped("http://elsewhere.example/rpc");
    expect(seen).toEqual(["http://agent.example/rpc?a=1&key=s%26p", "http://elsewhere.example/rpc"]);
  });
});
