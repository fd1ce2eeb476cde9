/**
 * Why a store cannot be used. Local: it is for the person who runs the server and never crosses the wire.
 * `full`, `read-only` and `io`: the disk does not take writes. `damaged`: what is in the file cannot be read.
 */
export type StoreErrorCode =
  | "newer-schema"
  | "older-schema"
  | "in-use"
  | "not-a-database"
  | "unavailable"
  | "full"
  | "read-only"
  | "damaged"
  | "io";

export class StoreError extends Error {
  readonly code: StoreErrorCode;
  constructor(code: StoreErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "StoreError";
    this.code = code;
  }
}

/** What anyone may know of it: neither the file nor what the operating system reported. */
export function describeStoreError(error: unknown): string {
  return (error instanceof StoreError && REASONS[error.code]) || "the store is not available";
}

const REASONS: Partial<Record<StoreErrorCode, string>> = {
  full: "the disk is full",
  "read-only": "the disk is read-only",
  io: "the disk reports an error",
  damaged: "the database is damaged",
};
