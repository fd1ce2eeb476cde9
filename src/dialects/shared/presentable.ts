import { ProtocolError } from "../../model/errors.ts";
import { statusText } from "../../model/status-texts.ts";

/** What goes to the peer. Anything that is not a ProtocolError, and the text of an internal one, stays here. */
export function presentable(error: unknown): ProtocolError {
  if (ProtocolError.is(error) && error.code !== "INTERNAL_ERROR") return error;
  return new ProtocolError("INTERNAL_ERROR", statusText("internalError"), {
    cause: error,
  });
}
