/** Cards, commands, chips and references as text, for those who cannot show them: titles and links are what matters. */
import type { JsonObject, JsonValue } from "../../model/json.ts";
import { isObject } from "./marks.ts";

const TITLES = ["title", "cardName", "appName", "intentName"] as const;
const LINKS = ["url", "link", "webLink"] as const;
const MOST_LINES = 20;
const DEEPEST = 8;

export function fallbackTextOf(data: JsonObject): string {
  const lines: string[] = [];
  collect(data, lines, 0);
  return lines.join("\n");
}

function collect(value: JsonValue, lines: string[], depth: number): void {
  if (depth > DEEPEST || lines.length >= MOST_LINES) return;
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
  const title = textIn(value, TITLES) ?? chipText(value.content);
  const link = linkIn(value, 0);
  if (title === undefined || link === undefined) return title ?? link;
  return `${title}: ${link}`;
}

function textIn(value: JsonObject, names: readonly string[]): string | undefined {
  for (const name of names) {
    const text = value[name];
    if (typeof text === "string" && text !== "") return text;
  }
  return undefined;
}

function linkIn(value: JsonObject, depth: number): string | undefined {
  const link = textIn(value, LINKS);
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
