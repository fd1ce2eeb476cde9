/** Reads the card of a peer: JSON in a code block or a file, else whatever of its prose can be recognised. */

import { objectsIn, textIn, textsIn } from "../../../core/dialects/shared/cards.ts";
import type { AgentCard, AgentInterface, AgentSkill } from "../../../core/model/card.ts";
import { fieldsOf, isObject, type JsonObject, omitUndefined } from "../../../core/model/json.ts";
import { decodeUtf8, parseJson } from "../../../core/wire/parse-json.ts";
import { codeBlocks } from "./body.ts";

/** Name in lists of interfaces; no specification defines one. */
export const BINDING = "CHAT";
export const VERSION = "1.0";

/** Maximum size of the JSON of a card; more is not read. */
export const MAX_CARD_BYTES = 256 * 1024;
const JSON_LIMITS = { maxDepth: 16, maxValues: 20_000 };
const MAX_SKILLS = 100;
const MAX_LIST = 20;
const MAX_TEXT = 2_000;
const MAX_NAME = 200;
const MAX_PROSE_LINES = 200;

export interface CardSender {
  /** Where it can be called; see `address.ts`. */
  readonly address: string;
  /** On the network: for a card without a name. */
  readonly name: string;
}

/** `files`: bytes of the JSON files that were sent with it. */
export function readCard(body: string, files: readonly Uint8Array[], sender: CardSender): AgentCard {
  const document = findDocument(body) ?? files.map(parseBytes).find(isCard);
  return document === undefined ? readProse(body, sender) : readDocument(document, sender);
}

function interfacesOf({ address }: CardSender): readonly AgentInterface[] {
  return [{ url: address, protocolBinding: BINDING, protocolVersion: VERSION }];
}

function findDocument(body: string): JsonObject | undefined {
  const lines = body.split("\n");
  for (const { first, language, last } of codeBlocks(lines)) {
    if (language !== "json" && language !== "") continue;
    const value = parseText(lines.slice(first + 1, last).join("\n"));
    if (isCard(value)) return value;
  }
  const bare = parseText(body);
  return isCard(bare) ? bare : undefined;
}

function isCard(value: unknown): value is JsonObject {
  return isObject(value) && (textIn(value.protocol)?.startsWith("a2a-lite/") === true || isObject(value.agent));
}

function parseText(text: string): unknown {
  if (text.length > MAX_CARD_BYTES || !text.trimStart().startsWith("{")) return undefined;
  try {
    return parseJson(text, JSON_LIMITS);
  } catch {
    return undefined;
  }
}

function parseBytes(bytes: Uint8Array): unknown {
  if (bytes.length > MAX_CARD_BYTES) return undefined;
  try {
    return parseText(decodeUtf8(bytes));
  } catch {
    return undefined;
  }
}

/** Invalid members are as good as absent ones. */
function readDocument(document: JsonObject, sender: CardSender): AgentCard {
  const agent = fieldsOf(document.agent);
  const skills = objectsIn(document.skills)
    .slice(0, MAX_SKILLS)
    .flatMap((skill) => readSkill(skill) ?? []);
  return {
    name: shortText(agent.name) ?? shortText(agent.id) ?? sender.name,
    description: longText(document.description) ?? "",
    version: shortText(agent.version) ?? "unknown",
    ...commonMembers(sender, skills),
  };
}

/** The peer posts its progress, which is what a caller needs in order to follow a task. */
function commonMembers(sender: CardSender, skills: readonly AgentSkill[]) {
  return {
    supportedInterfaces: interfacesOf(sender),
    capabilities: { streaming: true, pushNotifications: false },
    defaultInputModes: modesOf(skills, "inputModes"),
    defaultOutputModes: modesOf(skills, "outputModes"),
    skills,
  };
}

function modesOf(skills: readonly AgentSkill[], name: "inputModes" | "outputModes"): readonly string[] {
  return [...new Set(["text/plain", ...skills.flatMap((skill) => skill[name] ?? [])])];
}

function readSkill(value: JsonObject): AgentSkill | undefined {
  const id = shortText(value.id) ?? shortText(value.name);
  if (id === undefined) return undefined;
  return omitUndefined({
    id,
    name: shortText(value.name) ?? id,
    description: longText(value.description) ?? "",
    tags: textList(value.tags) ?? [],
    examples: textList(value.examples),
    inputModes: readModes(value.inputModes),
    outputModes: readModes(value.outputModes),
  });
}

const MEDIA_TYPES: ReadonlyMap<string, string> = new Map([
  ["text", "text/plain"],
  ["file", "*/*"],
  ["image", "image/*"],
  ["audio", "audio/*"],
  ["video", "video/*"],
]);

/** Other agents may write media types. */
function readModes(value: unknown): readonly string[] | undefined {
  return textList(value)?.map((mode) => MEDIA_TYPES.get(mode.toLowerCase()) ?? mode);
}

function shortText(value: unknown): string | undefined {
  return textIn(textIn(value)?.slice(0, MAX_NAME).toWellFormed().trim());
}

function longText(value: unknown): string | undefined {
  return textIn(textIn(value)?.slice(0, MAX_TEXT).toWellFormed().trim());
}

function textList(value: unknown): readonly string[] | undefined {
  return textsIn(value)
    ?.slice(0, MAX_LIST)
    .flatMap((text) => shortText(text) ?? []);
}

/** Lines such as `I am Ada, a writer.`, `Name: Ada` and `我是小佳`. */
const NAME =
  /^(?:i am|i['’]m|my name is|name|agent|名称|名字|我是|我叫)(?:\s*[:：]\s*|\s+|(?<=[我是叫]))([^.,;:!?。，；：！？(（]{1,80})/i;
/** Items of a list: `- Writing (write): articles`, `1. **写作**：写文章`. */
const ITEM = /^(?:[-*•·–]|\d{1,3}[.)、])\s+(.+)$/;
const MARKS = /[*_`]/g;

function readProse(body: string, sender: CardSender): AgentCard {
  const lines = body.slice(0, MAX_CARD_BYTES).split("\n").slice(0, MAX_PROSE_LINES);
  const plain = lines.map((line) =>
    line
      .slice(0, MAX_TEXT)
      .replaceAll(MARKS, "")
      .replace(/^[#\s]+/, "")
      .trim(),
  );
  const name = plain.map((line) => NAME.exec(line)?.[1]?.trim()).find((found) => found !== undefined && found !== "");
  const items = lines.flatMap((line) => ITEM.exec(line.slice(0, MAX_TEXT).trim())?.[1] ?? []);
  const skills = items
    .slice(0, MAX_SKILLS)
    .flatMap((item) => readItem(item.replaceAll(MARKS, "").replaceAll(/\s+/g, " ")) ?? []);
  return {
    name: shortText(name) ?? sender.name,
    description: longText(body) ?? "",
    version: "unknown",
    ...commonMembers(sender, skills),
  };
}

/** `name (id): description`, without the id or the description as well. */
function readItem(item: string): AgentSkill | undefined {
  const [head = "", description = ""] = splitAt(item, / ?(?:[:：]| [-–—] |——) ?/);
  const [name = "", rest = ""] = splitAt(head, / ?[(（]/);
  const id = shortText(rest.replace(/[)）] ?$/, "")) ?? shortText(name);
  if (id === undefined) return undefined;
  return { id, name: shortText(name) ?? id, description: longText(description) ?? "", tags: [] };
}

function splitAt(text: string, separator: RegExp): readonly [string, string] {
  const found = separator.exec(text);
  return found === null ? [text, ""] : [text.slice(0, found.index), text.slice(found.index + found[0].length)];
}
