/** A peer's refusal as a ProtocolError. */
import type { ProtocolError } from "../../model/errors.ts";
import { readErrorDetails } from "../shared/error-details.ts";
import { heardError } from "../shared/heard-error.ts";
import { codeOfHttpStatus } from "../shared/http-statuses.ts";
import { codeOfJsonRpc } from "./errors.ts";

/** The reason in `data` decides, then the code; the HTTP status only when there is nothing else (0: there is none). */
export function readRefusal(given: Readonly<Record<string, unknown>>, status: number): ProtocolError {
  const { data } = given;
  const details = readErrorDetails(data);
  const code =
    details.code ?? codeOfJsonRpc(given.code) ?? (status < 400 ? "INTERNAL_ERROR" : codeOfHttpStatus(status));
  return heardError(code, messageOf(given), details, data);
}

function messageOf({ detail, message }: Readonly<Record<string, unknown>>): string {
  for (const text of [message, detail]) if (typeof text === "string" && text !== "") return text;
  return "The agent refused without saying why.";
}
