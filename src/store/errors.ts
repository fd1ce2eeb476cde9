/** Why a store cannot be used. Local: it is for the person who runs the server and never crosses the wire. */
export type StoreErrorCode = "newer-schema" | "older-schema" | "in-use" | "not-a-database" | "unavailable" | "io";

export class StoreError extends Error {
  readonly code: StoreErrorCode;
  constructor(code: StoreErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "StoreError";
    this.code = code;
  }
}
