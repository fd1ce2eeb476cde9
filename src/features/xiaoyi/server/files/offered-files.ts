/**
 * Files for agents that dialled in, each at a URL that cannot be guessed: agents written for the platform fetch files
 * and do not read inline bytes. The URL grants access, so it is short-lived and never logged.
 */

import { randomBytes } from "node:crypto";
import type { FileOffers, OfferedFile } from "../../../../core/dialects/contract.ts";
import { mediaTypeOfName } from "../../../../core/model/media-types.ts";
import type { Clock } from "../../../../core/model/ports.ts";
import { errorReply, methodNotAllowed } from "../../../../core/server/http/error-replies.ts";
import { type FullReply, PRIVATE_NO_STORE, type RequestHead } from "../../../../core/wire/exchange.ts";
import { safeFileName } from "../../../../core/wire/safe-file-name.ts";
import { toMediaType } from "../../codec/parts.ts";

const FILES_PATH = "/openclaw/v1/files/";
const TOKEN_BYTES = 32;
/** For all agents together. Files that do not fit are sent without a URL. */
const MAX_FILES = 1_000;
const MAX_TOTAL_BYTES = 256 * 1024 * 1024;
/** Agents fetch a file when they receive the message; this is for those that queue it first. */
const KEEP_MS = 15 * 60_000;

interface Offered {
  readonly agentId: string;
  readonly taskId: string;
  readonly bytes: Buffer;
  readonly headers: Readonly<Record<string, string>>;
  readonly cancelTimer: () => void;
}

export class OfferedFiles {
  readonly #clock: Clock;
  readonly #files = new Map<string, Offered>();
  #totalBytes = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** For one agent. `base` is the URL at which it reaches this server, if known. */
  offersTo(agentId: string, base: () => string | undefined): FileOffers {
    return {
      offer: (taskId, file) => {
        const origin = base();
        const token = origin === undefined ? undefined : this.#add(agentId, taskId, file);
        return token === undefined ? undefined : `${origin}${FILES_PATH}${token}`;
      },
      withdraw: (taskId) => {
        for (const [token, offered] of this.#files) {
          if (offered.taskId === taskId && offered.agentId === agentId) this.#remove(token);
        }
      },
    };
  }

  answer({ method, path }: RequestHead): FullReply | undefined {
    if (!path.startsWith(FILES_PATH)) return undefined;
    if (method !== "GET" && method !== "HEAD") return methodNotAllowed("GET, HEAD");
    const offered = this.#files.get(path.slice(FILES_PATH.length));
    if (offered === undefined) return errorReply(404, "File not found. Files are available while their task runs.");
    return { status: 200, headers: offered.headers, body: offered.bytes };
  }

  #add(agentId: string, taskId: string, file: OfferedFile): string | undefined {
    const isFull =
      this.#files.size >= MAX_FILES || this.#totalBytes + Buffer.byteLength(file.raw, "base64") > MAX_TOTAL_BYTES;
    if (isFull) return undefined;
    const bytes = Buffer.from(file.raw, "base64");
    const token = randomBytes(TOKEN_BYTES).toString("base64url");
    const cancelTimer = this.#clock.after(KEEP_MS, () => this.#remove(token));
    this.#files.set(token, { agentId, taskId, bytes, headers: headersOf(file), cancelTimer });
    this.#totalBytes += bytes.byteLength;
    return token;
  }

  #remove(token: string): void {
    const offered = this.#files.get(token);
    if (offered === undefined) return;
    offered.cancelTimer();
    this.#files.delete(token);
    this.#totalBytes -= offered.bytes.byteLength;
  }
}

const TOKEN = "[\\w!#$&^.+-]+";
const MEDIA_TYPE = new RegExp(`^${TOKEN}/${TOKEN}(?: *; *${TOKEN}=(?:${TOKEN}|"[\\x20!#-\\[\\]-~]*"))*$`);

/** A browser that opens the URL downloads the file and does not execute it. */
function headersOf({ mediaType, name }: OfferedFile): Readonly<Record<string, string>> {
  const given = mediaType === undefined ? mediaTypeOfName(name ?? "") : toMediaType(mediaType);
  return {
    "content-type": given !== undefined && MEDIA_TYPE.test(given) ? given : "application/octet-stream",
    "content-disposition": dispositionOf(safeFileName(name ?? "")),
    "content-security-policy": "default-src 'none'; sandbox",
    "x-content-type-options": "nosniff",
    "cache-control": PRIVATE_NO_STORE,
  };
}

/** RFC 6266 §4.3: an ASCII name for all clients, and the original name for those that support it. */
function dispositionOf(name: string): string {
  const plain = name.replaceAll(/[^\x20-\x7e]|["\\%]/g, "_");
  const encoded = encodeURIComponent(name).replaceAll(/['()*]/g, (character) => {
    return `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
  });
  return `attachment; filename="${plain}"; filename*=UTF-8''${encoded}`;
}
