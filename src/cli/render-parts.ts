import type { JsonValue } from "../model/json.ts";
import { isDataPart, isTextPart, isUrlPart, type Part } from "../model/part.ts";
import { block, field } from "./text-form.ts";

/** Bytes a base64 text stands for, without decoding it. */
export function decodedSize(base64: string): number {
  const length = base64.replace(/=+$/, "").length;
  return Math.floor((length * 3) / 4);
}

/** No part is ever left out: text as text, data as JSON, files by name, type and size. */
export function renderPart(part: Part, verbose: boolean): string {
  return `${renderContent(part)}${verbose ? renderDetails(part) : ""}`;
}

export function renderParts(parts: readonly Part[], verbose: boolean): string {
  return parts.map((part) => renderPart(part, verbose)).join("");
}

function renderContent(part: Part): string {
  if (isTextPart(part)) return block("Text", part.text);
  if (isDataPart(part)) return block("Data", prettyJson(part.data));
  if (isUrlPart(part)) return field("File", describeFile(part, `at ${part.url}`));
  return field("File", describeFile(part, `${decodedSize(part.raw)} bytes`));
}

function describeFile(part: Part, where: string): string {
  return `${part.filename ?? "unnamed"} (${part.mediaType ?? "unknown type"}, ${where})`;
}

function renderDetails(part: Part): string {
  const isFile = !isTextPart(part) && !isDataPart(part);
  let details = "";
  if (!isFile && part.filename !== undefined) details += field("Part Filename", part.filename);
  if (!isFile && part.mediaType !== undefined) details += field("Part Media Type", part.mediaType);
  if (part.metadata !== undefined) details += block("Part Metadata", prettyJson(part.metadata));
  return details;
}

export function prettyJson(value: JsonValue): string {
  return JSON.stringify(value, undefined, 2);
}
