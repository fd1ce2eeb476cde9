import { describe, expect, it } from "vitest";
import { ERROR_CODES, ProtocolError } from "../../model/errors.ts";
import { codeOfReason, readErrorDetails, toPublicError } from "../shared/errors.ts";
import { codeOfJsonRpc, ERRORS, toHttpError, toJsonRpcError } from "./errors.ts";

describe("the table", () => {
  it("[ERR-CODE-001] is that of A2A 1.0.1", () => {
    const rows = ERROR_CODES.map((code) => [code, ERRORS[code].jsonRpc, ERRORS[code].http, ERRORS[code].grpcStatus]);
    expect(rows).toEqual([
      ["TASK_NOT_FOUND", -32001, 404, "NOT_FOUND"],
      ["TASK_NOT_CANCELABLE", -32002, 400, "FAILED_PRECONDITION"],
      ["PUSH_NOTIFICATION_NOT_SUPPORTED", -32003, 400, "FAILED_PRECONDITION"],
      ["UNSUPPORTED_OPERATION", -32004, 400, "FAILED_PRECONDITION"],
      ["CONTENT_TYPE_NOT_SUPPORTED", -32005, 400, "INVALID_ARGUMENT"],
      ["INVALID_AGENT_RESPONSE", -32006, 500, "INTERNAL"],
      ["EXTENDED_AGENT_CARD_NOT_CONFIGURED", -32007, 400, "FAILED_PRECONDITION"],
      ["EXTENSION_SUPPORT_REQUIRED", -32008, 400, "FAILED_PRECONDITION"],
      ["VERSION_NOT_SUPPORTED", -32009, 400, "FAILED_PRECONDITION"],
      ["PARSE_ERROR", -32700, 400, "INVALID_ARGUMENT"],
      ["INVALID_REQUEST", -32600, 400, "INVALID_ARGUMENT"],
      ["METHOD_NOT_FOUND", -32601, 404, "UNIMPLEMENTED"],
      ["INVALID_PARAMS", -32602, 400, "INVALID_ARGUMENT"],
      ["INTERNAL_ERROR", -32603, 500, "INTERNAL"],
      ["UNAUTHENTICATED", -32050, 401, "UNAUTHENTICATED"],
      ["PERMISSION_DENIED", -32051, 403, "PERMISSION_DENIED"],
      ["RESOURCE_EXHAUSTED", -32052, 429, "RESOURCE_EXHAUSTED"],
      ["UNAVAILABLE", -32053, 503, "UNAVAILABLE"],
      ["IDEMPOTENCY_CONFLICT", -32054, 409, "ALREADY_EXISTS"],
      ["LOSS_REFUSED", -32055, 422, "FAILED_PRECONDITION"],
    ]);
  });

  it.each(ERROR_CODES)("leads back to %s from its reason and its number", (code) => {
    expect(codeOfReason(code)).toBe(code);
    expect(codeOfJsonRpc(ERRORS[code].jsonRpc)).toBe(code);
  });

  it("leads nowhere from what is not in it", () => {
    expect([codeOfReason("toString"), codeOfReason(1), codeOfJsonRpc(-32099), codeOfJsonRpc("-32001")]).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
  });
});

describe("details", () => {
  const error = new ProtocolError("INVALID_PARAMS", "a is wrong", {
    metadata: { taskId: "t1" },
    violations: [{ field: "a", description: "is wrong" }],
    retryAfter: 2,
    data: { from: "a peer" },
  });

  it("[JSONRPC-ERR-004] are the same in both bindings, each with its type", () => {
    const { data } = JSON.parse(toJsonRpcError(error));
    const { details } = JSON.parse(toHttpError(error)).error;
    expect(details).toEqual(data);
    expect(data.map((detail: Record<string, string>) => detail["@type"])).toEqual([
      "type.googleapis.com/google.rpc.ErrorInfo",
      "type.googleapis.com/google.rpc.BadRequest",
      "type.googleapis.com/google.rpc.RetryInfo",
    ]);
    expect(JSON.stringify(data)).not.toContain("a peer");
  });

  it("are read back", () => {
    expect(readErrorDetails(JSON.parse(toJsonRpcError(error)).data)).toEqual({
      code: "INVALID_PARAMS",
      metadata: { taskId: "t1" },
      violations: [{ field: "a", description: "is wrong" }],
      retryAfter: 2,
    });
  });

  it.each([undefined, null, 5, "x", [], [null, 1, "a"], {}, [{ reason: 5, fieldViolations: 3, retryDelay: "soon" }]])(
    "of no known form say nothing: %j",
    (details) => {
      expect(readErrorDetails(details)).toEqual({});
    },
  );

  it("may stand alone instead of in a list", () => {
    expect(readErrorDetails({ reason: "TASK_NOT_FOUND", metadata: { a: "b", c: 1 } })).toEqual({
      code: "TASK_NOT_FOUND",
      metadata: { a: "b" },
    });
  });
});

it("an error of another copy of this package is presentable as it is", () => {
  const error = new ProtocolError("UNAVAILABLE", "Later.");
  expect(toPublicError(error)).toBe(error);
  expect(toPublicError("a string").code).toBe("INTERNAL_ERROR");
});
