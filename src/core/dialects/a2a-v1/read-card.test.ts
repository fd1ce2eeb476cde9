import { expect, test } from "vitest";
import { readCardLeniently } from "./card.ts";

const CARD = {
  name: "Agent",
  description: "Does things.",
  version: "1.0.0",
  supportedInterfaces: [{ url: "https://x.example", protocolBinding: "JSONRPC", protocolVersion: "1.0" }],
  capabilities: { streaming: true },
  defaultInputModes: ["text/plain"],
  defaultOutputModes: ["text/plain"],
  skills: [{ id: "s", name: "Skill", description: "A skill.", tags: ["x"] }],
};

test("a proper card comes back as it is", () => {
  expect(readCardLeniently(CARD)).toEqual(CARD);
});

test("members of other versions and vendors are ignored", () => {
  expect(readCardLeniently({ ...CARD, url: "https://old.example", preferredTransport: "JSONRPC", "x-own": 1 })).toEqual(
    CARD,
  );
});

test("interfaces alone make a card", () => {
  const { supportedInterfaces } = CARD;
  expect(readCardLeniently({ supportedInterfaces })).toMatchObject({
    name: "unnamed agent",
    capabilities: {},
    skills: [],
    defaultInputModes: [],
    supportedInterfaces,
  });
});

test("what is unusable is left out and the rest is kept", () => {
  const read = readCardLeniently({
    ...CARD,
    version: 3,
    provider: "someone",
    iconUrl: "https://x.example/icon.png",
    securitySchemes: { key: { apiKeySecurityScheme: { location: "header", name: "X-Key" } } },
    skills: [...CARD.skills, { broken: true }, null],
    supportedInterfaces: [
      "nonsense",
      { protocolBinding: "JSONRPC" },
      { url: "https://x.example/a", protocolBinding: "HTTP+JSON" },
      ...CARD.supportedInterfaces,
    ],
  });
  expect(read).toEqual({
    ...CARD,
    version: "unknown",
    iconUrl: "https://x.example/icon.png",
    securitySchemes: { key: { apiKeySecurityScheme: { location: "header", name: "X-Key" } } },
    supportedInterfaces: [
      { url: "https://x.example/a", protocolBinding: "HTTP+JSON", protocolVersion: "1.0" },
      ...CARD.supportedInterfaces,
    ],
  });
});

test("security schemes are read also as generated code holds them", () => {
  const flow = {
    authorizationUrl: "https://id.example/a",
    tokenUrl: "https://id.example/t",
    scopes: { read: "Read." },
  };
  const plain = {
    key: { apiKeySecurityScheme: { location: "header", name: "X-Key" } },
    token: { httpAuthSecurityScheme: { scheme: "Bearer" } },
    login: { oauth2SecurityScheme: { flows: { authorizationCode: flow } } },
  };
  const held = {
    key: { scheme: { $case: "apiKeySecurityScheme", value: { description: "", location: "header", name: "X-Key" } } },
    token: { scheme: { $case: "httpAuthSecurityScheme", value: { scheme: "Bearer", bearerFormat: "" } } },
    login: {
      scheme: {
        $case: "oauth2SecurityScheme",
        value: { flows: { flow: { $case: "authorizationCode", value: flow } } },
      },
    },
  };
  expect(readCardLeniently({ ...CARD, securitySchemes: held })?.securitySchemes).toEqual(plain);
  expect(readCardLeniently({ ...CARD, securitySchemes: plain })?.securitySchemes).toEqual(plain);
});

test("both spellings are read, also in a card with flaws", () => {
  const read = readCardLeniently({
    name: "Agent",
    supported_interfaces: [{ url: "https://x.example", protocol_binding: "JSONRPC", protocol_version: "1.0" }],
    default_input_modes: ["text/plain"],
  });
  expect(read).toMatchObject({ supportedInterfaces: CARD.supportedInterfaces, defaultInputModes: ["text/plain"] });
});

test("a card of an older version is a card without interfaces of this one", () => {
  expect(readCardLeniently({ name: "Old", url: "https://x.example", version: "1" })?.supportedInterfaces).toEqual([]);
});

test.each([null, 1, "card", [], {}, { hello: "world" }])("%j is no card", (value) => {
  expect(readCardLeniently(value)).toBeUndefined();
});
