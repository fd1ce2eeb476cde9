import { describe, expect, it } from "vitest";
import { ERROR_CODES, ProtocolError } from "../../model/errors.ts";
import { RPC_CODES } from "../../wire/rpc.ts";
import { errorHeaders, httpStatusError } from "../shared/errors.ts";
import { codeOfJsonRpc, decodeError, ERRORS, toErrorObject } from "./errors.ts";

describe("the error table", () => {
  it("is what 0.3 and its libraries say", () => {
    expect(ERROR_CODES.map((code) => [code, ERRORS[code].jsonRpc, ERRORS[code].http, ERRORS[code].grpcStatus])).toEqual(
      [
        ["TASK_NOT_FOUND", -32001, 404, "NOT_FOUND"],
        ["TASK_NOT_CANCELABLE", -32002, 409, "FAILED_PRECONDITION"],
        ["PUSH_NOTIFICATION_NOT_SUPPORTED", -32003, 501, "UNIMPLEMENTED"],
        ["UNSUPPORTED_OPERATION", -32004, 501, "UNIMPLEMENTED"],
        ["CONTENT_TYPE_NOT_SUPPORTED", -32005, 415, "INVALID_ARGUMENT"],
        ["INVALID_AGENT_RESPONSE", -32006, 502, "INTERNAL"],
        ["EXTENDED_AGENT_CARD_NOT_CONFIGURED", -32007, 404, "FAILED_PRECONDITION"],
        ["EXTENSION_SUPPORT_REQUIRED", -32600, 400, "FAILED_PRECONDITION"],
        ["VERSION_NOT_SUPPORTED", -32600, 400, "FAILED_PRECONDITION"],
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
      ],
    );
    for (const code of ERROR_CODES) expect(RPC_CODES[ERRORS[code].grpcStatus]).toBeGreaterThan(0);
  });

  it.each(ERROR_CODES)("%s is read back exactly", (code) => {
    const said = new ProtocolError(code, "Because.", {
      metadata: { taskId: "t" },
      violations: [{ field: "a", description: "b" }],
      retryAfter: 2,
    });
    const heard = decodeError(JSON.parse(toErrorObject(said)), 200);
    expect(heard).toMatchObject({
      code,
      message: "Because.",
      metadata: { taskId: "t" },
      violations: [{ field: "a", description: "b" }],
      retryAfter: 2,
    });
    expect(errorHeaders(said)).toEqual({ "retry-after": "2" });
  });

  it("reads bare numbers as 0.3 means them, and those of 1.0", () => {
    expect(
      [-32001, -32007, -32600, -32602, -32603, -32700, -32008, -32009, -1, "-32001"].map((code) => codeOfJsonRpc(code)),
    ).toEqual([
      "TASK_NOT_FOUND",
      "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
      "INVALID_REQUEST",
      "INVALID_PARAMS",
      "INTERNAL_ERROR",
      "PARSE_ERROR",
      "EXTENSION_SUPPORT_REQUIRED",
      "VERSION_NOT_SUPPORTED",
      undefined,
      undefined,
    ]);
  });
});

describe("refusals of others", () => {
  it("may have anything as data", () => {
    for (const data of [null, "text", 1, [1, "a", null], {}, [[]]]) {
      expect(decodeError({ code: -32004, message: "No.", data }, 200)).toMatchObject({
        code: "UNSUPPORTED_OPERATION",
        message: "No.",
      });
    }
    expect(decodeError({ code: -32004, data: { why: 1 } }, 200).data).toEqual({ why: 1 });
  });

  it("without a code are read by status, unless the binding knows better", () => {
    expect(decodeError({ message: "Task not found" }, 404).code).toBe("METHOD_NOT_FOUND");
    expect(decodeError({ message: "Task not found" }, 404, "TASK_NOT_FOUND").code).toBe("TASK_NOT_FOUND");
    expect(decodeError({ detail: "Nope" }, 418)).toMatchObject({ code: "INVALID_REQUEST", message: "Nope" });
    expect(decodeError({}, 0)).toMatchObject({ code: "INTERNAL_ERROR" });
    expect(decodeError({}, 500).message).toContain("500");
  });

  it("may be a status only", () => {
    expect([401, 403, 404, 429, 500, 503, 302].map((status) => httpStatusError(status).code)).toEqual([
      "UNAUTHENTICATED",
      "PERMISSION_DENIED",
      "METHOD_NOT_FOUND",
      "RESOURCE_EXHAUSTED",
      "INTERNAL_ERROR",
      "UNAVAILABLE",
      "INVALID_AGENT_RESPONSE",
    ]);
  });
});
