/** Replies about the HTTP request itself, independent of any dialect. */

import { STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import type { ErrorCode } from "../../model/errors.ts";
import { type ExchangeReply, type FullReply, jsonReply } from "../../wire/exchange.ts";

/** The reply to a request that is refused regardless of its body, else whether its caller has authenticated. */
export type Screening = FullReply | { readonly hasCredentials: boolean };

/** Answers an upgrade request without upgrading, and closes the connection, which Node no longer manages. */
export function refuseUpgrade(socket: Duplex, { body = "", headers, status }: FullReply): void {
  socket.on("error", () => {});
  const fields = { ...headers, connection: "close", "content-length": Buffer.byteLength(body) };
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}`.trimEnd(),
    ...Object.entries(fields).map(([name, value]) => `${name}: ${value}`),
  ];
  socket.end(`${head.join("\r\n")}\r\n\r\n${body}`, () => socket.destroy());
}

export const TOO_MANY_HEADERS: FullReply = { status: 431, headers: {}, body: undefined };

export function withHeaders<R extends ExchangeReply>(reply: R, headers: Readonly<Record<string, string>>): R {
  const vary = [reply.headers.vary, headers.vary].filter((value) => value !== undefined).join(", ");
  return { ...reply, headers: { ...reply.headers, ...headers, ...(vary === "" ? undefined : { vary }) } };
}

export function methodNotAllowed(allow: string): FullReply {
  return errorReply(405, `This path takes ${allow}.`, { allow });
}

export const forbidden = (message: string) => errorReply(403, message);

export const unknownHost = () => forbidden("This host name is not ours; see server.publicUrl.");

export const CODE_OF_STATUS = {
  413: "INVALID_REQUEST",
  415: "CONTENT_TYPE_NOT_SUPPORTED",
  429: "RESOURCE_EXHAUSTED",
} as const satisfies Partial<Record<ErrorStatus, ErrorCode>>;

type ErrorStatus = 400 | 401 | 403 | 404 | 405 | 413 | 415 | 429 | 503;

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
} as const satisfies Record<ErrorStatus, string>;

export function errorReply(status: ErrorStatus, message: string, headers?: FullReply["headers"]): FullReply {
  return jsonReply(status, JSON.stringify({ error: { code: status, status: STATUS_NAMES[status], message } }), headers);
}
