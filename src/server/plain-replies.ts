/** Answers about the HTTP request itself, which belong to no dialect. */
import type { ErrorCode } from "../model/errors.ts";
import { type ExchangeReply, type FullReply, isStreamReply, jsonReply } from "../wire/exchange.ts";

export function withHeaders(reply: ExchangeReply, headers: Readonly<Record<string, string>>): ExchangeReply {
  const vary = [reply.headers.vary, headers.vary].filter((value) => value !== undefined).join(", ");
  const merged = { ...reply.headers, ...headers, ...(vary === "" ? undefined : { vary }) };
  return isStreamReply(reply) ? { ...reply, headers: merged } : { ...reply, headers: merged };
}

export function methodNotAllowed(allow: string): FullReply {
  const reply = plainError(405, `This path takes ${allow}.`);
  return { ...reply, headers: { ...reply.headers, allow } };
}

export const notAllowed = (message: string) => plainError(403, message);

export const notOurs = () => notAllowed("This host name is not ours; see server.publicUrl.");

export const CODE_OF_STATUS = {
  413: "INVALID_REQUEST",
  415: "CONTENT_TYPE_NOT_SUPPORTED",
  429: "RESOURCE_EXHAUSTED",
} as const satisfies Partial<Record<PlainStatus, ErrorCode>>;

type PlainStatus = 400 | 401 | 403 | 404 | 405 | 413 | 415 | 429 | 503;

const STATUS_NAMES = {
  400: "INVALID_ARGUMENT",
  401: "UNAUTHENTICATED",
  403: "PERMISSION_DENIED",
  404: "NOT_FOUND",
  405: "UNIMPLEMENTED",
  413: "INVALID_ARGUMENT",
  415: "INVALID_ARGUMENT",
  429: "RESOURCE_EXHAUSTED",
  503: "UNAVAILABLE",
} as const satisfies Record<PlainStatus, string>;

export function plainError(status: PlainStatus, message: string): FullReply {
  return jsonReply(status, JSON.stringify({ error: { code: status, status: STATUS_NAMES[status], message } }));
}
