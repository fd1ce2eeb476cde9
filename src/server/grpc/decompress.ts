import { promisify } from "node:util";
import { gunzip, inflate } from "node:zlib";
import { RPC_CODES, RpcStatusError } from "../../wire/rpc.ts";
import { tooLarge } from "./message-reader.ts";

/** What callers may compress their messages with. */
export const ENCODINGS = "identity,deflate,gzip";

const METHODS: ReadonlyMap<string, (bytes: Uint8Array, options: { maxOutputLength: number }) => Promise<Uint8Array>> =
  new Map([
    ["gzip", promisify(gunzip)],
    ["deflate", promisify(inflate)],
  ]);

/** `encoding` is what the call's headers say. Throws an RpcStatusError. */
export async function decompress(
  bytes: Uint8Array,
  encoding: string | undefined,
  maxBytes: number,
): Promise<Uint8Array> {
  if (encoding === undefined || encoding === "identity") {
    throw failure(RPC_CODES.INTERNAL, "A message is said to be compressed, and not how.");
  }
  const method = METHODS.get(encoding);
  if (method === undefined) {
    throw failure(RPC_CODES.UNIMPLEMENTED, `Messages may be compressed as ${ENCODINGS}, and this one is not.`);
  }
  try {
    return await method(bytes, { maxOutputLength: Math.max(maxBytes, 1) });
  } catch (error) {
    if (error instanceof RangeError) throw tooLarge(maxBytes);
    throw failure(RPC_CODES.INTERNAL, "A message could not be decompressed.");
  }
}

function failure(code: number, message: string): RpcStatusError {
  return new RpcStatusError({ code, message });
}
