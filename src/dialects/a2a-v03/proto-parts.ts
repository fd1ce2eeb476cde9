/** Parts: files and data stand one level deeper here than in the model. */
import type { JsonObject } from "../../model/json.ts";
import type { DataPart, Part, RawPart, TextPart, UrlPart } from "../../model/part.ts";
import { metadataOnWire, readDataObject, readMetadataOnWire, toDataObject } from "./part-extension.ts";
import type { ProtoFile, ProtoPart } from "./proto-schema.ts";

export function toProtoPart(part: Part): ProtoPart {
  if ("text" in part) return textPart(part);
  if ("data" in part) return dataPart(part);
  const file = "raw" in part ? fileOf(undefined, part.raw, part) : fileOf(part.url, undefined, part);
  return part.metadata === undefined ? { file } : { file, metadata: part.metadata };
}

/** Most parts are text and nothing else, which is spelled the same in both. */
function textPart(part: TextPart): ProtoPart {
  if (part.filename === undefined && part.mediaType === undefined) return part;
  const metadata = metadataOnWire(part, false);
  return metadata === undefined ? { text: part.text } : { text: part.text, metadata };
}

function dataPart(part: DataPart): ProtoPart {
  const { object, wrapped } = toDataObject(part.data);
  const metadata = metadataOnWire(part, wrapped);
  return metadata === undefined ? { data: { data: object } } : { data: { data: object }, metadata };
}

function fileOf(
  fileWithUri: string | undefined,
  fileWithBytes: string | undefined,
  { filename, mediaType }: RawPart | UrlPart,
): ProtoFile {
  const file: { -readonly [Member in keyof ProtoFile]: ProtoFile[Member] } = {};
  if (fileWithUri !== undefined) file.fileWithUri = fileWithUri;
  if (fileWithBytes !== undefined) file.fileWithBytes = fileWithBytes;
  if (mediaType !== undefined) file.mimeType = mediaType;
  if (filename !== undefined) file.name = filename;
  return file;
}

/** The part was validated: it has one of text, file and data, and a file has one of its two forms. */
export function fromProtoPart(part: ProtoPart): Part {
  const { text, file, metadata } = part;
  if (text !== undefined) return metadata === undefined ? { text } : described({ text }, metadata);
  if (file === undefined) return readData(part);
  const { fileWithUri, fileWithBytes, mimeType, name } = file;
  const read: Writable<RawPart> | Writable<UrlPart> =
    fileWithBytes !== undefined ? { raw: fileWithBytes } : { url: fileWithUri as string };
  if (metadata !== undefined) read.metadata = metadata;
  if (name !== undefined) read.filename = name;
  if (mimeType !== undefined) read.mediaType = mimeType;
  return read;
}

type Writable<T> = { -readonly [Member in keyof T]: T[Member] };

function readData({ data, metadata }: ProtoPart): Part {
  const given = data?.data ?? {};
  if (metadata === undefined) return { data: given };
  const unwrapped = readDataObject(given, metadata);
  return described({ data: unwrapped.data }, unwrapped.metadata);
}

/** The part with what its metadata carries for it. */
function described(part: Writable<TextPart> | Writable<DataPart>, given: JsonObject | undefined): Part {
  const { metadata, filename, mediaType } = readMetadataOnWire(given);
  if (metadata !== undefined) part.metadata = metadata;
  if (filename !== undefined) part.filename = filename;
  if (mediaType !== undefined) part.mediaType = mediaType;
  return part;
}
