import type { JsonValue } from "../model/json.ts";
import type { Part } from "../model/part.ts";
import { isDataPart, isRawPart, textOf } from "../model/part.ts";

export interface WrittenInput {
  /** All text there is: text parts, else text files, else text that travelled as data. */
  readonly text: string;
  /** The first data part that holds something. */
  readonly data: JsonValue | undefined;
}

/** Members under which other agents put running text. */
const TEXT_MEMBERS = ["text", "markdown", "content", "document", "article", "topic", "内容", "主题"];

export function readWrittenInput(parts: readonly Part[]): WrittenInput {
  const data = parts.filter(isDataPart).find((part) => part.data !== null)?.data;
  const text = textOf(parts).trim() || textOfFiles(parts) || textOfData(data);
  return { text: text.replace(/\r\n?/g, "\n"), data };
}

function textOfFiles(parts: readonly Part[]): string {
  return parts
    .filter(isRawPart)
    .filter((part) => part.mediaType?.startsWith("text/") === true)
    .map((part) => Buffer.from(part.raw, "base64").toString("utf8"))
    .join("\n\n")
    .trim();
}

function textOfData(data: JsonValue | undefined): string {
  if (typeof data === "string") return data.trim();
  if (typeof data !== "object" || data === null || Array.isArray(data)) return "";
  const members = new Map(Object.entries(data));
  for (const name of TEXT_MEMBERS) {
    const value = members.get(name);
    if (typeof value === "string" && value.trim() !== "") return value.trim();
  }
  return "";
}
