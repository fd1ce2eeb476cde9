/** Downloads the files of a message before an agent reads it: text files become text, all others local files. */

import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import { pathToFileURL } from "node:url";
import { GuardedFetchError, type GuardedFetchErrorCode } from "../../../../core/auth/guarded-fetch/errors.ts";
import { mediaTypeOfName } from "../../../../core/model/media-types.ts";
import {
  isRawPart,
  isUrlPart,
  type Message,
  type Part,
  type RawPart,
  type UrlPart,
} from "../../../../core/model/message.ts";
import type { Log } from "../../../../core/model/ports.ts";
import { parseUrl } from "../../../../core/model/url.ts";
import { fileIdOf, splitInlineBytes } from "../../codec/metadata.ts";
import { isTextual } from "../../codec/parts.ts";
import { type Language, type PhoneTextName, phoneText } from "../../codec/phone-texts.ts";
import type { FileIntake } from "../../runtime/ports.ts";
import type { FileStore, StoredFile } from "./file-store.ts";

interface FileIntakeOptions {
  /** For untrusted targets, with limits on time and size. */
  readonly fetch: (url: string) => Promise<Response>;
  readonly store: Pick<FileStore, "add">;
  readonly log: Log;
}

/** The platform's maximum for one message. */
const MAX_FILES = 6;
const MAX_CONCURRENT = 8;
/** Longer text is passed as a file. */
const MAX_TEXT_BYTES = 256 * 1024;

/** Maximum length of a DNS name with a port. */
const MAX_HOST_LENGTH = 260;

const UNKNOWN_TYPE = "application/octet-stream";

export function createFileIntake(options: FileIntakeOptions): FileIntake {
  const limit = createSemaphore(MAX_CONCURRENT);
  return {
    hasFiles: ({ parts }) => parts.some((part) => needsFetch(part) || isTextFile(part)),
    async download(message: Message, language: Language): Promise<Message> {
      let files = 0;
      const taken = message.parts.map((part) => {
        if (isTextFile(part)) return [toTextPart(part)];
        if (!needsFetch(part)) return [part];
        const { part: file, raw } = splitInlineBytes(part);
        // These URLs were not checked by the guard, so they are not passed to the agent.
        if (++files > MAX_FILES) {
          return [raw === undefined ? toErrorPart(file, TOO_MANY, language) : fromInlineBytes(file, raw)];
        }
        return limit(() => downloadPart(file, raw, language, options));
      });
      const parts = await Promise.all(taken);
      return { ...message, parts: parts.flat() };
    },
  };
}

/** Whatever its URL: only the guard interprets URLs. A file stored at the platform has an id instead. */
function needsFetch(part: Part): part is UrlPart {
  return isUrlPart(part) && fileIdOf(part) === undefined;
}

function isTextFile(part: Part): part is RawPart {
  return isRawPart(part) && isTextual(mediaTypeOf(nameOf(part), part.mediaType));
}

/** `raw`: the inline bytes that were sent with the URL, if any. */
async function downloadPart(
  part: UrlPart,
  raw: string | undefined,
  language: Language,
  { fetch, log, store }: FileIntakeOptions,
): Promise<readonly Part[]> {
  const name = nameOf(part);
  const url = parseUrl(part.url);
  try {
    const mediaType = mediaTypeOf(name, part.mediaType);
    const stored = await store.add(name, await contentOf(part.url, mediaType, fetch));
    return [await toLocalPart(part, stored, mediaType)];
  } catch (error) {
    const reason = reasonOf(error);
    const why = phoneText("en", ...reason);
    // Neither the path nor the query is logged: they grant access to the file.
    log.warn({ host: url?.host.slice(0, MAX_HOST_LENGTH), why }, "A file of Xiaoyi's user could not be taken in.");
    if (raw !== undefined) return [fromInlineBytes(part, raw)];
    if (url === undefined || isForbidden(error)) return [toErrorPart(part, reason, language)];
    // The URL as parsed here: another parser might read a different host from the original string.
    return [{ ...part, url: url.href }, toErrorPart(part, reason, language)];
  }
}

/** Agents fetch without a guard, so they do not receive URLs that it refuses. */
const FORBIDDEN: ReadonlySet<GuardedFetchErrorCode> = new Set<GuardedFetchErrorCode>([
  "bad-url",
  "forbidden-scheme",
  "credentials-in-url",
  "forbidden-target",
  "bad-redirect",
  "too-many-redirects",
]);

function isForbidden(error: unknown): boolean {
  return error instanceof GuardedFetchError && FORBIDDEN.has(error.code);
}

/** Why a file is missing: the name of a text and its values. */
type Reason = readonly [name: PhoneTextName, ...values: number[]];

const TOO_MANY: Reason = ["fileTooMany", MAX_FILES];

const FETCH_TEXTS = {
  "bad-url": "fileAddress",
  "forbidden-scheme": "fileAddress",
  "credentials-in-url": "fileAddress",
  "forbidden-target": "fileForbidden",
  unreachable: "fileUnreachable",
  "bad-redirect": "fileForbidden",
  "too-many-redirects": "fileForbidden",
  "too-large": "fileTooLarge",
  timeout: "fileTimeout",
  "bad-response": "fileUnreadable",
} as const satisfies Record<GuardedFetchErrorCode, PhoneTextName>;

class WrongContentError extends Error {
  override readonly name = "WrongAnswer";
  readonly reason: Reason;

  constructor(reason: Reason) {
    super(phoneText("en", ...reason));
    this.reason = reason;
  }
}

async function contentOf(
  url: string,
  mediaType: string,
  fetch: FileIntakeOptions["fetch"],
): Promise<AsyncIterable<Uint8Array> | Iterable<Uint8Array>> {
  const response = await fetch(url);
  const { body, headers, status } = response;
  const isPage = /^text\/html\b/i.test(headers.get("content-type") ?? "") && !/\bx?html\b/i.test(mediaType);
  if (status === 200 && !isPage) return body ?? [];
  await body?.cancel();
  throw new WrongContentError(status === 200 ? ["fileIsPage"] : ["fileStatus", status]);
}

/** With the name it is stored under, which is safe elsewhere, too. */
async function toLocalPart(part: UrlPart, { bytes, path }: StoredFile, mediaType: string): Promise<Part> {
  const { url, ...rest } = part;
  const isShort = bytes <= MAX_TEXT_BYTES;
  const text = isShort && isTextual(mediaType) ? decodeText(await readFile(path)) : undefined;
  const filename = basename(path);
  return text === undefined
    ? { ...rest, filename, mediaType, url: pathToFileURL(path).href }
    : { ...withoutMediaType(rest), filename, text };
}

/** Agents that accept text accept it without a media type; the file name shows its kind. */
function withoutMediaType<T extends object>({ mediaType, ...rest }: T & { readonly mediaType?: string }) {
  return rest;
}

function fromInlineBytes({ url: _dead, ...rest }: UrlPart, raw: string): Part {
  const part: RawPart = { ...rest, raw };
  return isTextFile(part) ? toTextPart(part) : part;
}

function toTextPart(part: RawPart): Part {
  const { raw, ...rest } = part;
  const bytes = Buffer.from(raw, "base64");
  const text = bytes.byteLength <= MAX_TEXT_BYTES ? decodeText(bytes) : undefined;
  return text === undefined ? part : { ...withoutMediaType(rest), text };
}

/** As text, because some agents accept nothing else, and the rest of the message is still for them. */
function toErrorPart({ filename }: Part, reason: Reason, language: Language): Part {
  const name = filename === undefined ? "" : ` ${JSON.stringify(filename)}`;
  return { text: phoneText(language, "fileMissing", name, phoneText(language, ...reason)) };
}

function reasonOf(error: unknown): Reason {
  if (error instanceof GuardedFetchError) return [FETCH_TEXTS[error.code]];
  return error instanceof WrongContentError ? error.reason : ["fileNotStored"];
}

/** The file name from the message, else the last segment of the URL. */
function nameOf(part: RawPart | UrlPart): string {
  if (part.filename !== undefined) return part.filename;
  const path = (isUrlPart(part) ? parseUrl(part.url)?.pathname : undefined) ?? "";
  return decodePath(path.slice(path.lastIndexOf("/") + 1));
}

function decodePath(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // Not percent-encoded, or incorrectly: the name is used unchanged.
    return text;
  }
}

/** The declared media type, unless it is generic. */
function mediaTypeOf(name: string, declared: string | undefined): string {
  if (declared?.includes("/") === true && declared !== UNKNOWN_TYPE) return declared;
  return mediaTypeOfName(name) ?? UNKNOWN_TYPE;
}

/** Limits concurrency; further callers wait in order. */
function createSemaphore(count: number): <T>(work: () => Promise<T>) => Promise<T> {
  let free = count;
  const waiting: (() => void)[] = [];
  return async (work) => {
    if (free > 0) free--;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next === undefined) free++;
      else next();
    }
  };
}

const ENCODINGS = [
  { mark: [0xef, 0xbb, 0xbf], label: "utf-8" },
  { mark: [0xff, 0xfe], label: "utf-16le" },
  { mark: [0xfe, 0xff], label: "utf-16be" },
] as const;

/** Undefined if the bytes are not text in UTF-8 or in the encoding of their byte order mark. */
function decodeText(bytes: Uint8Array): string | undefined {
  const encoding = ENCODINGS.find(({ mark }) => mark.every((byte, index) => bytes[index] === byte));
  try {
    const text = new TextDecoder(encoding?.label ?? "utf-8", { fatal: true }).decode(bytes);
    return text.includes("\0") ? undefined : text;
  } catch {
    // Invalid in this encoding.
    return undefined;
  }
}
