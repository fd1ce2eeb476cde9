/** Maps every error code in both directions. */

import { peerErrorMessage } from "../../../core/dialects/shared/errors.ts";
import { type ErrorCode, ProtocolError } from "../../../core/model/errors.ts";
import type { Fields } from "../../../core/model/json.ts";
import type { FrameError } from "./frames.ts";

/** Platform codes in addition to those of JSON-RPC. */
export const PLATFORM_CODES = {
  flowControl: 99_911_113,
  contentRejected: 99_911_114,
  taskInvalid: 99_911_200,
  contextInvalid: 99_911_222,
  taskFailed: 99_921_111,
} as const;

const CODES = {
  TASK_NOT_FOUND: -32001,
  TASK_NOT_CANCELABLE: -32002,
  PUSH_NOTIFICATION_NOT_SUPPORTED: -32004,
  UNSUPPORTED_OPERATION: -32004,
  CONTENT_TYPE_NOT_SUPPORTED: -32602,
  INVALID_AGENT_RESPONSE: -32603,
  EXTENDED_AGENT_CARD_NOT_CONFIGURED: -32004,
  EXTENSION_SUPPORT_REQUIRED: -32004,
  VERSION_NOT_SUPPORTED: -32600,
  PARSE_ERROR: -32700,
  INVALID_REQUEST: -32600,
  METHOD_NOT_FOUND: -32601,
  INVALID_PARAMS: -32602,
  INTERNAL_ERROR: -32603,
  UNAUTHENTICATED: -32600,
  PERMISSION_DENIED: PLATFORM_CODES.contentRejected,
  RESOURCE_EXHAUSTED: PLATFORM_CODES.flowControl,
  UNAVAILABLE: -32000,
  IDEMPOTENCY_CONFLICT: -32602,
  LOSS_REFUSED: -32602,
} as const satisfies Record<ErrorCode, number>;

/** `shown` defaults to the error's message, for a caller that is not a person. */
export function toFrameError({ code, message }: ProtocolError, shown: string = message): FrameError {
  return { code: CODES[code], message: shown };
}

const CODE_OF_NUMBER: ReadonlyMap<number, ErrorCode> = new Map<number, ErrorCode>([
  [-32700, "PARSE_ERROR"],
  [-32600, "INVALID_REQUEST"],
  [-32601, "METHOD_NOT_FOUND"],
  [-32602, "INVALID_PARAMS"],
  [-32603, "INTERNAL_ERROR"],
  [-32001, "TASK_NOT_FOUND"],
  [-32002, "TASK_NOT_CANCELABLE"],
  [-32004, "UNSUPPORTED_OPERATION"],
  [PLATFORM_CODES.flowControl, "RESOURCE_EXHAUSTED"],
  [PLATFORM_CODES.contentRejected, "PERMISSION_DENIED"],
  [PLATFORM_CODES.taskInvalid, "TASK_NOT_FOUND"],
  [PLATFORM_CODES.contextInvalid, "INVALID_PARAMS"],
  [PLATFORM_CODES.taskFailed, "INTERNAL_ERROR"],
  [-32000, "UNAVAILABLE"],
]);

/** Codes are numbers or numeric strings; 0, beside a result, means success. */
export function isSuccess({ code }: Fields): boolean {
  return code === 0 || code === "0";
}

export function decodeError(error: Fields, status = 0): ProtocolError {
  const known = CODE_OF_NUMBER.get(Number(error.code)) ?? "INTERNAL_ERROR";
  return new ProtocolError(known, peerErrorMessage(error, status), { metadata: { code: String(error.code) } });
}
