/** JSON-RPC 2.0 envelopes. What methods and params mean is for the layer above. */
import { isObject } from "../model/json.ts";
import { decodeUtf8, type JsonLimits, JsonParseError, parseJson } from "./parse-json.ts";

/** Opaque: `0`, `""` and `null` are ids like any other, so never test one for truth. */
export type JsonRpcId = string | number | null;

export type JsonRpcParams = Readonly<Record<string, unknown>> | readonly unknown[];

export interface JsonRpcRequest {
  /** `null` for a request without an `id` too. */
  readonly id: JsonRpcId;
  readonly method: string;
  readonly params: JsonRpcParams | undefined;
  /** The envelope had no `id`. Whether it is answered all the same depends on the dialect. */
  readonly notification: boolean;
}

export const PARSE_ERROR = -32700;
export const INVALID_REQUEST = -32600;
export const INVALID_PARAMS = -32602;

export interface JsonRpcParseFailure {
  readonly ok: false;
  readonly code: typeof PARSE_ERROR | typeof INVALID_REQUEST | typeof INVALID_PARAMS;
  readonly id: JsonRpcId;
  readonly message: string;
}

type JsonRpcParseResult = { readonly ok: true; readonly request: JsonRpcRequest } | JsonRpcParseFailure;

/** Reads one request envelope. Never throws: an error is returned as a result, ready to be sent. */
export function parseJsonRpc(body: string | Uint8Array, limits?: JsonLimits): JsonRpcParseResult {
  let text = "";
  try {
    text = typeof body === "string" ? body : decodeUtf8(body);
    return readEnvelope(parseJson(text, limits));
  } catch (error) {
    if (!(error instanceof JsonParseError)) throw error;
    if (error.reason !== "number") {
      return toParseFailure(error.isLimitExceeded ? INVALID_REQUEST : PARSE_ERROR, null, error.message);
    }
    const parsed = readEnvelope(JSON.parse(text));
    return parsed.ok ? toParseFailure(INVALID_PARAMS, parsed.request.id, error.message) : parsed;
  }
}

function readEnvelope(value: unknown): JsonRpcParseResult {
  if (Array.isArray(value)) return toParseFailure(INVALID_REQUEST, null, "Batch requests are not supported.");
  if (!isObject(value)) return toParseFailure(INVALID_REQUEST, null, "A request must be a JSON object.");
  const { id: rawId, jsonrpc, method, params } = value;
  const id = rawId === undefined ? null : rawId;
  if (!isJsonRpcId(id)) {
    return toParseFailure(INVALID_REQUEST, null, "id must be a string, null or a number that can be echoed exactly.");
  }
  if (jsonrpc !== "2.0") return toParseFailure(INVALID_REQUEST, id, 'jsonrpc must be "2.0".');
  if (typeof method !== "string") return toParseFailure(INVALID_REQUEST, id, "method must be a string.");
  if (!isParams(params)) return toParseFailure(INVALID_REQUEST, id, "params must be an object or an array.");
  return { ok: true, request: { id, method, params, notification: rawId === undefined } };
}

function toParseFailure(code: JsonRpcParseFailure["code"], id: JsonRpcId, message: string): JsonRpcParseFailure {
  return { ok: false, code, id, message };
}

function isParams(value: unknown): value is JsonRpcParams | undefined {
  return value === undefined || (typeof value === "object" && value !== null);
}

/**
 * An integer beyond 2^53 has already been rounded by `JSON.parse`; its echo would name another request, and
 * a clear refusal is better than an answer that the caller cannot match.
 */
function isJsonRpcId(value: unknown): value is JsonRpcId {
  if (typeof value === "number") return Number.isSafeInteger(value) || (Number.isFinite(value) && value % 1 !== 0);
  return typeof value === "string" || value === null;
}

/** Closes what `resultPrefix` opened. */
export const RESULT_SUFFIX = "}";

/** The start of a response: a stream builds it once and sets every event between it and `RESULT_SUFFIX`. */
export function resultPrefix(id: JsonRpcId): string {
  return `{"jsonrpc":"2.0","id":${encodeId(id)},"result":`;
}

/** `resultJson` is text that is already JSON. */
export function encodeResult(id: JsonRpcId, resultJson: string): string {
  return `{"jsonrpc":"2.0","id":${encodeId(id)},"result":${resultJson}}`;
}

/** `errorJson` is a `JsonRpcErrorObject` that is already JSON. */
export function encodeError(id: JsonRpcId, errorJson: string): string {
  return `{"jsonrpc":"2.0","id":${encodeId(id)},"error":${errorJson}}`;
}

function encodeId(id: JsonRpcId): string {
  return typeof id === "string" ? JSON.stringify(id) : String(id);
}
