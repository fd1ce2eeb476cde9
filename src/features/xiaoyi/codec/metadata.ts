/** Xiaoyi content for which the model has no field, stored in `metadata`. */

import { EXTENSIONS } from "../../../core/model/extensions.ts";
import { isObject, type JsonObject, type JsonValue } from "../../../core/model/json.ts";
import { isTextPart, isUrlPart, type Part, type UrlPart } from "../../../core/model/message.ts";

/**
 * Key in the `metadata` of a part whose text is a fallback: content that only Xiaoyi shows (cards, commands, chips,
 * references).
 */
export const XIAOYI_EXTENSION = "urn:dragoman:ext:xiaoyi:v1";

/** Fallback text of cards, commands, chips and references: their titles and links. */
const TITLES = ["title", "cardName", "appName", "intentName"] as const;
const LINKS = ["url", "link", "webLink"] as const;
const MAX_LINES = 20;
const MAX_DEPTH = 8;

export function fallbackTextOf(data: JsonObject): string {
  const lines: string[] = [];
  collect(data, lines, 0);
  return lines.join("\n");
}

function collect(value: JsonValue | undefined, lines: string[], depth: number): void {
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

/** A title with the nearest link below it, or either alone. */
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

/** Chips encode the question they ask in a URL of the assistant's own scheme. */
function chipText(content: JsonValue | undefined): string | undefined {
  if (typeof content !== "string") return undefined;
  if (!content.startsWith("superlink://")) return undefined;
  return new URLSearchParams(content.slice(content.indexOf("?") + 1)).get("text") ?? undefined;
}

/** The members of a data part that the platform interprets. */
const SHOWABLE_MEMBERS = ["commands", "cardsInfo", "chipsInfo", "reference", "fileInfo"] as const;

export function isShowable(data: JsonValue): data is JsonObject {
  return isObject(data) && SHOWABLE_MEMBERS.some((member) => data[member] !== undefined);
}

export function xiaoyiMetadata(metadata: JsonObject | undefined): JsonObject | undefined {
  const mark = metadata?.[XIAOYI_EXTENSION];
  return isObject(mark) ? mark : undefined;
}

/** The agent's reasoning in a part, if any, as opposed to its answer. */
export function reasoningOf(part: Part): string | undefined {
  const mark = part.metadata?.[EXTENSIONS.reasoning];
  if (typeof mark === "string") return mark;
  return mark === true && isTextPart(part) ? part.text : undefined;
}

export function reasoningPart(reasoning: string): Part {
  return { text: "", metadata: { [EXTENSIONS.reasoning]: reasoning } };
}

/** Content that only Xiaoyi can show, with fallback text for other clients. */
export function showablePart(data: JsonObject, text: string): Part {
  return { text, metadata: { [XIAOYI_EXTENSION]: { data } } };
}

export function showableDataOf(part: Part): JsonObject | undefined {
  const data = xiaoyiMetadata(part.metadata)?.data;
  return isObject(data) ? data : undefined;
}

/** The id of a file that was uploaded to the platform. */
export function fileIdOf(part: Part): string | undefined {
  const id = xiaoyiMetadata(part.metadata)?.fileId;
  return typeof id === "string" ? id : undefined;
}

/** Attaches the bytes that were sent along with a file's URL, in case the URL cannot be fetched. */
export function withInlineBytes(part: UrlPart, raw: string): UrlPart {
  return { ...part, metadata: { [XIAOYI_EXTENSION]: { raw } } };
}

export function splitInlineBytes(file: UrlPart): { readonly part: UrlPart; readonly raw: string | undefined } {
  const { metadata, ...part } = file;
  const raw = xiaoyiMetadata(metadata)?.raw;
  return typeof raw === "string" ? { part, raw } : { part: file, raw: undefined };
}

/** Whether the file is on the agent's machine: other clients cannot open it and must not learn its path. */
export function isLocalFile(part: Part): boolean {
  return isUrlPart(part) && /^file:/i.test(part.url);
}

export function withFileId(part: Part, fileId: string): Part {
  return { ...part, metadata: { ...part.metadata, [XIAOYI_EXTENSION]: { ...xiaoyiMetadata(part.metadata), fileId } } };
}
