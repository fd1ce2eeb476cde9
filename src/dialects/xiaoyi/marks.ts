/** What of Xiaoyi the model has no field for, in `metadata`. */

import { EXTENSIONS } from "../../model/extensions.ts";
import type { JsonObject, JsonValue } from "../../model/json.ts";
import { isTextPart, isUrlPart, type Part, type UrlPart } from "../../model/message.ts";
import { isRecord } from "../shared/proto/json-reading.ts";

/** The members of a data part that the platform acts upon. */
const SHOWN_MEMBERS = ["commands", "cardsInfo", "chipsInfo", "reference", "fileInfo"] as const;

/** Whether a device would make anything of it. */
export function isShowable(data: JsonValue): data is JsonObject {
  return isObject(data) && SHOWN_MEMBERS.some((member) => data[member] !== undefined);
}

export function isObject(value: JsonValue | undefined): value is JsonObject {
  return isRecord(value);
}

export function xiaoyiMark(metadata: JsonObject | undefined): JsonObject | undefined {
  const mark = metadata?.[EXTENSIONS.xiaoyi];
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
  return { text, metadata: { [EXTENSIONS.xiaoyi]: { data } } };
}

/** The thing itself, where a part is one. */
export function showableIn(part: Part): JsonObject | undefined {
  const data = xiaoyiMark(part.metadata)?.data;
  return isObject(data) ? data : undefined;
}

/** Of a file that was uploaded to the platform. */
export function fileIdIn(part: Part): string | undefined {
  const id = xiaoyiMark(part.metadata)?.fileId;
  return typeof id === "string" ? id : undefined;
}

/** The bytes of a file that came with an address, too: for when nothing can be fetched from there. */
export function withSpareBytes(part: UrlPart, raw: string): UrlPart {
  return { ...part, metadata: { [EXTENSIONS.xiaoyi]: { raw } } };
}

/** A file of a message without its spare bytes, and these. */
export function takeSpareBytes(file: UrlPart): { readonly part: UrlPart; readonly raw: string | undefined } {
  const { metadata, ...part } = file;
  const raw = xiaoyiMark(metadata)?.raw;
  return typeof raw === "string" ? { part, raw } : { part: file, raw: undefined };
}

/** On the machine of the agent: nobody else can open it, or should know where it is. */
export function isLocalFile(part: Part): boolean {
  return isUrlPart(part) && /^file:/i.test(part.url);
}

/** The same part, with the id under which the platform has it. */
export function withFileId(part: Part, fileId: string): Part {
  return { ...part, metadata: { ...part.metadata, [EXTENSIONS.xiaoyi]: { ...xiaoyiMark(part.metadata), fileId } } };
}
