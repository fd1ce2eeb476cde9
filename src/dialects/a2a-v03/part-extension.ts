/**
 * What a text or data part of 0.3 has no member for travels in its metadata, under names of its own, and is taken out
 * again by whoever knows them: nothing is lost between two that do.
 */
import type { JsonObject, JsonValue } from "../../model/json.ts";
import type { DataPart, TextPart } from "../../model/part.ts";
import { isRecord } from "../shared/proto-json-reading.ts";

/** `{filename?, mediaType?}` of a part that is no file; `empty` where the metadata was there with nothing in it. */
const PART_EXTENSION = "urn:dragoman:ext:part:v1";

/** Set to true where data that is no object stands as `{value: …}`: the official libraries do the same. */
const WRAPPED = "data_part_compat";

/** Data as the object that 0.3 wants it to be. */
export function toDataObject(data: JsonValue): { readonly object: JsonObject; readonly wrapped: boolean } {
  return isObject(data) ? { object: data, wrapped: false } : { object: { value: data }, wrapped: true };
}

/** The part's metadata with what has no other place in it. */
export function metadataOnWire(part: TextPart | DataPart, wrapped: boolean): JsonObject | undefined {
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

/** Takes out what `metadataOnWire` put in for a text or data part; for data, `readDataObject` goes first. */
export function readMetadataOnWire(metadata: JsonObject | undefined): PartExtras {
  const carried = metadata?.[PART_EXTENSION];
  if (metadata === undefined || !isObject(carried)) return { metadata, filename: undefined, mediaType: undefined };
  return {
    metadata: without(metadata, PART_EXTENSION) ?? (carried.empty === true ? {} : undefined),
    filename: textOf(carried.filename),
    mediaType: textOf(carried.mediaType),
  };
}

/** Data as it was before it was made an object, and the rest of its metadata. */
export function readDataObject(
  object: JsonObject,
  metadata: JsonObject | undefined,
): { readonly data: JsonValue; readonly metadata: JsonObject | undefined } {
  if (metadata?.[WRAPPED] !== true || !Object.hasOwn(object, "value")) return { data: object, metadata };
  return { data: object.value as JsonValue, metadata: without(metadata, WRAPPED) };
}

/** Undefined where nothing else was in it. */
function without(metadata: JsonObject, name: string): JsonObject | undefined {
  const { [name]: _taken, ...rest } = metadata;
  return Object.keys(rest).length === 0 ? undefined : rest;
}

/** Narrows without forgetting that the members are JSON. */
function isObject(value: JsonValue | undefined): value is JsonObject {
  return isRecord(value);
}

function textOf(value: JsonValue | undefined): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}
