/** Encodes and decodes parts of messages and artifacts. */

import type { Members } from "../../../core/dialects/shared/json-members.ts";
import { toStandardBase64 } from "../../../core/dialects/shared/proto/json-reading.ts";
import { EXTENSIONS } from "../../../core/model/extensions.ts";
import { isObject, type JsonObject, type Writable } from "../../../core/model/json.ts";
import { type Loss, toLoss } from "../../../core/model/loss.ts";
import { mediaTypeOfExtension } from "../../../core/model/media-types.ts";
import { isDataPart, isRawPart, isTextPart, type Part } from "../../../core/model/message.ts";
import type { PartWire } from "./frames.ts";
import { LOSSES } from "./losses.ts";
import {
  fallbackTextOf,
  fileIdOf,
  isLocalFile,
  isShowable,
  reasoningOf,
  reasoningPart,
  showableDataOf,
  showablePart,
  withInlineBytes,
  XIAOYI_EXTENSION,
} from "./metadata.ts";

/** The platform sometimes sends a file kind instead of a media type, e.g. `jpeg`; kinds are also file extensions. */
export function toMediaType(word: string): string {
  return mediaTypeOfExtension(word) ?? word;
}

const TEXTUAL =
  /^(?:text\/.+|application\/(?:json|x-ndjson|xml|yaml|x-yaml|toml|javascript|x-sh|sql)|[^/]+\/.+\+(?:json|xml|yaml))$/i;

/** Whether files of this type are text. Parameters are ignored. */
export function isTextual(mediaType: string): boolean {
  return TEXTUAL.test(mediaType.replace(/\s*;.*$/s, ""));
}

export function encodePart(part: Part, path: string, losses: Loss[]): PartWire {
  loseMetadata(part.metadata, path, losses);
  const reasoning = reasoningOf(part);
  if (reasoning !== undefined) return { kind: "reasoningText", reasoningText: reasoning };
  const showable = showableDataOf(part);
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
  const fileId = fileIdOf(part);
  if (fileId !== undefined) return { kind: "file", file: { name, mimeType, fileId } };
  if (isRawPart(part)) return { kind: "file", file: { name, mimeType, bytes: part.raw } };
  if (isLocalFile(part)) {
    losses.push(toLoss(LOSSES.fileAsName, `${path}.url`));
    return { kind: "text", text: name ?? mimeType ?? "" };
  }
  return { kind: "file", file: { name, mimeType, uri: part.url } };
}

/** `path` is the path of the object that holds the parts. */
export function encodeParts(parts: readonly Part[], path: string, losses: Loss[]): PartWire[] {
  return parts.map((part, index) => encodePart(part, `${path}.parts[${index}]`, losses));
}

const OWN_METADATA: ReadonlySet<string> = new Set([EXTENSIONS.reasoning, XIAOYI_EXTENSION]);

export function loseMetadata(metadata: JsonObject | undefined, path: string, losses: Loss[]): void {
  if (metadata === undefined) return;
  const names = Object.keys(metadata);
  if (names.length > 0 && names.every((name) => OWN_METADATA.has(name))) return;
  losses.push(toLoss(LOSSES.partMetadata, `${path}.metadata`));
}

/** Omitting an implied media type is not a loss. */
export function loseNames({ filename, mediaType }: Part, implied: string, path: string, losses: Loss[]): void {
  if (filename !== undefined) losses.push(toLoss(LOSSES.partFilename, `${path}.filename`));
  if (mediaType !== undefined && mediaType !== implied) {
    losses.push(toLoss(LOSSES.partMediaType, `${path}.mediaType`));
  }
}

/** A part's content is in the member with the name of its kind. */
const KINDS = ["text", "reasoningText", "file", "data"] as const;
type Kind = (typeof KINDS)[number];

/** `kind` decides if the member it names exists, otherwise the only content does. */
function kindOf(members: Members): Kind | undefined {
  const named = KINDS.find((kind) => kind === members.raw("kind"));
  if (named !== undefined && members.raw(named) !== undefined) return named;
  const present = KINDS.filter((kind) => members.raw(kind) !== undefined);
  return present.length === 1 ? present[0] : undefined;
}

export function hasKnownContent(members: Members): boolean {
  return KINDS.some((kind) => members.raw(kind) !== undefined);
}

/** As `decodePart`; undefined for a part without known content, as new kinds may be added. */
export function decodeKnownPart(members: Members): Part | undefined {
  if (hasKnownContent(members)) return decodePart(members, true);
  members.reading.lose(LOSSES.unknownPart);
  return undefined;
}

/** `keepsBytes`: a file with a URL keeps the bytes that were sent with it. */
export function decodePart(members: Members, keepsBytes = false): Part {
  switch (kindOf(members)) {
    case "text":
      return { text: members.anyText("text") ?? "" };
    case "reasoningText":
      return reasoningPart(members.anyText("reasoningText") ?? "");
    case "data":
      return decodeData(members);
    case "file":
      return members.object("file", (file) => decodeFile(file, keepsBytes)) ?? { text: "" };
    case undefined:
      members.violate("must have exactly one of text, reasoningText, file, data");
      return { text: "" };
  }
}

function decodeData(members: Members): Part {
  const data = members.json("data");
  return isShowable(data) ? showablePart(data, fallbackTextOf(data)) : { data };
}

/**
 * A file may have both bytes and a URL. The platform prefers the URL; a reader that does not fetch (`keepsBytes` is
 * false) gets the bytes, which need no fetching.
 */
function decodeFile(members: Members, keepsBytes: boolean): Part {
  const file: Writable<Part> = decodeFileContent(members);
  const filename = members.text("name");
  const mediaType = members.text("mimeType");
  if (filename !== undefined) file.filename = filename;
  if (mediaType !== undefined) file.mediaType = toMediaType(mediaType);
  const bytes = members.raw("bytes");
  if (!("url" in file) || typeof bytes !== "string" || bytes === "") return file;
  const spare = toStandardBase64(bytes);
  if (spare === undefined) return file;
  const { url, ...rest } = file;
  return keepsBytes ? withInlineBytes(file, spare) : { ...rest, raw: spare };
}

function decodeFileContent(members: Members): Writable<Part> {
  const url = members.text("uri");
  if (url !== undefined) return { url };
  const raw = members.bytes("bytes");
  if (raw !== undefined) return { raw };
  const fileId = members.text("fileId");
  if (fileId !== undefined) {
    members.reading.lose(LOSSES.unreadableFile);
    return { url: `urn:xiaoyi:file:${fileId}`, metadata: { [XIAOYI_EXTENSION]: { fileId } } };
  }
  if (members.has("uri")) return { url: "" };
  members.violate("must have one of uri, bytes, fileId");
  return { url: "" };
}
