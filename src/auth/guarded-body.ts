/** Bodies of strangers: decoded, counted as they come, and never more of them in memory than was asked for. */
import { PassThrough, pipeline, type Readable, type Transform } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import { GuardedFetchError } from "./guarded-fetch-error.ts";

const DECODERS: Readonly<Record<string, () => Transform>> = {
  "": () => new PassThrough(),
  identity: () => new PassThrough(),
  gzip: createGunzip,
  "x-gzip": createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
};

export interface BodyLimits {
  readonly maxBytes: number;
  /** Called once, when the body has ended, broken or been given up. */
  readonly onDone: () => void;
  /** Why the request was stopped from here, if it was. */
  readonly stopped: () => unknown;
}

/** The decoded body. What is counted is what comes out of the decoder, so that a small bomb is no large answer. */
export function guardedBody(raw: Readable, encoding: string, limits: BodyLimits): ReadableStream<Uint8Array> {
  const decoder = DECODERS[encoding.trim().toLowerCase()];
  if (decoder === undefined) {
    raw.on("error", () => {}).destroy();
    limits.onDone();
    throw new GuardedFetchError("bad-response");
  }
  const decoded = pipeline(raw, decoder(), () => limits.onDone());
  const chunks = decoded[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>;
  let size = 0;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await chunks.next();
          if (done === true) {
            controller.close();
            return;
          }
          size += value.byteLength;
          if (size > limits.maxBytes) throw new GuardedFetchError("too-large");
          controller.enqueue(new Uint8Array(value.buffer, value.byteOffset, value.byteLength));
        } catch (error) {
          decoded.destroy();
          controller.error(limits.stopped() ?? asGuarded(error));
        }
      },
      cancel() {
        decoded.destroy();
      },
    },
    // Nothing is read ahead of its reader.
    { highWaterMark: 0 },
  );
}

function asGuarded(error: unknown): unknown {
  if (error instanceof GuardedFetchError) return error;
  const isFormat =
    error instanceof Error && "code" in error && /^(?:Z_|ERR_BROTLI|ERR__ERROR)/.test(String(error.code));
  return new GuardedFetchError(isFormat ? "bad-response" : "unreachable", { cause: error });
}
