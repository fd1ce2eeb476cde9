/** What each error is in each binding. Where patch releases of a version differ, both are right; the newest is first. */
import { RPC_CODES } from "../../wire/rpc.ts";
import type { Binding, Version } from "../requirement.ts";
import type { WireError } from "./peer.ts";

const { FAILED_PRECONDITION, INTERNAL, INVALID_ARGUMENT, NOT_FOUND, UNIMPLEMENTED, UNAUTHENTICATED } = RPC_CODES;

interface ErrorRow {
  readonly jsonRpc: number;
  readonly http: readonly number[];
  readonly rpc: readonly number[];
  /** 0.3 names no statuses; these are those its implementations use. */
  readonly oldHttp: readonly number[];
  readonly oldRpc: readonly number[];
}

const row = (
  jsonRpc: number,
  http: readonly number[],
  rpc: readonly number[],
  oldHttp: readonly number[],
  oldRpc: readonly number[] = rpc,
): ErrorRow => ({ jsonRpc, http, rpc, oldHttp, oldRpc });

const REFUSED = [FAILED_PRECONDITION, UNIMPLEMENTED];

export const ERROR_TABLE = {
  TASK_NOT_FOUND: row(-32001, [404], [NOT_FOUND], [404]),
  TASK_NOT_CANCELABLE: row(-32002, [400, 409], [FAILED_PRECONDITION], [409, 400], REFUSED),
  PUSH_NOTIFICATION_NOT_SUPPORTED: row(-32003, [400], REFUSED, [501, 400], REFUSED),
  UNSUPPORTED_OPERATION: row(-32004, [400], REFUSED, [501, 400], REFUSED),
  CONTENT_TYPE_NOT_SUPPORTED: row(-32005, [400, 415], [INVALID_ARGUMENT], [415, 400]),
  EXTENDED_AGENT_CARD_NOT_CONFIGURED: row(
    -32007,
    [400],
    [FAILED_PRECONDITION],
    [404, 400, 501],
    [NOT_FOUND, ...REFUSED],
  ),
  EXTENSION_SUPPORT_REQUIRED: row(-32008, [400], [FAILED_PRECONDITION], [400]),
  VERSION_NOT_SUPPORTED: row(-32009, [400], REFUSED, [400]),
  INVALID_PARAMS: row(-32602, [400], [INVALID_ARGUMENT], [400, 422]),
  METHOD_NOT_FOUND: row(-32601, [404, 405], [UNIMPLEMENTED], [404, 405]),
  INTERNAL_ERROR: row(-32603, [500], [INTERNAL], [500]),
} as const satisfies Record<string, ErrorRow>;

export type ErrorName = keyof typeof ERROR_TABLE;

/** Those of A2A itself, which carry an ErrorInfo. */
export const A2A_ERRORS: ReadonlySet<string> = new Set(
  Object.entries(ERROR_TABLE).flatMap(([name, { jsonRpc }]) => (jsonRpc > -32100 ? [name] : [])),
);

const NAME_OF_CODE = new Map<number, string>(Object.entries(ERROR_TABLE).map(([name, { jsonRpc }]) => [jsonRpc, name]));

export function nameOfCode(code: number): string | undefined {
  return NAME_OF_CODE.get(code);
}

/** The codes with which the binding may tell this error, the preferred one first. */
export function codesOf(name: ErrorName, binding: Binding, version: Version): readonly number[] {
  const { http, jsonRpc, oldHttp, oldRpc, rpc } = ERROR_TABLE[name];
  if (binding === "JSONRPC") return [jsonRpc];
  if (binding === "HTTP+JSON") return version === "1.0" ? http : oldHttp;
  return version === "1.0" ? rpc : oldRpc;
}

/** By its name where it has one, else by its code. */
export function isError(error: WireError, name: ErrorName, binding: Binding, version: Version): boolean {
  if (error.name !== undefined && A2A_ERRORS.has(error.name)) return error.name === name;
  if (error.name === name) return true;
  return codesOf(name, binding, version).includes(error.code);
}

const HTTP_AUTHENTICATION = [401, 403, 407];
const RPC_AUTHENTICATION: readonly number[] = [UNAUTHENTICATED, RPC_CODES.PERMISSION_DENIED];

/** Refused for who is asking, not for what is asked. */
export function isAuthenticationError(error: WireError, binding: Binding): boolean {
  if (binding === "GRPC") return RPC_AUTHENTICATION.includes(error.code);
  if (error.httpStatus !== undefined && HTTP_AUTHENTICATION.includes(error.httpStatus)) return true;
  return error.name === "UNAUTHENTICATED" || error.name === "PERMISSION_DENIED";
}
