/** What each error is in each binding. Where patch releases of a version differ, both are right; the newest is first. */

import { type Fields, fieldsOf, isObject, listOf } from "../../../core/model/json.ts";
import { RPC_CODES } from "../../../core/wire/rpc.ts";
import { show, textOf } from "../json.ts";
import type { Binding, Version } from "../requirements.ts";
import type { WireError } from "./peer.ts";

const ERROR_INFO = "type.googleapis.com/google.rpc.ErrorInfo";
const ERROR_DOMAIN = "a2a-protocol.org";

/** The details of an error as JSON: each names its type, and one may identify the A2A error. */
export function readDetails(value: unknown, member: string) {
  const details = listOf(value);
  const untyped = details.filter((detail) => !isObject(detail) || typeof detail["@type"] !== "string");
  const notList = value === undefined || Array.isArray(value) ? [] : [`${member} is not a list: ${show(value)}`];
  const [detailFault] = [...notList, ...untyped.map((detail) => `a detail names no @type: ${show(detail)}`)];
  return { reason: textOf(findErrorInfo(details)?.reason), details, detailFault };
}

/** The ErrorInfo of the protocol's domain. */
export function findErrorInfo(details: readonly unknown[]): Readonly<Record<string, unknown>> | undefined {
  return details.map(fieldsOf).find((detail) => detail["@type"] === ERROR_INFO && detail.domain === ERROR_DOMAIN);
}

/** A field of a protobuf message on the wire. */
interface Field {
  readonly number: number;
  readonly value: Uint8Array | bigint;
}

const decoder = new TextDecoder();

/**
 * The details in `grpc-status-details-bin`, as their JSON form would be; undefined if the bytes are not a
 * `google.rpc.Status`. Only the protobuf that this needs is implemented.
 */
export function decodeStatusDetails(bytes: Uint8Array): readonly Fields[] | undefined {
  try {
    return decodeFields(bytes)
      .filter(({ number }) => number === 3)
      .map(({ value }) => decodeAny(value as Uint8Array));
  } catch {
    return undefined;
  }
}

function decodeAny(bytes: Uint8Array): Fields {
  const members = decodeFields(bytes);
  const type = textField(members, 1);
  const inner = members.find(({ number }) => number === 2)?.value;
  if (type !== ERROR_INFO || !(inner instanceof Uint8Array)) return { "@type": type };
  const info = decodeFields(inner);
  const metadata = info
    .filter(({ number }) => number === 3)
    .map(({ value }) => decodeFields(value as Uint8Array))
    .map((entry) => [textField(entry, 1), textField(entry, 2)] as const);
  return {
    "@type": type,
    reason: textField(info, 1),
    domain: textField(info, 2),
    metadata: Object.fromEntries(metadata),
  };
}

function textField(members: readonly Field[], number: number): string {
  const value = members.findLast((field) => field.number === number)?.value;
  return value instanceof Uint8Array ? decoder.decode(value) : "";
}

const VARINT = 0;
const FIXED_64 = 1;
const LENGTH = 2;
const FIXED_32 = 5;

function decodeFields(bytes: Uint8Array): Field[] {
  const found: Field[] = [];
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = bytes[at++];
      if (byte === undefined) throw new RangeError("The bytes end within a number.");
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    throw new RangeError("A number is too long.");
  };
  const take = (length: number): Uint8Array => {
    if (at + length > bytes.length) throw new RangeError("The bytes end within a field.");
    const part = bytes.subarray(at, at + length);
    at += length;
    return part;
  };
  while (at < bytes.length) {
    const tag = Number(varint());
    const number = tag >>> 3;
    switch (tag & 7) {
      case VARINT:
        found.push({ number, value: varint() });
        break;
      case FIXED_64:
        found.push({ number, value: take(8) });
        break;
      case LENGTH:
        found.push({ number, value: take(Number(varint())) });
        break;
      case FIXED_32:
        found.push({ number, value: take(4) });
        break;
      default:
        throw new RangeError("Unknown wire type.");
    }
  }
  return found;
}

const { FAILED_PRECONDITION, INTERNAL, INVALID_ARGUMENT, NOT_FOUND, UNIMPLEMENTED, UNAUTHENTICATED } = RPC_CODES;

type Codes = readonly number[];

/** 0.3 names no statuses; the last two are those that its implementations use. */
const row = (jsonRpc: number, http: Codes, rpc: Codes, httpV03: Codes, rpcV03: Codes = rpc) => ({
  jsonRpc,
  http,
  rpc,
  httpV03,
  rpcV03,
});

const PRECONDITION_CODES = [FAILED_PRECONDITION, UNIMPLEMENTED];

const ERROR_TABLE = {
  TASK_NOT_FOUND: row(-32001, [404], [NOT_FOUND], [404]),
  TASK_NOT_CANCELABLE: row(-32002, [400, 409], [FAILED_PRECONDITION], [409, 400], PRECONDITION_CODES),
  PUSH_NOTIFICATION_NOT_SUPPORTED: row(-32003, [400], PRECONDITION_CODES, [501, 400], PRECONDITION_CODES),
  UNSUPPORTED_OPERATION: row(-32004, [400], PRECONDITION_CODES, [501, 400], PRECONDITION_CODES),
  CONTENT_TYPE_NOT_SUPPORTED: row(-32005, [400, 415], [INVALID_ARGUMENT], [415, 400]),
  EXTENDED_AGENT_CARD_NOT_CONFIGURED: row(
    -32007,
    [400],
    [FAILED_PRECONDITION],
    [404, 400, 501],
    [NOT_FOUND, ...PRECONDITION_CODES],
  ),
  EXTENSION_SUPPORT_REQUIRED: row(-32008, [400], [FAILED_PRECONDITION], [400]),
  VERSION_NOT_SUPPORTED: row(-32009, [400], PRECONDITION_CODES, [400]),
  INVALID_PARAMS: row(-32602, [400], [INVALID_ARGUMENT], [400, 422]),
  METHOD_NOT_FOUND: row(-32601, [404, 405], [UNIMPLEMENTED], [404, 405]),
  INTERNAL_ERROR: row(-32603, [500], [INTERNAL], [500]),
};

export type ErrorName = keyof typeof ERROR_TABLE;

/** Those of A2A itself, which carry an ErrorInfo. */
export const A2A_ERRORS: ReadonlySet<string> = new Set(
  Object.entries(ERROR_TABLE).flatMap(([name, { jsonRpc }]) => (jsonRpc > -32100 ? [name] : [])),
);

const NAME_OF_CODE = new Map<number, string>(Object.entries(ERROR_TABLE).map(([name, { jsonRpc }]) => [jsonRpc, name]));

export function nameOfCode(code: number): string | undefined {
  return NAME_OF_CODE.get(code);
}

/** The codes that the binding may use for this error, the preferred one first. */
export function codesOf(name: ErrorName, binding: Binding, version: Version): readonly number[] {
  const { http, jsonRpc, httpV03, rpcV03, rpc } = ERROR_TABLE[name];
  if (binding === "JSONRPC") return [jsonRpc];
  if (binding === "HTTP+JSON") return version === "1.0" ? http : httpV03;
  return version === "1.0" ? rpc : rpcV03;
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
