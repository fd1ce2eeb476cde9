/** Errors as gRPC statuses: a status code, and a `google.rpc.Status` with the details. */

import { type ErrorCode, ProtocolError } from "../../../model/errors.ts";
import { EXTENSIONS } from "../../../model/extensions.ts";
import { isObject, type JsonObject } from "../../../model/json.ts";
import type { Operation } from "../../../model/operation.ts";
import { RPC_CODES, type RpcCodeName, type RpcStatus } from "../../../wire/rpc.ts";
import type { CallTarget } from "../../contract.ts";
import {
  BAD_REQUEST,
  createPeerError,
  ERROR_INFO,
  errorDetails,
  errorHeaders,
  RETRY_INFO,
  readErrorDetails,
} from "../errors.ts";
import { compileProtobuf } from "../proto/binary-codec.ts";
import type { ProtoTables } from "../proto/json-codec.ts";
import { invalidResponse } from "../responses.ts";

/** Requests numbered events for streams; over gRPC the number can only be carried inside the event. */
export function callMetadata(operation: Operation, target: CallTarget, extensionsName: string): Record<string, string> {
  const metadata: Record<string, string> = { ...target.headers };
  const streams = operation.kind === "stream" || operation.kind === "subscribe";
  const extensions = streams ? [...new Set([...target.extensions, EXTENSIONS.replay])] : target.extensions;
  if (extensions.length > 0) metadata[extensionsName] = extensions.join(",");
  if (target.idempotencyKey !== undefined) metadata["idempotency-key"] = target.idempotencyKey;
  if (operation.kind === "subscribe" && operation.after !== undefined) {
    metadata["last-event-id"] = String(operation.after);
  }
  return metadata;
}

/** Decodes the bytes of a response. */
export function decodeResponse<T>(name: string, decode: () => T): T {
  try {
    return decode();
  } catch (error) {
    if (!ProtocolError.is(error)) throw error;
    throw invalidResponse(`it is not a ${name}`);
  }
}

/** For errors without a reason. Several errors share a status; the most common one is used. */
export const CODE_OF_GRPC_STATUS: Readonly<Record<string, ErrorCode>> = {
  NOT_FOUND: "TASK_NOT_FOUND",
  INVALID_ARGUMENT: "INVALID_PARAMS",
  FAILED_PRECONDITION: "UNSUPPORTED_OPERATION",
  UNIMPLEMENTED: "METHOD_NOT_FOUND",
  UNAUTHENTICATED: "UNAUTHENTICATED",
  PERMISSION_DENIED: "PERMISSION_DENIED",
  RESOURCE_EXHAUSTED: "RESOURCE_EXHAUSTED",
  UNAVAILABLE: "UNAVAILABLE",
  DEADLINE_EXCEEDED: "UNAVAILABLE",
  INTERNAL: "INTERNAL_ERROR",
};

const NAME_OF_CODE = new Map<number, RpcCodeName>(
  Object.entries(RPC_CODES).map(([name, code]) => [code, name as RpcCodeName]),
);

/** The reason in the details decides, then the dialect's mapping of the status. */
export function decodeStatus(
  status: RpcStatus,
  codeOf: (name: RpcCodeName, message: string) => ErrorCode | undefined,
): ProtocolError {
  const given = decodeStatusDetails(status);
  const details = readErrorDetails(given);
  const name = NAME_OF_CODE.get(status.code) ?? "UNKNOWN";
  const code = details.code ?? codeOf(name, status.message) ?? "INTERNAL_ERROR";
  const message = status.message === "" ? `The agent refused with gRPC status ${name} only.` : status.message;
  return createPeerError(code, message, details, given.length === 0 ? undefined : given);
}

const TABLES = {
  messages: {
    Status: [
      ["code", "int32", "implicit", 1],
      ["message", "string", "implicit", 2],
      ["details", "Any[]", "implicit", 3],
    ],
    Any: [
      ["typeUrl", "string", "implicit", 1],
      ["value", "bytes", "implicit", 2],
    ],
    ErrorInfo: [
      ["reason", "string", "implicit", 1],
      ["domain", "string", "implicit", 2],
      ["metadata", "map<string>", "implicit", 3],
    ],
    BadRequest: [["fieldViolations", "FieldViolation[]", "implicit", 1]],
    FieldViolation: [
      ["field", "string", "implicit", 1],
      ["description", "string", "implicit", 2],
    ],
    RetryInfo: [["retryDelay", "Duration", "optional", 1]],
    Duration: [
      ["seconds", "int32", "implicit", 1],
      ["nanos", "int32", "implicit", 2],
    ],
  },
  enums: {},
} as const satisfies ProtoTables;

type DetailName = "ErrorInfo" | "BadRequest" | "RetryInfo";

const codec = compileProtobuf<"Status" | DetailName>(TABLES);

const NAME_OF_TYPE: ReadonlyMap<unknown, DetailName> = new Map([
  [ERROR_INFO, "ErrorInfo"],
  [BAD_REQUEST, "BadRequest"],
  [RETRY_INFO, "RetryInfo"],
]);

const NANOS_PER_SECOND = 1e9;

export function toRpcStatus(error: ProtocolError, codeName: RpcCodeName): RpcStatus {
  const code = RPC_CODES[codeName];
  const { message } = error;
  const details = codec.encode("Status", { code, message, details: errorDetails(error).map(toAny) });
  const metadata = errorHeaders(error);
  return { code, message, details, metadata };
}

function toAny(detail: JsonObject): { readonly typeUrl: string; readonly value: string } {
  const { "@type": type, ...members } = detail;
  const name = NAME_OF_TYPE.get(type) as DetailName;
  const value = name === "RetryInfo" ? { retryDelay: toDuration(String(members.retryDelay)) } : members;
  return { typeUrl: String(type), value: Buffer.from(codec.encode(name, value)).toString("base64") };
}

function toDuration(text: string): { readonly seconds: number; readonly nanos: number } {
  const total = Number.parseFloat(text);
  const seconds = Math.floor(total);
  return { seconds, nanos: Math.round((total - seconds) * NANOS_PER_SECOND) };
}

/** The details of a status as JSON; empty if there are none that can be decoded. */
export function decodeStatusDetails({ details }: RpcStatus): readonly JsonObject[] {
  if (details === undefined) return [];
  try {
    const status = codec.decode("Status", details);
    return Array.isArray(status.details) ? status.details.flatMap(fromAny) : [];
  } catch {
    // Invalid details are ignored: code and message are valid without them.
    return [];
  }
}

function fromAny(any: { readonly typeUrl?: string; readonly value?: string }): JsonObject[] {
  const name = NAME_OF_TYPE.get(any.typeUrl);
  if (name === undefined) return [];
  const members = codec.decode(name, Buffer.from(any.value ?? "", "base64")) as JsonObject;
  if (name !== "RetryInfo") return [{ "@type": any.typeUrl as string, ...members }];
  const { seconds = 0, nanos = 0 } = (isObject(members.retryDelay) ? members.retryDelay : {}) as {
    seconds?: number;
    nanos?: number;
  };
  return [{ "@type": RETRY_INFO, retryDelay: `${seconds + nanos / NANOS_PER_SECOND}s` }];
}
