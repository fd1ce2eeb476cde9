/** Shared by calls over HTTP: request headers and URLs, response envelopes. */

import type { ProtocolError } from "../../../model/errors.ts";
import { isObject, type JsonObject, type JsonValue } from "../../../model/json.ts";
import type { Operation } from "../../../model/operation.ts";
import type { ExchangeCall } from "../../../wire/exchange.ts";
import type { BufferedResponse, CallTarget } from "../../contract.ts";
import { httpStatusError } from "../errors.ts";
import { invalidResponse, parseResponse } from "../responses.ts";

/** The protocol's headers override the caller's. Names are lower-case. */
export function callHeaders(
  operation: Operation,
  target: CallTarget,
  accept = "application/json",
): Record<string, string> {
  const streams = operation.kind === "stream" || operation.kind === "subscribe";
  const headers: Record<string, string> = { ...target.headers };
  headers.accept = streams ? `text/event-stream, ${accept}` : accept;
  if (target.idempotencyKey !== undefined) headers["idempotency-key"] = target.idempotencyKey;
  if (operation.kind === "subscribe" && operation.after !== undefined) {
    headers["last-event-id"] = String(operation.after);
  }
  return headers;
}

/** One operation at a path below the agent's URL. */
export interface HttpCall {
  readonly method: "GET" | "POST" | "DELETE";
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  /** Undefined members are omitted by `JSON.stringify`. */
  readonly body?: object;
}

export function toExchangeCall(
  { body, method, path, query = {} }: HttpCall,
  address: string,
  headers: Readonly<Record<string, string>>,
  contentType = "application/json",
): ExchangeCall {
  const url = urlBelow(address, path, query);
  if (body === undefined) return { method, url, headers };
  return { method, url, headers: { ...headers, "content-type": contentType }, body: JSON.stringify(body) };
}

/** The URL may have its own query; the path is inserted before it. */
function urlBelow(address: string, path: string, query: NonNullable<HttpCall["query"]>): string {
  const [base = "", ...own] = address.split("?");
  const search = new URLSearchParams(own.join("?"));
  for (const [name, value] of Object.entries(query)) if (value !== undefined) search.set(name, String(value));
  // RFC 3986 encodes a space as %20; the plus sign is only for forms.
  const suffix = search.size === 0 ? "" : `?${search.toString().replaceAll("+", "%20")}`;
  return `${base.replace(/\/+$/, "")}${path}${suffix}`;
}

/** The same call by GET, for peers that support only that. */
export function asGet({ body: _body, headers, ...rest }: ExchangeCall): ExchangeCall {
  const { "content-type": _contentType, ...others } = headers;
  return { ...rest, method: "GET", headers: others };
}

/** Each request has its own exchange, so its id need not be unique. */
export function jsonRpcBody(method: string, params: object | undefined): string {
  return JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
}

/** The headers are the caller's own no longer. */
export function jsonRpcCall(
  method: string,
  params: object | undefined,
  { url }: CallTarget,
  headers: Record<string, string>,
): ExchangeCall {
  headers["content-type"] = "application/json";
  return { method: "POST", url, headers, body: jsonRpcBody(method, params) };
}

/** `status` is 0 if there is none. */
type DecodeError = (given: JsonObject, status: number) => ProtocolError;

/** Decodes the result of a JSON-RPC response with `read`; `readOther` decodes successful responses without a result. */
export function decodeEnvelope<T>(
  { status, text }: BufferedResponse,
  decodeError: DecodeError,
  read: (result: JsonValue) => T,
  readOther?: (value: unknown) => T | undefined,
): T {
  const envelope = parseResponse(text);
  // The HTTP status of an error is not defined, so the envelope takes precedence.
  if (isObject(envelope)) {
    if (isObject(envelope.error)) throw decodeError(envelope.error, status);
    if (envelope.result !== undefined) return read(envelope.result);
  }
  if (status < 200 || status > 299) throw isObject(envelope) ? decodeError(envelope, status) : httpStatusError(status);
  const other = readOther?.(envelope);
  if (other !== undefined) return other;
  throw invalidResponse(envelope === undefined ? "it is not JSON" : "it has neither result nor error");
}

/** Decodes the result in one frame of a JSON-RPC stream. */
export function decodeFrameEnvelope(data: string, decodeError: DecodeError): JsonValue {
  const envelope = parseResponse(data);
  if (!isObject(envelope)) throw invalidResponse("a frame of the stream is not a JSON object");
  if (isObject(envelope.error)) throw decodeError(envelope.error, 0);
  if (envelope.result === undefined) throw invalidResponse("a frame of the stream has neither result nor error");
  return envelope.result;
}

/** Decodes one frame of a stream of bare JSON. Errors have no defined form: an event or a member named `error`. */
export function decodeBareFrame(
  { data, event }: { readonly data: string; readonly event?: string | undefined },
  decodeError: DecodeError,
): unknown {
  const value = parseResponse(data);
  if (isObject(value) && isObject(value.error)) throw decodeError(value.error, 0);
  if (event === "error") throw isObject(value) ? decodeError(value, 0) : decodeError({ message: data }, 0);
  if (value === undefined) throw invalidResponse("a frame of the stream is not JSON");
  return value;
}
