/** Streams over JSON-RPC: every event is a whole response with the id of the request. */

import type { ErrorCode, ProtocolError } from "../../../model/errors.ts";
import type { StreamFrame } from "../../../model/operation.ts";
import { encodeError, type JsonRpcId, RESULT_SUFFIX, resultPrefix } from "../../../wire/json-rpc.ts";
import { encodeSseLine } from "../../../wire/sse.ts";
import { toPublicError } from "../errors.ts";
import type { EventFraming } from "./event-stream.ts";

/** How the errors of JSON-RPC bindings show in HTTP. */

/**
 * A JSON-RPC error is a response, hence 200, also where the envelope is at fault: the servers of the official SDK do so
 * and public conformance kits expect it. These are about the HTTP request itself, and intermediaries should see them.
 */
const STATUS: Readonly<Partial<Record<ErrorCode, number>>> = {
  UNAUTHENTICATED: 401,
  PERMISSION_DENIED: 403,
  RESOURCE_EXHAUSTED: 429,
  UNAVAILABLE: 503,
};

export function httpStatusOf({ code }: ProtocolError): number {
  return STATUS[code] ?? 200;
}

export class JsonRpcFraming implements EventFraming {
  readonly #id: JsonRpcId;
  readonly #prefix: string;
  readonly #toError: (error: ProtocolError) => string;
  readonly #toJson: (frame: StreamFrame) => string;

  /** `toError` gives an error object of the dialect as JSON, `toJson` an event where that is not the frame's own. */
  constructor(
    id: JsonRpcId,
    toError: (error: ProtocolError) => string,
    toJson: (frame: StreamFrame) => string = jsonOf,
  ) {
    this.#id = id;
    this.#prefix = resultPrefix(id);
    this.#toError = toError;
    this.#toJson = toJson;
  }

  encode(batch: readonly StreamFrame[]): string {
    let text = "";
    for (const frame of batch) {
      text += encodeSseLine(this.#prefix + this.#toJson(frame) + RESULT_SUFFIX, frame.number);
    }
    return text;
  }

  encodeFailure(error: unknown): string {
    return encodeSseLine(encodeError(this.#id, this.#toError(toPublicError(error))));
  }
}

function jsonOf({ json }: StreamFrame): string {
  return json;
}
