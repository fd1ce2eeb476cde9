import { readFileSync } from "node:fs";
import { type Schema, validate } from "@cfworker/json-schema";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { card as anyCard, nearMisses } from "../../../core/dialects/suite/arbitraries.ts";
import type { AgentCard } from "../../../core/model/card.ts";
import { cases } from "../../../core/model/testing/exploring.ts";
import { CARD_FILE, type CardPlace, toCardDocument, toCardMessage } from "./card.ts";
import { formatMessage } from "./format.ts";
import { parsePost } from "./parse.ts";
import { splitMessage } from "./pieces.ts";
import { MAX_CARD_BYTES, readCard } from "./read-card.ts";

const SCHEMA = JSON.parse(readFileSync(new URL("./fixtures/card-schema.json", import.meta.url), "utf8")) as Schema;

const DISCORD: CardPlace = {
  network: "discord",
  self: { id: "1234", name: "writer" },
  abilities: { lines: true, maxFileBytes: 10 * 1024 * 1024, text: { max: 2_000, unit: "characters" } },
};
const IRC: CardPlace = {
  network: "irc",
  self: { id: "writer", name: "writer" },
  abilities: { lines: false, maxFileBytes: 0, text: { max: 400, unit: "bytes" } },
};

const SENDER = { address: "a2a-lite:irc/#agents#writer", name: "writer" };
const INTERFACES = [{ url: SENDER.address, protocolBinding: "CHAT", protocolVersion: "1.0" }];

const WRITER: AgentCard = {
  name: "Writer",
  description: "Writes articles.",
  version: "2.1",
  supportedInterfaces: [{ url: "https://agent.example/", protocolBinding: "JSONRPC", protocolVersion: "1.0" }],
  capabilities: { streaming: true, pushNotifications: true },
  securitySchemes: { key: { apiKeySecurityScheme: { location: "header", name: "X-Secret-Key" } } },
  defaultInputModes: ["text/plain", "application/json"],
  defaultOutputModes: ["text/markdown", "image/png"],
  skills: [
    { id: "write", name: "Writing", description: "An article on any subject.", tags: ["text"], examples: ["tea"] },
    {
      id: "draw",
      name: "Drawing",
      description: "A picture.",
      tags: [],
      inputModes: ["*/*"],
      outputModes: ["image/png"],
    },
  ],
};

describe("the card of an agent", () => {
  it("is valid by the protocol's schema", () => {
    const document = toCardDocument(WRITER, DISCORD);
    expect(validate(document, SCHEMA, "7")).toMatchObject({ valid: true });
    expect(document).toEqual({
      protocol: "a2a-lite/1.0",
      agent: { id: "1234", name: "Writer", framework: "other", version: "2.1" },
      description: "Writes articles.",
      skills: [
        {
          id: "write",
          name: "Writing",
          description: "An article on any subject.",
          inputModes: ["text"],
          outputModes: ["text", "image"],
          tags: ["text"],
          examples: ["tea"],
        },
        {
          id: "draw",
          name: "Drawing",
          description: "A picture.",
          inputModes: ["text", "file"],
          outputModes: ["image"],
          tags: [],
        },
      ],
      capabilities: { streaming: false, fileTransfer: true, asyncTasks: true, pushNotifications: false },
      limits: { maxFileSize: "10MB" },
      channels: ["discord:writer"],
    });
  });

  it("has prose for people, and no credentials", () => {
    const { content, files } = toCardMessage(WRITER, DISCORD);
    const text = formatMessage(content);
    expect(text.startsWith("[A2A:card]\nI am Writer. Writes articles.\n\nSkills:\n- Writing (write): An article")).toBe(
      true,
    );
    expect(text).not.toContain("Secret");
    expect(files).toEqual([]);
  });

  it("is a file where the JSON does not fit, and in the text where there are no files", () => {
    const small = { ...DISCORD, abilities: { ...DISCORD.abilities, text: { max: 500, unit: "characters" } as const } };
    const { content, files } = toCardMessage(WRITER, small);
    expect(content).toMatchObject({ type: "card", attachments: [CARD_FILE] });
    expect(content.body).not.toContain("```");
    const bytes = files[0]?.bytes ?? new Uint8Array();
    expect(readCard(content.body, [bytes], SENDER)).toMatchObject({ name: "Writer", version: "2.1" });
    const inline = toCardMessage(WRITER, IRC);
    expect(inline.files).toEqual([]);
    expect(readCard(inline.content.body, [], SENDER).version).toBe("2.1");
  });

  it("is never more than a few posts where there are no files", () => {
    const skill = { id: "write", name: "Writing", description: "An article on any subject.", tags: [] };
    const examples = ["x".repeat(500)];
    const limit = { ...IRC.abilities.text, singleLine: true };
    for (const [count, found, ids] of [
      [6, 6, true],
      [100, 10, false],
    ] as const) {
      const skills = Array.from({ length: count }, (_, index) => ({ ...skill, id: `write-${index}`, examples }));
      const { content } = toCardMessage({ ...WRITER, skills }, IRC);
      expect(content.body.includes("```json")).toBe(ids);
      expect(splitMessage(content, "m1", limit).length).toBeLessThanOrEqual(10);
      expect(readCard(content.body, [], SENDER).skills.length).toBe(found);
    }
  });

  it("of any kind is valid, and is read as it was", () => {
    fc.assert(
      fc.property(anyCard, fc.constantFrom(DISCORD, IRC), (card, place) => {
        expect(validate(toCardDocument(card, place), SCHEMA, "7").valid).toBe(true);
        const { content, files } = toCardMessage(card, place);
        const parsed = parsePost(formatMessage(content));
        if (parsed.kind !== "message") throw new Error("not a message");
        const read = readCard(
          parsed.message.body,
          files.map(({ bytes }) => bytes),
          SENDER,
        );
        expect(read.supportedInterfaces).toEqual(INTERFACES);
        expect(read.skills.length).toBe(card.skills.filter(({ id, name }) => `${id}${name}`.trim() !== "").length);
      }),
      { numRuns: cases(20_000, 300) },
    );
  });
});

describe("the card of a peer", () => {
  it("is read from a code block", () => {
    const document = {
      protocol: "a2a-lite/1.0",
      agent: { id: "jiajia", name: "佳佳", framework: "openclaw" },
      skills: [{ id: "research", name: "研究", description: "查资料", inputModes: ["text", "file", "model/obj"] }],
    };
    const body = `你好！我是佳佳。\n\`\`\`json\n${JSON.stringify(document)}\n\`\`\`\n请多关照`;
    expect(readCard(body, [], SENDER)).toEqual({
      name: "佳佳",
      description: "",
      version: "unknown",
      supportedInterfaces: INTERFACES,
      capabilities: { streaming: true, pushNotifications: false },
      defaultInputModes: ["text/plain", "*/*", "model/obj"],
      defaultOutputModes: ["text/plain"],
      skills: [
        {
          id: "research",
          name: "研究",
          description: "查资料",
          tags: [],
          inputModes: ["text/plain", "*/*", "model/obj"],
        },
      ],
    });
  });

  it.each([
    ["I am Ada, a writer.\n\nI can:\n- Writing (write): articles\n* **Research**: finds sources\n1. drawing", "Ada"],
    ["# Ada\nName: Ada\n- Writing (write): articles\n- Research - finds sources\n- drawing", "Ada"],
    ["我是佳佳。我会：\n- 写作（write）：articles\n• Research: finds sources\n2、 drawing", "佳佳"],
    ["Hi there.\n- Writing (write): articles\n- Research: finds sources\n- drawing", "writer"],
  ])("is read from prose: %j", (body, name) => {
    const card = readCard(body, [], SENDER);
    expect(card.name).toBe(name);
    expect(card.skills.map(({ id }) => id)).toEqual(["write", "Research", "drawing"]);
    expect(card.skills[0]?.description).toBe("articles");
    expect(card.description).toBe(body);
  });

  it("of any kind is read within bounds", () => {
    const near = nearMisses(
      ["protocol", "agent", "id", "name", "version", "description", "skills", "inputModes", "tags", "capabilities"],
      ["a2a-lite/1.0", "text", "x".repeat(3_000)],
    );
    fc.assert(
      fc.property(near, fc.string(), (value, text) => {
        const card = readCard(`${text}\n\`\`\`json\n${JSON.stringify(value)}\n\`\`\``, [Buffer.from(text)], SENDER);
        expect(card.name.length).toBeLessThanOrEqual(200);
      }),
      { numRuns: cases(50_000, 1_000) },
    );
    const skills = Array.from({ length: 500 }, (_, index) => ({ id: `${index}`, description: "x".repeat(10) }));
    expect(readCard(JSON.stringify({ agent: {}, skills }), [], SENDER).skills.length).toBe(100);
    const huge = JSON.stringify({ agent: { name: "x" }, description: "x".repeat(MAX_CARD_BYTES) });
    expect(readCard(huge, [Buffer.from(huge)], SENDER).name).toBe("writer");
    expect(readCard("- x\n".repeat(1_000_000), [], SENDER).skills.length).toBe(100);
    expect(readCard(`{"agent":${"[".repeat(100_000)}`, [Buffer.from([0xff])], SENDER).skills).toEqual([]);
  });
});
