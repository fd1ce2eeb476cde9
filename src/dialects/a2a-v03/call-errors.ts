/** A peer's refusal as a ProtocolError, in whichever of the forms in use it comes. */
import type { ErrorCode, ProtocolError } from "../../model/errors.ts";
import { readErrorDetails } from "../shared/error-details.ts";
import { heardError, textOfRefusal } from "../shared/heard-error.ts";
import { codeOfHttpStatus } from "../shared/http-statuses.ts";
import { codeOfJsonRpc } from "./errors.ts";

/**
 * Reads an error object, or any object in the place of one. A reason decides, then a JSON-RPC code, then what the
 * binding makes of the HTTP status (`status` 0: there is none).
 */
export function readRefusal(
  given: Readonly<Record<string, unknown>>,
  status: number,
  codeOfStatus: (status: number) => ErrorCode = codeOfHttpStatus,
): ProtocolError {
  const data = given.data ?? given.details;
  const details = readErrorDetails(data);
  const code = details.code ?? codeOfJsonRpc(given.code) ?? (status < 400 ? "INTERNAL_ERROR" : codeOfStatus(status));
  return heardError(code, textOfRefusal(given, status), details, data);
}
