/** Parts. 0.3 distinguishes them by `kind`, the model by the member they have. */

import { isObject, type JsonObject, type JsonValue } from "../../model/json.ts";
import type { DataPart, Part, TextPart } from "../../model/message.ts";
import type { Members } from "../shared/json-members.ts";
import { readFile } from "../shared/legacy/decode.ts";
import type { ProtoTypes } from "./proto/schema.ts";

/**
 * Key in the metadata of a text or data part for `{filename?, mediaType?}`, which such parts cannot carry in 0.3: peers
 * that support the key lose nothing. `empty` if the metadata was present but empty.
 */
const PART_EXTENSION = "urn:dragoman:ext:part:v1";

/** True if data that is not an object is wrapped as `{value: …}`, as the official libraries do. */
const WRAPPED = "data_part_compat";

/** Data as an object, as 0.3 requires. */
export function wrapData(data: JsonValue): { readonly object: JsonObject; readonly wrapped: boolean } {
  return isObject(data) ? { object: data, wrapped: false } : { object: { value: data }, wrapped: true };
}

/** The part's metadata, including what has no member of its own. */
export function encodePartMetadata(part: TextPart | DataPart, wrapped: boolean): JsonObject | undefined {
  const { metadata, filename, mediaType } = part;
  if (filename === undefined && mediaType === undefined && !wrapped) return metadata;
  const isEmpty = metadata !== undefined && Object.keys(metadata).length === 0;
  const carried = {
    ...(filename !== undefined && { filename }),
    ...(mediaType !== undefined && { mediaType }),
    ...(isEmpty && { empty: true }),
  };
  return {
    ...metadata,
    ...(wrapped && { [WRAPPED]: true }),
    ...(Object.keys(carried).length > 0 && { [PART_EXTENSION]: carried }),
  };
}

/** Reverses `encodePartMetadata` for a text or data part; for data, `unwrapData` runs first. */
function decodePartMetadata(metadata: JsonObject) {
  const carried = metadata[PART_EXTENSION];
  if (!isObject(carried)) return { metadata };
  return {
    metadata: omitMember(metadata, PART_EXTENSION) ?? (carried.empty === true ? {} : undefined),
    filename: textOf(carried.filename),
    mediaType: textOf(carried.mediaType),
  };
}

/** Reverses `wrapData`; returns the original data and the remaining metadata. */
function unwrapData(
  object: JsonObject,
  metadata: JsonObject | undefined,
): { readonly data: JsonValue; readonly metadata: JsonObject | undefined } {
  if (metadata?.[WRAPPED] !== true || !Object.hasOwn(object, "value")) return { data: object, metadata };
  return { data: object.value as JsonValue, metadata: omitMember(metadata, WRAPPED) };
}

/** Undefined if no other member remains. */
function omitMember(metadata: JsonObject, name: string): JsonObject | undefined {
  const { [name]: _taken, ...rest } = metadata;
  return Object.keys(rest).length === 0 ? undefined : rest;
}

function textOf(value: JsonValue | undefined): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** Files and data are nested one level deeper than in the model. */
export function toProtoPart(part: Part): object {
  if ("text" in part) {
    // Most parts are plain text, which has the same form in both.
    if (part.filename === undefined && part.mediaType === undefined) return part;
    return { text: part.text, metadata: encodePartMetadata(part, false) };
  }
  if ("data" in part) {
    const { object, wrapped } = wrapData(part.data);
    return { data: { data: object }, metadata: encodePartMetadata(part, wrapped) };
  }
  const { filename: name, mediaType: mimeType, metadata } = part;
  const file = "raw" in part ? { fileWithBytes: part.raw, mimeType, name } : { fileWithUri: part.url, mimeType, name };
  return { file, metadata };
}

/** For a validated part: it has one of text, file and data, and a file has one of its two forms. */
export function fromProtoPart({ text, file, data, metadata }: ProtoTypes["Part"]): Part {
  if (text !== undefined) return metadata === undefined ? { text } : withPartMetadata({ text }, metadata);
  if (file === undefined) return withData(data?.data ?? {}, metadata);
  const { fileWithUri, fileWithBytes, mimeType: mediaType, name: filename } = file;
  return fileWithBytes === undefined
    ? { url: fileWithUri as string, metadata, filename, mediaType }
    : { raw: fileWithBytes, metadata, filename, mediaType };
}

function withData(object: JsonObject, given: JsonObject | undefined): Part {
  const { data, metadata } = unwrapData(object, given);
  return withPartMetadata({ data }, metadata);
}

/** Applies what the metadata carries for the part. */
function withPartMetadata(content: { text: string } | { data: JsonValue }, given: JsonObject | undefined): Part {
  return given === undefined ? content : { ...content, ...decodePartMetadata(given) };
}

export function readPart(members: Members): Part {
  const metadata = members.struct("metadata");
  switch (kindOfPart(members)) {
    case "text": {
      const text = members.anyText("text");
      if (text === undefined && !members.reading.fills("text")) members.violateMember("text", "is required");
      return withPartMetadata({ text: text ?? "" }, metadata);
    }
    case "file":
      if (members.raw("file") === undefined && members.reading.fills("file")) return { text: "", metadata };
      return { ...members.requiredObject("file", readFile), metadata };
    case "data": {
      const data = members.raw("data");
      if (data === undefined && !members.reading.fills("data")) members.violateMember("data", "is required");
      // The specification requires an object; any other value is accepted as it is.
      return isObject(data) ? withData(data, metadata) : withPartMetadata({ data: data ?? null }, metadata);
    }
    default:
      if (!members.reading.fills()) members.violate("must be a part of kind text, file or data");
      return { text: "", metadata };
  }
}

/**
 * Early clients send `type` for `kind`, as before 0.2. Without either, the only content member decides, and in a
 * response also if that is not of the kind.
 */
function kindOfPart(members: Members): unknown {
  const kind = members.raw("kind") ?? members.raw("type");
  const known = kind === "text" || kind === "file" || kind === "data" ? kind : undefined;
  if (!members.reading.lenient && kind !== undefined) return known;
  if (known !== undefined && members.raw(known) !== undefined) return known;
  const contents = ["text", "file", "data"].filter((name) => members.raw(name) !== undefined);
  return contents.length === 1 ? contents[0] : known;
}
