/** Parts. 0.3 distinguishes them by `kind`, the model by the member they have. */

import { isObject, type JsonObject, type JsonValue, type Writable } from "../../model/json.ts";
import type { DataPart, Part, RawPart, TextPart, UrlPart } from "../../model/message.ts";
import type { Members } from "../shared/json-members.ts";
import type { ProtoTypes } from "./proto/schema.ts";

type ProtoFile = ProtoTypes["FilePart"];
type ProtoPart = ProtoTypes["Part"];

/**
 * What a 0.3 text or data part has no member for is carried in its metadata under reserved names. Peers that support
 * them decode it from there, so that nothing is lost between two such peers.
 */

/** `{filename?, mediaType?}` of a part that is not a file; `empty` if the metadata was present but empty. */
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
  const result: Record<string, JsonValue> = { ...metadata };
  const carried: Record<string, JsonValue> = {};
  if (filename !== undefined) carried.filename = filename;
  if (mediaType !== undefined) carried.mediaType = mediaType;
  if (metadata !== undefined && Object.keys(metadata).length === 0) carried.empty = true;
  if (wrapped) result[WRAPPED] = true;
  if (Object.keys(carried).length > 0) result[PART_EXTENSION] = carried;
  return result;
}

interface PartExtras {
  readonly metadata: JsonObject | undefined;
  readonly filename: string | undefined;
  readonly mediaType: string | undefined;
}

/** Reverses `encodePartMetadata` for a text or data part; for data, `unwrapData` runs first. */
function decodePartMetadata(metadata: JsonObject | undefined): PartExtras {
  const carried = metadata?.[PART_EXTENSION];
  if (metadata === undefined || !isObject(carried)) return { metadata, filename: undefined, mediaType: undefined };
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

/** Proto parts: files and data are nested one level deeper than in the model. */

export function toProtoPart(part: Part): ProtoPart {
  if ("text" in part) return textPart(part);
  if ("data" in part) return dataPart(part);
  const file = "raw" in part ? fileOf(undefined, part.raw, part) : fileOf(part.url, undefined, part);
  return part.metadata === undefined ? { file } : { file, metadata: part.metadata };
}

/** Most parts are plain text, which has the same form in both. */
function textPart(part: TextPart): ProtoPart {
  if (part.filename === undefined && part.mediaType === undefined) return part;
  const metadata = encodePartMetadata(part, false);
  return metadata === undefined ? { text: part.text } : { text: part.text, metadata };
}

function dataPart(part: DataPart): ProtoPart {
  const { object, wrapped } = wrapData(part.data);
  const metadata = encodePartMetadata(part, wrapped);
  return metadata === undefined ? { data: { data: object } } : { data: { data: object }, metadata };
}

function fileOf(
  fileWithUri: string | undefined,
  fileWithBytes: string | undefined,
  { filename, mediaType }: RawPart | UrlPart,
): ProtoFile {
  const file: Writable<ProtoFile> = {};
  if (fileWithUri !== undefined) file.fileWithUri = fileWithUri;
  if (fileWithBytes !== undefined) file.fileWithBytes = fileWithBytes;
  if (mediaType !== undefined) file.mimeType = mediaType;
  if (filename !== undefined) file.name = filename;
  return file;
}

/** For a validated part: it has one of text, file and data, and a file has one of its two forms. */
export function fromProtoPart(part: ProtoPart): Part {
  const { text, file, metadata } = part;
  if (text !== undefined) return metadata === undefined ? { text } : withPartMetadata({ text }, metadata);
  if (file === undefined) return readData(part);
  const { fileWithUri, fileWithBytes, mimeType, name } = file;
  const read = fileWithBytes !== undefined ? { raw: fileWithBytes } : { url: fileWithUri as string };
  return withNames(read, metadata, name, mimeType);
}

function readData({ data, metadata }: ProtoPart): Part {
  const given = data?.data ?? {};
  if (metadata === undefined) return { data: given };
  const unwrapped = unwrapData(given, metadata);
  return withPartMetadata({ data: unwrapped.data }, unwrapped.metadata);
}

/** Applies what the metadata carries for the part. */
function withPartMetadata(part: Writable<TextPart> | Writable<DataPart>, given: JsonObject | undefined): Part {
  const { metadata, filename, mediaType } = decodePartMetadata(given);
  return withNames(part, metadata, filename, mediaType);
}

function withNames(
  part: Writable<Part>,
  metadata: JsonObject | undefined,
  filename: string | undefined,
  mediaType: string | undefined,
): Part {
  if (metadata !== undefined) part.metadata = metadata;
  if (filename !== undefined) part.filename = filename;
  if (mediaType !== undefined) part.mediaType = mediaType;
  return part;
}

export function readPart(members: Members): Part {
  const metadata = members.struct("metadata");
  switch (kindOfPart(members)) {
    case "text": {
      const text = members.anyText("text");
      if (text === undefined) members.violateMember("text", "is required");
      return withPartMetadata({ text: text ?? "" }, metadata);
    }
    case "file":
      return members.requiredObject("file", (file) => readFile(file, metadata));
    case "data": {
      const data = members.raw("data");
      if (data === undefined) members.violateMember("data", "is required");
      // The specification requires an object; any other value is accepted as it is.
      const unwrapped = isObject(data) ? unwrapData(data, metadata) : { data: data ?? null, metadata };
      return withPartMetadata({ data: unwrapped.data }, unwrapped.metadata);
    }
    default:
      members.violate("must be a part of kind text, file or data");
      return UNREADABLE_PART;
  }
}

/** Placeholder: the reading fails anyway. */
const UNREADABLE_PART: Part = { text: "" };

/** Early clients send `type` for `kind`, as before 0.2. Without either, the only content member decides. */
function kindOfPart(members: Members): unknown {
  const kind = members.raw("kind") ?? members.raw("type");
  if (kind === "text" || kind === "file" || kind === "data") return kind;
  if (kind !== undefined && !members.reading.tolerant) return undefined;
  const contents = ["text", "file", "data"].filter((name) => members.raw(name) !== undefined);
  return contents.length === 1 ? contents[0] : undefined;
}

function readFile(file: Members, metadata: JsonObject | undefined): Part {
  const raw = file.bytes("bytes");
  const url = file.anyText("uri");
  if ((raw === undefined) === (url === undefined)) {
    file.violate("must have exactly one of bytes, uri");
    return UNREADABLE_PART;
  }
  const read = raw === undefined ? { url: url as string } : { raw };
  return withNames(read, metadata, file.text("name"), file.text("mimeType"));
}
