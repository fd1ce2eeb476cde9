/** Shared by bindings that map operations to HTTP methods and paths. */

import { ProtocolError } from "../../../model/errors.ts";
import type { OperationKind, StreamFrame } from "../../../model/operation.ts";
import { type ExchangeReply, type ExchangeRequest, type FullReply, isStreamReply } from "../../../wire/exchange.ts";
import { encodeSseLine } from "../../../wire/sse.ts";
import type { AdmittedHttpServing, ServeContext } from "../../contract.ts";
import { toPublicError } from "../errors.ts";
import type { EventFraming } from "./event-stream.ts";
import { allowHeader, type Method } from "./routes.ts";

type Headers = Readonly<Record<string, string>>;

interface HttpBinding extends Pick<AdmittedHttpServing, "version" | "prefix"> {
  /** Throws to refuse the request. HEAD is passed as GET. */
  answer(method: string, exchange: ExchangeRequest, context: ServeContext): Promise<ExchangeReply>;
  /** `status` and `headers`: where they differ from the error's defaults. */
  errorReply(error: ProtocolError, status?: number, headers?: Headers): FullReply;
}

export function serveHttp({ answer, errorReply, prefix, version }: HttpBinding): AdmittedHttpServing {
  async function reply(method: string, exchange: ExchangeRequest, context: ServeContext): Promise<ExchangeReply> {
    try {
      return await answer(method, exchange, context);
    } catch (error) {
      if (error instanceof HttpRefusal) return errorReply(error.error, error.status, error.headers);
      return errorReply(toPublicError(error));
    }
  }
  return {
    version,
    prefix,
    async handle(exchange, context) {
      if (exchange.method !== "HEAD") return reply(exchange.method, exchange, context);
      return headOf(await reply("GET", exchange, context));
    },
    refuse: (error, _exchange, status) => errorReply(toPublicError(error), status),
  };
}

function headOf(full: ExchangeReply): FullReply {
  if (isStreamReply(full)) void full.frames[Symbol.asyncIterator]().return?.();
  return { status: full.status, headers: full.headers, body: undefined };
}

/** An error with its own HTTP status and headers. */
class HttpRefusal extends Error {
  readonly error: ProtocolError;
  readonly status: number;
  readonly headers: Headers;

  constructor(error: ProtocolError, status: number, headers: Headers) {
    super(error.message);
    this.error = error;
    this.status = status;
    this.headers = headers;
  }
}

/** The operation of a method at a path; throws if there is none. A method may have any name, e.g. `constructor`. */
export function operationAt<Kind extends OperationKind>(
  methods: Readonly<Partial<Record<Method, Kind>>>,
  method: string,
): Kind {
  const kind = Object.hasOwn(methods, method) ? methods[method as Method] : undefined;
  if (kind !== undefined) return kind;
  const allow = allowHeader(methods);
  throw new HttpRefusal(new ProtocolError("METHOD_NOT_FOUND", `This path answers ${allow} only.`), 405, { allow });
}

export function refuseCompressed({ headers }: ExchangeRequest): void {
  const contentEncoding = headers["content-encoding"];
  if (contentEncoding === undefined || contentEncoding === "" || contentEncoding.toLowerCase() === "identity") return;
  const error = new ProtocolError("CONTENT_TYPE_NOT_SUPPORTED", "The request must not be compressed.", {
    metadata: { contentEncoding },
  });
  throw new HttpRefusal(error, 415, { "accept-encoding": "identity" });
}

/** Events as bare JSON, a failure as a separate event. `toJson` encodes an event; default: the frame's own JSON. */
export function bareFraming(
  toError: (error: ProtocolError) => string,
  toJson: (frame: StreamFrame) => string = ({ json }) => json,
): EventFraming {
  return {
    encode(batch) {
      let text = "";
      for (const frame of batch) text += encodeSseLine(toJson(frame), frame.number);
      return text;
    },
    encodeFailure: (error) => `event: error\n${encodeSseLine(toError(toPublicError(error)))}`,
  };
}
