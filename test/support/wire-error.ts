import type { WireDetail, WireError } from "./wire-types.ts";

/** Throws for an error without an ErrorInfo of the protocol. */
export function toWireError(code: number, message: string, details: readonly WireDetail[]): WireError {
  if (!Number.isInteger(code) || typeof message !== "string" || message === "") throw new Error("No error object.");
  const info = details.find((detail) => detail["@type"] === "type.googleapis.com/google.rpc.ErrorInfo");
  if (info?.domain !== "a2a-protocol.org" || info.reason === undefined) throw new Error("No ErrorInfo of A2A.");
  if (details.some((detail) => typeof detail["@type"] !== "string")) throw new Error("A detail without a type.");
  return { reason: info.reason, code, message, details };
}
