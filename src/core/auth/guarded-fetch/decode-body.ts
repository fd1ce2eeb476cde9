import { pipeline, Readable, type Transform } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import { GuardedFetchError } from "./errors.ts";
import type { IncomingAnswer } from "./incoming-answer.ts";

/** Compression is not asked for, but some servers compress anyway. */
const DECODERS: Readonly<Record<string, () => Transform>> = {
  gzip: createGunzip,
  "x-gzip": createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
};

/** The decoded body, to be given up by `answer.discard()` or `abort()`. Throws if it cannot be decoded. */
export function decodeBody(answer: IncomingAnswer): AsyncIterableIterator<Uint8Array> {
  const encoding = answer.headers.get("content-encoding")?.trim().toLowerCase() ?? "";
  if (encoding === "" || encoding === "identity") return answer;
  const createDecoder = Object.hasOwn(DECODERS, encoding) ? DECODERS[encoding] : undefined;
  if (createDecoder !== undefined) return readDecoded(pipeline(Readable.from(answer), createDecoder(), () => {}));
  answer.discard();
  throw new GuardedFetchError("bad-response");
}

async function* readDecoded(decoded: Transform): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    for await (const chunk of decoded) yield chunk;
  } catch (error) {
    throw isFormatError(error) ? new GuardedFetchError("bad-response", { cause: error }) : error;
  }
}

function isFormatError(error: unknown): boolean {
  return error instanceof Error && "code" in error && /^(?:Z_|ERR_BROTLI|ERR__ERROR)/.test(String(error.code));
}
