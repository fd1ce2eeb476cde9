/** A peer's refusal as a ProtocolError. */
import { ProtocolError } from "../../model/errors.ts";
import type { JsonObject } from "../../model/json.ts";
import { readErrorDetails } from "../shared/error-details.ts";
import { codeOfHttpStatus } from "../shared/http-statuses.ts";
import { isRecord } from "../shared/proto-json-reading.ts";
import { codeOfJsonRpc } from "./errors.ts";

/** The reason in `data` decides, then the code; the HTTP status only when there is nothing else (0: there is none). */
export function readRefusal(given: Readonly<Record<string, unknown>>, status: number): ProtocolError {
  const { data } = given;
  const details = readErrorDetails(data);
  const code =
    details.code ?? codeOfJsonRpc(given.code) ?? (status < 400 ? "INTERNAL_ERROR" : codeOfHttpStatus(status));
  return new ProtocolError(code, messageOf(given), {
    ...(details.metadata === undefined ? {} : { metadata: details.metadata }),
    ...(details.violations === undefined ? {} : { violations: details.violations }),
    ...(details.retryAfter === undefined ? {} : { retryAfter: details.retryAfter }),
    ...(isErrorData(data) ? { data } : {}),
  });
}

function messageOf({ detail, message }: Readonly<Record<string, unknown>>): string {
  for (const text of [message, detail]) if (typeof text === "string" && text !== "") return text;
  return "The agent refused without saying why.";
}

/** Parsed from JSON, so all that is left to tell is objects from the rest. */
function isErrorData(value: unknown): value is JsonObject | readonly JsonObject[] {
  return isRecord(value) || (Array.isArray(value) && value.every(isRecord));
}
