import { ProtocolError } from "../../model/errors.ts";
import { decodeUtf8, JsonLimitError, type JsonLimits, parseJson } from "../../wire/json-limits.ts";

/** A request's JSON; throws a ProtocolError for what is none, and for more than is taken. */
export function parseBody(body: Uint8Array, limits: JsonLimits): unknown {
  try {
    return parseJson(decodeUtf8(body), limits);
  } catch (error) {
    if (!(error instanceof JsonLimitError)) throw error;
    if (error.reason === "number") throw new ProtocolError("INVALID_PARAMS", error.message);
    throw new ProtocolError(error.isExcess ? "INVALID_REQUEST" : "PARSE_ERROR", error.message);
  }
}
