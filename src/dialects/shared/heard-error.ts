/** Errors that a peer said, as errors of the model. */
import { type ErrorCode, ProtocolError } from "../../model/errors.ts";
import type { JsonObject } from "../../model/json.ts";
import type { ErrorDetails } from "./error-details.ts";
import { isRecord } from "./proto-json-reading.ts";

/** `data` is what the peer sent beside its message, whatever it is. */
export function heardError(code: ErrorCode, message: string, details: ErrorDetails, data: unknown): ProtocolError {
  const { metadata, violations, retryAfter } = details;
  return new ProtocolError(code, message, {
    ...(metadata === undefined ? {} : { metadata }),
    ...(violations === undefined ? {} : { violations }),
    ...(retryAfter === undefined ? {} : { retryAfter }),
    ...(isErrorData(data) ? { data } : {}),
  });
}

/** What an error object says to people, under any of the names in use (`status` 0: there is no HTTP status). */
export function textOfRefusal({ detail, message, title }: Readonly<Record<string, unknown>>, status: number): string {
  for (const text of [message, detail, title]) if (typeof text === "string" && text !== "") return text;
  return status === 0
    ? "The agent refused without saying why."
    : `The agent refused without saying why (HTTP status ${status}).`;
}

/** Parsed from JSON, so all that is left to tell is objects from the rest. */
function isErrorData(value: unknown): value is JsonObject | readonly JsonObject[] {
  return isRecord(value) || (Array.isArray(value) && value.every(isRecord));
}
