/** Files of a message are brought here before an agent reads it: text as text, all else as a file on this machine. */

import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import { pathToFileURL } from "node:url";
import { GuardedFetchError, type GuardedFetchErrorCode } from "../../../auth/guarded-fetch/errors.ts";
import { fileIdOf, splitInlineBytes } from "../../../dialects/xiaoyi/metadata.ts";
import { isTextual, mediaTypeOfName } from "../../../dialects/xiaoyi/parts.ts";
import { type Language, type PhoneTextName, phoneText } from "../../../dialects/xiaoyi/phone-texts.ts";
import type { FileIntake } from "../../../dialects/xiaoyi/ports.ts";
import { isRawPart, isUrlPart, type Message, type Part, type RawPart, type UrlPart } from "../../../model/message.ts";
import type { Log } from "../../../model/ports.ts";
import type { FileStore, StoredFile } from "./file-store.ts";

interface FileIntakeOptions {
  /** For targets that somebody else named, with limits on time and size. */
  readonly fetch: (url: string) => Promise<Response>;
  readonly store: Pick<FileStore, "add">;
  readonly log: Log;
}

/** As many as the platform lets a user send. */
const MAX_FILES = 6;
const MAX_CONCURRENT = 8;
/** Text beyond this is a file like others. */
const MAX_TEXT_BYTES = 256 * 1024;

/** Of a name that a name server can know, with a port. */
const MAX_HOST_LENGTH = 260;

const UNKNOWN_TYPE = "application/octet-stream";

export function createFileIntake(options: FileIntakeOptions): FileIntake {
  const semaphore = new Semaphore(MAX_CONCURRENT);
  return {
    hasFiles: ({ parts }) => parts.some((part) => needsFetch(part) || isTextFile(part)),
    async download(message: Message, language: Language): Promise<Message> {
      let files = 0;
      const taken = message.parts.map((part) => {
        if (isTextFile(part)) return [toTextPart(part)];
        if (!needsFetch(part)) return [part];
        const { part: file, raw } = splitInlineBytes(part);
        // Nobody has looked where these lead to, so that nobody is led there.
        if (++files > MAX_FILES) {
          return [raw === undefined ? toErrorPart(file, TOO_MANY, language) : fromInlineBytes(file, raw)];
        }
        return semaphore.run(() => downloadPart(file, raw, language, options));
      });
      const parts = await Promise.all(taken);
      return { ...message, parts: parts.flat() };
    },
  };
}

/** Whatever its address is: only the guard knows what addresses mean. What the platform keeps has an id instead. */
function needsFetch(part: Part): part is UrlPart {
  return isUrlPart(part) && fileIdOf(part) === undefined;
}

function isTextFile(part: Part): part is RawPart {
  return isRawPart(part) && isTextual(mediaTypeOf(nameOf(part), part.mediaType));
}

/** `raw`: the bytes of the file, where they came with its address. */
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
    // Neither the path nor the query: they are the key to the file.
    log.warn({ host: url?.host.slice(0, MAX_HOST_LENGTH), why }, "A file of Xiaoyi's user could not be taken in.");
    if (raw !== undefined) return [fromInlineBytes(part, raw)];
    if (url === undefined || isForbidden(error)) return [toErrorPart(part, reason, language)];
    // As it was read here: another reader may find another host in what was sent.
    return [{ ...part, url: url.href }, toErrorPart(part, reason, language)];
  }
}

/** Agents fetch without a guard: where it does not go, they are not sent either. */
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

/** Why a file is missing: a sentence and what it is about. */
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

/** Something else came than the file. */
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

/** Under the name it is kept by: that one does no harm elsewhere either. */
async function toLocalPart(part: UrlPart, { bytes, path }: StoredFile, mediaType: string): Promise<Part> {
  const { url, ...rest } = part;
  const isShort = bytes <= MAX_TEXT_BYTES;
  const text = isShort && isTextual(mediaType) ? decodeText(await readFile(path)) : undefined;
  const filename = basename(path);
  return text === undefined
    ? { ...rest, filename, mediaType, url: pathToFileURL(path).href }
    : { ...withoutMediaType(rest), filename, text };
}

/** Text is taken by whoever takes text; what kind it is its name says. */
function withoutMediaType<T extends object>({ mediaType, ...rest }: T & { readonly mediaType?: string }) {
  return rest;
}

/** The file as it came with the message. */
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

/** As text: there are agents that take nothing else, and the rest of the message is for them all the same. */
function toErrorPart({ filename }: Part, reason: Reason, language: Language): Part {
  const name = filename === undefined ? "" : ` ${JSON.stringify(filename)}`;
  return { text: phoneText(language, "fileMissing", name, phoneText(language, ...reason)) };
}

function reasonOf(error: unknown): Reason {
  if (error instanceof GuardedFetchError) return [FETCH_TEXTS[error.code]];
  return error instanceof WrongContentError ? error.reason : ["fileNotStored"];
}

/** The name it was sent with, else the end of its address. */
function nameOf(part: RawPart | UrlPart): string {
  if (part.filename !== undefined) return part.filename;
  const path = (isUrlPart(part) ? parseUrl(part.url)?.pathname : undefined) ?? "";
  return decodePath(path.slice(path.lastIndexOf("/") + 1));
}

function parseUrl(url: string): URL | undefined {
  return URL.canParse(url) ? new URL(url) : undefined;
}

function decodePath(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // Not encoded, or badly: then it is a name as it is.
    return text;
  }
}

/** What was said of it, unless that says nothing. */
function mediaTypeOf(name: string, declared: string | undefined): string {
  if (declared?.includes("/") === true && declared !== UNKNOWN_TYPE) return declared;
  return mediaTypeOfName(name) ?? UNKNOWN_TYPE;
}

/** So many at a time; the others wait in line. */
class Semaphore {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free++;
      else next();
    }
  }
}

/** Files as text, where they are text. */

const ENCODINGS = [
  { mark: [0xef, 0xbb, 0xbf], label: "utf-8" },
  { mark: [0xff, 0xfe], label: "utf-16le" },
  { mark: [0xfe, 0xff], label: "utf-16be" },
] as const;

/** Undefined for what is no text in UTF-8, or in what its first bytes say it is in. */
function decodeText(bytes: Uint8Array): string | undefined {
  const encoding = ENCODINGS.find(({ mark }) => mark.every((byte, index) => bytes[index] === byte));
  try {
    const text = new TextDecoder(encoding?.label ?? "utf-8", { fatal: true }).decode(bytes);
    return text.includes("\0") ? undefined : text;
  } catch {
    // Bytes that mean nothing in this encoding.
    return undefined;
  }
}
