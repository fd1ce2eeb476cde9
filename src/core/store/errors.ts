/**
 * Why a store cannot be used. Local: it is for the person who runs the server and never crosses the wire.
 * `full`, `read-only` and `io`: the disk does not take writes. `damaged`: what is in the file cannot be read. `unreachable`
 * and `login`: the database server does not answer, or does not accept the user.
 */
export type StoreErrorCode =
  | "newer-schema"
  | "older-schema"
  | "in-use"
  | "not-a-database"
  | "unavailable"
  | "unreachable"
  | "login"
  | "full"
  | "read-only"
  | "damaged"
  | "io";

/** The store may be there again in a while, without a person's help. */
const AWAY: ReadonlySet<StoreErrorCode> = new Set(["unavailable", "unreachable", "login", "read-only"]);

export class StoreError extends Error {
  readonly code: StoreErrorCode;
  /** As `isTemporary` of the model understands it. */
  readonly temporary: boolean;

  constructor(code: StoreErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "StoreError";
    this.code = code;
    this.temporary = AWAY.has(code);
  }
}

/** What anyone may know of it: neither the file nor what the operating system reported. */
export function describeStoreError(error: unknown): string {
  return (error instanceof StoreError && REASONS[error.code]) || "the store is not available";
}

const REASONS: Partial<Record<StoreErrorCode, string>> = {
  full: "the disk is full",
  "read-only": "the store is read-only",
  io: "the disk reports an error",
  damaged: "the database is damaged",
};
