import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { AgentCard } from "../../model/card.ts";
import { readCard, toCardDocument } from "./card.ts";

const OUTLINE = JSON.parse(readFileSync(new URL("./fixtures/outline-card.json", import.meta.url), "utf8"));

const CARD: AgentCard = {
  name: "OutlineAgent",
  description: "Topic in, outline out.",
  version: "1.0.0",
  supportedInterfaces: [{ url: "http://127.0.0.1:8001", protocolBinding: "JSONRPC", protocolVersion: "1.0" }],
  capabilities: { streaming: true, pushNotifications: true },
  securitySchemes: { key: { apiKeySecurityScheme: { location: "header", name: "X-API-Key" } } },
  defaultInputModes: ["text/plain"],
  defaultOutputModes: ["application/json", "text/markdown"],
  skills: [{ id: "generate_outline", name: "Outline", description: "", tags: ["writing"], inputModes: ["text/plain"] }],
};

describe("the card", () => {
  it("has the members of the chain's cards, with words and media types for modes", () => {
    expect(JSON.parse(JSON.stringify(toCardDocument(CARD)))).toStrictEqual({
      name: "OutlineAgent",
      description: "Topic in, outline out.",
      url: "http://127.0.0.1:8001",
      version: "1.0.0",
      skills: [
        {
          id: "generate_outline",
          name: "Outline",
          description: "",
          tags: ["writing"],
          inputModes: ["text", "text/plain"],
          outputModes: ["data", "text", "application/json", "text/markdown"],
        },
      ],
      capabilities: { streaming: true, pushNotifications: true },
      authentication: { schemes: ["apiKey"] },
    });
    expect(toCardDocument(CARD)).toBe(toCardDocument(CARD));
  });
});

describe("a card of the chain", () => {
  it("is known by its words and read into the model", () => {
    expect(readCard(OUTLINE, "http://127.0.0.1:8001/.well-known/agent.json")).toEqual({
      confidence: "likely",
      card: {
        name: "OutlineAgent",
        description: "",
        version: "1.0.0",
        supportedInterfaces: [
          {
            url: "http://127.0.0.1:8001",
            protocolBinding: "urn:dragoman:binding:tasks-rest",
            protocolVersion: "1",
          },
        ],
        capabilities: { streaming: true, pushNotifications: false },
        securitySchemes: { apiKey: { apiKeySecurityScheme: { location: "header", name: "X-API-Key" } } },
        securityRequirements: [{ schemes: { apiKey: { list: [] } } }],
        defaultInputModes: ["text/plain"],
        defaultOutputModes: ["application/json"],
        skills: [
          {
            id: "generate_outline",
            name: "Outline",
            description: "",
            tags: [],
            inputModes: ["text/plain"],
            outputModes: ["application/json"],
          },
        ],
      },
    });
  });

  const [skill] = OUTLINE.skills;
  it.each([
    ["no authentication", { authentication: undefined }],
    ["no skills", { skills: [] }],
    ["a skill without modes", { skills: [skill, { ...skill, outputModes: undefined }] }],
    ["a skill with an empty list", { skills: [{ ...skill, inputModes: [] }] }],
    ["a media type among the words", { skills: [{ ...skill, inputModes: ["text", "text/plain"] }] }],
    ["another word", { skills: [{ ...skill, inputModes: ["image"] }] }],
  ])("is only possible with %s", (_name, changed) => {
    const card = { ...OUTLINE, ...changed };
    expect(readCard(card, undefined)?.confidence).toBe("possible");
  });

  it("is not what our own card is taken for", () => {
    expect(readCard(toCardDocument(CARD), undefined)).toMatchObject({ confidence: "possible" });
  });

  it.each([null, 5, [], {}])("is not %j", (value) => {
    expect(readCard(value, undefined)).toBeUndefined();
  });
});
