/** Decodes the text and the files of a post as parts of the model. */

import type { JsonValue } from "../../../core/model/json.ts";
import type { Part } from "../../../core/model/message.ts";
import { decodeUtf8, parseJson } from "../../../core/wire/parse-json.ts";
import { codeBlocks } from "./body.ts";

/** Name of a file with data that is too large for a text. */
export const DATA_FILE = "data.json";
const DATA_FILES = /^data(?:-\d{1,4})?\.json$/;

const JSON_LIMITS = { maxDepth: 32, maxValues: 100_000 };

/** Code blocks of JSON at the end of a text are data; elsewhere they belong to the text. */
export function decodeBody(body: string): readonly Part[] {
  if (!endsWithFence(body)) return body === "" ? [] : [{ text: body }];
  const lines = body.split("\n");
  let end = lengthWithoutBlankLines(lines, lines.length);
  const data: Part[] = [];
  for (const block of codeBlocks(lines).reverse()) {
    if (block.last !== end - 1 || block.language !== "json") break;
    const value = parseData(lines.slice(block.first + 1, block.last).join("\n"));
    if (value === undefined) break;
    data.push({ data: value.json });
    end = lengthWithoutBlankLines(lines, block.first);
  }
  if (data.length === 0) return [{ text: body }];
  data.reverse();
  const text = lines.slice(0, end).join("\n");
  return text === "" ? data : [{ text }, ...data];
}

export function endsWithData(text: string): boolean {
  return decodeBody(text).some((part) => "data" in part);
}

export function decodeFile(file: { readonly name: string; readonly mediaType: string }, bytes: Uint8Array): Part {
  const { mediaType, name: filename } = file;
  if (DATA_FILES.test(filename)) {
    const value = parseBytes(bytes);
    if (value !== undefined) return { data: value.json };
  }
  return { raw: Buffer.from(bytes).toString("base64"), filename, mediaType };
}

function endsWithFence(text: string): boolean {
  const end = text.trimEnd();
  return end.endsWith("```") || end.endsWith("~~~");
}

function lengthWithoutBlankLines(lines: readonly string[], length: number): number {
  let end = length;
  while (end > 0 && lines[end - 1]?.trim() === "") end--;
  return end;
}

function parseBytes(bytes: Uint8Array): { readonly json: JsonValue } | undefined {
  try {
    return parseData(decodeUtf8(bytes));
  } catch {
    return undefined;
  }
}

/** Undefined if it is not JSON within the limits. */
function parseData(text: string): { readonly json: JsonValue } | undefined {
  try {
    return { json: parseJson(text, JSON_LIMITS) as JsonValue };
  } catch {
    return undefined;
  }
}
