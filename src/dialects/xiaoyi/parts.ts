/** Parts of messages and artifacts, both ways. */

import { EXTENSIONS } from "../../model/extensions.ts";
import type { JsonObject } from "../../model/json.ts";
import { type Loss, toLoss } from "../../model/loss.ts";
import { isDataPart, isRawPart, isTextPart, type Part } from "../../model/message.ts";
import type { Members } from "../shared/legacy/members.ts";
import { toStandardBase64 } from "../shared/proto/json-reading.ts";
import { fallbackTextOf } from "./fallback-text.ts";
import { LOSSES } from "./losses.ts";
import {
  fileIdIn,
  isLocalFile,
  isObject,
  isShowable,
  reasoningOf,
  reasoningPart,
  showableIn,
  showablePart,
  withSpareBytes,
} from "./marks.ts";
import { toMediaType } from "./media-types.ts";
import type { PartWire } from "./wire.ts";

/** `path` is that of the part. */
export function toPartWire(part: Part, path: string, losses: Loss[]): PartWire {
  loseMetadata(part.metadata, path, losses);
  const reasoning = reasoningOf(part);
  if (reasoning !== undefined) return { kind: "reasoningText", reasoningText: reasoning };
  const showable = showableIn(part);
  if (showable !== undefined) return { kind: "data", data: showable };
  if (isTextPart(part)) {
    loseNames(part, "text/markdown", path, losses);
    return { kind: "text", text: part.text };
  }
  if (isDataPart(part)) {
    loseNames(part, "application/json", path, losses);
    if (isObject(part.data)) return { kind: "data", data: part.data };
    losses.push(toLoss(LOSSES.partData, `${path}.data`));
    return { kind: "data", data: { value: part.data } };
  }
  const { filename: name, mediaType: mimeType } = part;
  const fileId = fileIdIn(part);
  if (fileId !== undefined) return { kind: "file", file: { name, mimeType, fileId } };
  if (isRawPart(part)) return { kind: "file", file: { name, mimeType, bytes: part.raw } };
  if (isLocalFile(part)) {
    losses.push(toLoss(LOSSES.fileAsName, `${path}.url`));
    return { kind: "text", text: name ?? mimeType ?? "" };
  }
  return { kind: "file", file: { name, mimeType, uri: part.url } };
}

/** `path` is that of whatever has the parts. */
export function toPartWires(parts: readonly Part[], path: string, losses: Loss[]): PartWire[] {
  return parts.map((part, index) => toPartWire(part, `${path}.parts[${index}]`, losses));
}

const OWN_MARKS: ReadonlySet<string> = new Set([EXTENSIONS.reasoning, EXTENSIONS.xiaoyi]);

export function loseMetadata(metadata: JsonObject | undefined, path: string, losses: Loss[]): void {
  if (metadata === undefined) return;
  const names = Object.keys(metadata);
  if (names.length > 0 && names.every((name) => OWN_MARKS.has(name))) return;
  losses.push(toLoss(LOSSES.partMetadata, `${path}.metadata`));
}

/** A media type that goes without saying is not lost by not being said. */
export function loseNames({ filename, mediaType }: Part, implied: string, path: string, losses: Loss[]): void {
  if (filename !== undefined) losses.push(toLoss(LOSSES.partFilename, `${path}.filename`));
  if (mediaType !== undefined && mediaType !== implied) {
    losses.push(toLoss(LOSSES.partMediaType, `${path}.mediaType`));
  }
}

/** A part's content is in the member named like its kind. */
const KINDS = ["text", "reasoningText", "file", "data"] as const;
type Kind = (typeof KINDS)[number];

/** `kind` decides where it names what is there, else the only content does. */
function kindOf(members: Members): Kind | undefined {
  const named = KINDS.find((kind) => kind === members.raw("kind"));
  if (named !== undefined && members.raw(named) !== undefined) return named;
  const present = KINDS.filter((kind) => members.raw(kind) !== undefined);
  return present.length === 1 ? present[0] : undefined;
}

/** As `readPart`; undefined for a part that holds nothing known, for there will be kinds that are not known yet. */
export function readKnownPart(members: Members): Part | undefined {
  if (KINDS.some((kind) => members.raw(kind) !== undefined)) return readPart(members, true);
  members.reading.lose(LOSSES.unknownPart);
  return undefined;
}

/** `keepsBytes`: a file with an address keeps the bytes that came with it. */
export function readPart(members: Members, keepsBytes = false): Part {
  switch (kindOf(members)) {
    case "text":
      return { text: members.anyText("text") ?? "" };
    case "reasoningText":
      return reasoningPart(members.anyText("reasoningText") ?? "");
    case "data":
      return readData(members);
    case "file":
      return members.object("file", (file) => readFile(file, keepsBytes)) ?? { text: "" };
    case undefined:
      members.violate("must have exactly one of text, reasoningText, file, data");
      return { text: "" };
  }
}

function readData(members: Members): Part {
  const data = members.json("data");
  return isShowable(data) ? showablePart(data, fallbackTextOf(data)) : { data };
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/**
 * A file may come with both its bytes and a place to fetch it from. The place is the platform's preference; a
 * reader that does not fetch (`keepsBytes` is false) gets the bytes, which need no place.
 */
function readFile(members: Members, keepsBytes: boolean): Part {
  const file: Mutable<Part> = readFileContent(members);
  const filename = members.text("name");
  const mediaType = members.text("mimeType");
  if (filename !== undefined) file.filename = filename;
  if (mediaType !== undefined) file.mediaType = toMediaType(mediaType);
  const bytes = members.raw("bytes");
  if (!("url" in file) || typeof bytes !== "string" || bytes === "") return file;
  const spare = toStandardBase64(bytes);
  if (spare === undefined) return file;
  const { url, ...rest } = file;
  return keepsBytes ? withSpareBytes(file, spare) : { ...rest, raw: spare };
}

function readFileContent(members: Members): Mutable<Part> {
  const url = members.text("uri");
  if (url !== undefined) return { url };
  const raw = members.bytes("bytes");
  if (raw !== undefined) return { raw };
  const fileId = members.text("fileId");
  if (fileId !== undefined) {
    members.reading.lose(LOSSES.unreadableFile);
    return { url: `urn:xiaoyi:file:${fileId}`, metadata: { [EXTENSIONS.xiaoyi]: { fileId } } };
  }
  if (members.has("uri")) return { url: "" };
  members.violate("must have one of uri, bytes, fileId");
  return { url: "" };
}
