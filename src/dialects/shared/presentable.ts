import { ProtocolError } from "../../model/errors.ts";

/** What goes to the peer. Anything that is not a ProtocolError, and the text of an internal one, stays here. */
export function presentable(error: unknown): ProtocolError {
  if (ProtocolError.is(error) && error.code !== "INTERNAL_ERROR") return error;
  return new ProtocolError("INTERNAL_ERROR", "The agent could not answer because of an internal error.", {
    cause: error,
  });
}
