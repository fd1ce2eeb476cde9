/** Files of a message are brought here before an agent reads it: text as text, all else as a file on this machine. */

import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import { pathToFileURL } from "node:url";
import { GuardedFetchError, type GuardedFetchErrorCode } from "../../auth/guarded-fetch/errors.ts";
import type { FileIntake } from "../../dialects/xiaoyi/file-intake.ts";
import { fileIdIn, takeSpareBytes } from "../../dialects/xiaoyi/marks.ts";
import { isTextual, mediaTypeOfName } from "../../dialects/xiaoyi/media-types.ts";
import { type Language, type PhoneTextName, phoneText } from "../../dialects/xiaoyi/phone-texts.ts";
import { isRawPart, isUrlPart, type Message, type Part, type RawPart, type UrlPart } from "../../model/message.ts";
import type { Log } from "../../model/ports.ts";
import type { FileStore, StoredFile } from "./file-store.ts";
import { decodeText } from "./file-text.ts";
import { Places } from "./places.ts";

interface FileIntakeOptions {
  /** For targets that somebody else named, with limits on time and size. */
  readonly fetch: (url: string) => Promise<Response>;
  readonly store: Pick<FileStore, "add">;
  readonly log: Log;
}

/** As many as the platform lets a user send. */
const MOST_FILES = 6;
const MOST_AT_ONCE = 8;
/** Text beyond this is a file like others. */
const LONGEST_TEXT_BYTES = 256 * 1024;

/** Of a name that a name server can know, with a port. */
const LONGEST_HOST = 260;

const UNKNOWN_TYPE = "application/octet-stream";

export function createFileIntake(options: FileIntakeOptions): FileIntake {
  const places = new Places(MOST_AT_ONCE);
  return {
    concerns: ({ parts }) => parts.some((part) => isFetched(part) || isTextFile(part)),
    async takeIn(message: Message, language: Language): Promise<Message> {
      let files = 0;
      const taken = message.parts.map((part) => {
        if (isTextFile(part)) return [asText(part)];
        if (!isFetched(part)) return [part];
        const { part: file, raw } = takeSpareBytes(part);
        // Nobody has looked where these lead to, so that nobody is led there.
        if (++files > MOST_FILES) {
          return [raw === undefined ? problem(file, TOO_MANY, language) : carried(file, raw)];
        }
        return places.take(() => takeIn(file, raw, language, options));
      });
      const parts = await Promise.all(taken);
      return { ...message, parts: parts.flat() };
    },
  };
}

/** Whatever its address is: only the guard knows what addresses mean. What the platform keeps has an id instead. */
function isFetched(part: Part): part is UrlPart {
  return isUrlPart(part) && fileIdIn(part) === undefined;
}

function isTextFile(part: Part): part is RawPart {
  return isRawPart(part) && isTextual(typeOf(nameOf(part), part.mediaType));
}

/** `raw`: the bytes of the file, where they came with its address. */
async function takeIn(
  part: UrlPart,
  raw: string | undefined,
  language: Language,
  { fetch, log, store }: FileIntakeOptions,
): Promise<readonly Part[]> {
  const name = nameOf(part);
  const url = parsed(part.url);
  try {
    const mediaType = typeOf(name, part.mediaType);
    const stored = await store.add(name, await contentOf(part.url, mediaType, fetch));
    return [await offered(part, stored, mediaType)];
  } catch (error) {
    const reason = reasonOf(error);
    const why = phoneText("en", ...reason);
    // Neither the path nor the query: they are the key to the file.
    log.warn({ host: url?.host.slice(0, LONGEST_HOST), why }, "A file of Xiaoyi's user could not be taken in.");
    if (raw !== undefined) return [carried(part, raw)];
    if (url === undefined || isForbidden(error)) return [problem(part, reason, language)];
    // As it was read here: another reader may find another host in what was sent.
    return [{ ...part, url: url.href }, problem(part, reason, language)];
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

const TOO_MANY: Reason = ["fileTooMany", MOST_FILES];

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
class WrongAnswer extends Error {
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
  throw new WrongAnswer(status === 200 ? ["fileIsPage"] : ["fileStatus", status]);
}

/** Under the name it is kept by: that one does no harm elsewhere either. */
async function offered(part: UrlPart, { bytes, path }: StoredFile, mediaType: string): Promise<Part> {
  const { url, ...rest } = part;
  const isShort = bytes <= LONGEST_TEXT_BYTES;
  const text = isShort && isTextual(mediaType) ? decodeText(await readFile(path)) : undefined;
  const filename = basename(path);
  return text === undefined
    ? { ...rest, filename, mediaType, url: pathToFileURL(path).href }
    : { ...withoutType(rest), filename, text };
}

/** Text is taken by whoever takes text; what kind it is its name says. */
function withoutType<T extends object>({ mediaType, ...rest }: T & { readonly mediaType?: string }) {
  return rest;
}

/** The file as it came with the message. */
function carried({ url: _dead, ...rest }: UrlPart, raw: string): Part {
  const part: RawPart = { ...rest, raw };
  return isTextFile(part) ? asText(part) : part;
}

function asText(part: RawPart): Part {
  const { raw, ...rest } = part;
  const bytes = Buffer.from(raw, "base64");
  const text = bytes.byteLength <= LONGEST_TEXT_BYTES ? decodeText(bytes) : undefined;
  return text === undefined ? part : { ...withoutType(rest), text };
}

/** As text: there are agents that take nothing else, and the rest of the message is for them all the same. */
function problem({ filename }: Part, reason: Reason, language: Language): Part {
  const name = filename === undefined ? "" : ` ${JSON.stringify(filename)}`;
  return { text: phoneText(language, "fileMissing", name, phoneText(language, ...reason)) };
}

function reasonOf(error: unknown): Reason {
  if (error instanceof GuardedFetchError) return [FETCH_TEXTS[error.code]];
  return error instanceof WrongAnswer ? error.reason : ["fileNotStored"];
}

/** The name it was sent with, else the end of its address. */
function nameOf(part: RawPart | UrlPart): string {
  if (part.filename !== undefined) return part.filename;
  const path = (isUrlPart(part) ? parsed(part.url)?.pathname : undefined) ?? "";
  return decoded(path.slice(path.lastIndexOf("/") + 1));
}

function parsed(url: string): URL | undefined {
  return URL.canParse(url) ? new URL(url) : undefined;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // Not encoded, or badly: then it is a name as it is.
    return text;
  }
}

/** What was said of it, unless that says nothing. */
function typeOf(name: string, said: string | undefined): string {
  if (said?.includes("/") === true && said !== UNKNOWN_TYPE) return said;
  return mediaTypeOfName(name) ?? UNKNOWN_TYPE;
}
