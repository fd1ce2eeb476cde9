/** What of Xiaoyi the model has no field for, in `metadata`. */

import { EXTENSIONS } from "../../model/extensions.ts";
import { isObject, type JsonObject, type JsonValue } from "../../model/json.ts";
import { isTextPart, isUrlPart, type Part, type UrlPart } from "../../model/message.ts";

/** In the `metadata` of a part whose text others show: what only Xiaoyi shows (cards, commands, chips, references). */
export const XIAOYI_EXTENSION = "urn:dragoman:ext:xiaoyi:v1";

/** Cards, commands, chips and references as text, for those who cannot show them: titles and links are what matters. */

const TITLES = ["title", "cardName", "appName", "intentName"] as const;
const LINKS = ["url", "link", "webLink"] as const;
const MAX_LINES = 20;
const MAX_DEPTH = 8;

export function fallbackTextOf(data: JsonObject): string {
  const lines: string[] = [];
  collect(data, lines, 0);
  return lines.join("\n");
}

function collect(value: JsonValue, lines: string[], depth: number): void {
  if (depth > MAX_DEPTH || lines.length >= MAX_LINES) return;
  if (Array.isArray(value)) {
    for (const item of value as readonly JsonValue[]) collect(item, lines, depth + 1);
    return;
  }
  if (!isObject(value)) return;
  const line = lineOf(value);
  if (line !== undefined && !lines.some((known) => known.endsWith(line))) lines.push(line);
  for (const inner of Object.values(value)) collect(inner, lines, depth + 1);
}

/** A title together with the nearest link below it, or either alone. */
function lineOf(value: JsonObject): string | undefined {
  const title = firstString(value, TITLES) ?? chipText(value.content);
  const link = linkIn(value, 0);
  if (title === undefined || link === undefined) return title ?? link;
  return `${title}: ${link}`;
}

function firstString(value: JsonObject, names: readonly string[]): string | undefined {
  for (const name of names) {
    const text = value[name];
    if (typeof text === "string" && text !== "") return text;
  }
  return undefined;
}

function linkIn(value: JsonObject, depth: number): string | undefined {
  const link = firstString(value, LINKS);
  if (link !== undefined || depth > 2) return link;
  for (const name of LINKS) {
    const inner = value[name];
    if (isObject(inner)) return linkIn(inner, depth + 1);
  }
  return undefined;
}

/** Chips say what is asked when they are tapped in a link of the assistant's own. */
function chipText(content: JsonValue | undefined): string | undefined {
  if (typeof content !== "string") return undefined;
  if (!content.startsWith("superlink://")) return undefined;
  return new URLSearchParams(content.slice(content.indexOf("?") + 1)).get("text") ?? undefined;
}

/** The members of a data part that the platform acts upon. */
const SHOWABLE_MEMBERS = ["commands", "cardsInfo", "chipsInfo", "reference", "fileInfo"] as const;

/** Whether a device would make anything of it. */
export function isShowable(data: JsonValue): data is JsonObject {
  return isObject(data) && SHOWABLE_MEMBERS.some((member) => data[member] !== undefined);
}

export function xiaoyiMetadata(metadata: JsonObject | undefined): JsonObject | undefined {
  const mark = metadata?.[XIAOYI_EXTENSION];
  return isObject(mark) ? mark : undefined;
}

/** What a part says that is the agent's reasoning, not its answer. */
export function reasoningOf(part: Part): string | undefined {
  const mark = part.metadata?.[EXTENSIONS.reasoning];
  if (typeof mark === "string") return mark;
  return mark === true && isTextPart(part) ? part.text : undefined;
}

export function reasoningPart(reasoning: string): Part {
  return { text: "", metadata: { [EXTENSIONS.reasoning]: reasoning } };
}

/** A thing only Xiaoyi can show, as a text that others show in its place. */
export function showablePart(data: JsonObject, text: string): Part {
  return { text, metadata: { [XIAOYI_EXTENSION]: { data } } };
}

/** The thing itself, where a part is one. */
export function showableDataOf(part: Part): JsonObject | undefined {
  const data = xiaoyiMetadata(part.metadata)?.data;
  return isObject(data) ? data : undefined;
}

/** Of a file that was uploaded to the platform. */
export function fileIdOf(part: Part): string | undefined {
  const id = xiaoyiMetadata(part.metadata)?.fileId;
  return typeof id === "string" ? id : undefined;
}

/** The bytes of a file that came with an address, too: for when nothing can be fetched from there. */
export function withInlineBytes(part: UrlPart, raw: string): UrlPart {
  return { ...part, metadata: { [XIAOYI_EXTENSION]: { raw } } };
}

/** A file of a message without its spare bytes, and these. */
export function splitInlineBytes(file: UrlPart): { readonly part: UrlPart; readonly raw: string | undefined } {
  const { metadata, ...part } = file;
  const raw = xiaoyiMetadata(metadata)?.raw;
  return typeof raw === "string" ? { part, raw } : { part: file, raw: undefined };
}

/** On the machine of the agent: nobody else can open it, or should know where it is. */
export function isLocalFile(part: Part): boolean {
  return isUrlPart(part) && /^file:/i.test(part.url);
}

/** The same part, with the id under which the platform has it. */
export function withFileId(part: Part, fileId: string): Part {
  return { ...part, metadata: { ...part.metadata, [XIAOYI_EXTENSION]: { ...xiaoyiMetadata(part.metadata), fileId } } };
}
