import { deepStrictEqual } from "node:assert/strict";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { AgentCard } from "../../model/card.ts";
import { ProtocolError } from "../../model/errors.ts";
import { card as anyCard } from "../suite/arbitraries.ts";
import { CARD } from "../suite/serving.ts";
import { toWireCard } from "./card.ts";
import { readWire } from "./proto/schema.ts";

const fromWireCard = (json: unknown) => readWire("AgentCard", json, { code: "INVALID_AGENT_RESPONSE" });

const FULL: AgentCard = {
  ...CARD,
  description: "",
  provider: { url: "https://example.com", organization: "Example" },
  documentationUrl: "",
  capabilities: {
    streaming: false,
    pushNotifications: false,
    extensions: [{ uri: "urn:a", description: "", required: false, params: {} }],
  },
  securitySchemes: {
    key: { apiKeySecurityScheme: { location: "header", name: "X-API-Key", description: "" } },
    oauth: { oauth2SecurityScheme: { flows: { clientCredentials: { tokenUrl: "https://t", scopes: { a: "b" } } } } },
  },
  securityRequirements: [{ schemes: { key: { list: [] }, oauth: { list: ["a"] } } }],
  skills: [{ id: "s", name: "S", description: "", tags: [], examples: [] }],
  signatures: [],
};

describe("toWireCard", () => {
  it("[CARD-DISC-001, CARD-JSON-001, CARD-SIGN-005, CARD-SIGN-006] follows the presence rules", () => {
    expect(JSON.parse(toWireCard(FULL))).toStrictEqual({
      name: "Echo",
      description: "",
      supportedInterfaces: [{ url: "https://agents.example.com", protocolBinding: "JSONRPC", protocolVersion: "1.0" }],
      provider: { url: "https://example.com", organization: "Example" },
      version: "1",
      documentationUrl: "",
      capabilities: {
        streaming: false,
        pushNotifications: false,
        extensions: [{ uri: "urn:a", params: {} }],
      },
      securitySchemes: {
        key: { apiKeySecurityScheme: { location: "header", name: "X-API-Key" } },
        oauth: {
          oauth2SecurityScheme: { flows: { clientCredentials: { tokenUrl: "https://t", scopes: { a: "b" } } } },
        },
      },
      securityRequirements: [{ schemes: { key: {}, oauth: { list: ["a"] } } }],
      defaultInputModes: ["text/plain"],
      defaultOutputModes: ["text/plain"],
      skills: [{ id: "s", name: "S", description: "", tags: [] }],
    });
  });

  it("is made once for a card", () => {
    expect(toWireCard(FULL)).toBe(toWireCard(FULL));
  });

  it("never fails, however poor the card", () => {
    const poor: AgentCard = { ...CARD, version: "", supportedInterfaces: [] };
    expect(JSON.parse(toWireCard(poor))).toMatchObject({ version: "", supportedInterfaces: [] });
  });

  it("is read back", () => {
    fc.assert(
      fc.property(anyCard, (card) => {
        deepStrictEqual(fromWireCard(JSON.parse(toWireCard(card))), JSON.parse(JSON.stringify(card)));
      }),
    );
  });
});

describe("a card read from the wire", () => {
  it("reads snake_case and leaves out what it does not know", () => {
    const { supportedInterfaces, defaultInputModes, defaultOutputModes, ...rest } = CARD;
    const wire = {
      ...rest,
      supported_interfaces: supportedInterfaces,
      default_input_modes: defaultInputModes,
      default_output_modes: defaultOutputModes,
      url: "https://old.example.com",
      securitySchemes: { new: { quantumSecurityScheme: {} } },
    };
    expect(fromWireCard(wire)).toStrictEqual({ ...CARD, securitySchemes: { new: {} } });
  });

  it("fills in empty lists that serialisers leave out", () => {
    const { skills: _skills, defaultInputModes: _modes, ...rest } = CARD;
    expect(fromWireCard(rest)).toMatchObject({ skills: [], defaultInputModes: [] });
  });

  it.each([
    ["name", { ...CARD, name: undefined }],
    ["version", { ...CARD, version: "" }],
    ["capabilities", { ...CARD, capabilities: undefined }],
    ["supportedInterfaces", { ...CARD, supportedInterfaces: [] }],
    [
      "supportedInterfaces[0].url",
      { ...CARD, supportedInterfaces: [{ protocolBinding: "JSONRPC", protocolVersion: "1.0" }] },
    ],
    [
      "supportedInterfaces[0].protocolVersion",
      { ...CARD, supportedInterfaces: [{ url: "x", protocolBinding: "JSONRPC" }] },
    ],
    ["", "card"],
    ["", null],
  ])("[CARD-PROTO-001] refuses a card for its %s", (field, wire) => {
    expect(() => fromWireCard(wire)).toThrow(ProtocolError);
    try {
      fromWireCard(wire);
    } catch (error) {
      expect(error).toMatchObject({ code: "INVALID_AGENT_RESPONSE", violations: [{ field }] });
    }
  });
});
