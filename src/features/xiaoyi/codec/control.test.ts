import { describe, expect, it } from "vitest";
import { ERROR_CODES, ProtocolError } from "../../../core/model/errors.ts";
import { decodeControl, isDesktop, methodOf, toCancelResult, toClearResult } from "./control.ts";
import { decodeError, isSuccess, toFrameError } from "./errors.ts";

describe("methods", () => {
  it.each([
    ["message/stream", "message"],
    ["tasks/cancel", "cancel"],
    ["tasks_cancel", "cancel"],
    ["clearContext", "clear"],
    ["clear_context", "clear"],
    ["clear", "clear"],
    ["initialize", "initialize"],
    ["notifications/initialized", "initialized"],
    ["authorize", "authorize"],
    ["deauthorize", "deauthorize"],
    ["tasks/send", undefined],
    ["constructor", undefined],
    [5, undefined],
  ])("%s is %s", (word, method) => {
    expect(methodOf(word)).toBe(method);
  });
});

describe("a request to cancel or clear", () => {
  it("may have no params", () => {
    expect(decodeControl({ jsonrpc: "2.0", id: "t-1", method: "tasks/cancel", sessionId: "s" })).toEqual({
      sessionIds: ["s"],
      taskIds: ["t-1"],
    });
  });

  it("names the conversation first and the task of its params first", () => {
    const params = { sessionId: "inner", id: "t-1" };
    expect(decodeControl({ id: "r", sessionId: "outer", conversationId: "c", taskId: "t-2", params })).toEqual({
      sessionIds: ["inner", "c", "outer"],
      taskIds: ["t-1", "t-2", "r"],
    });
  });

  it("may name nothing", () => {
    expect(decodeControl({ id: 7, sessionId: "", params: [] })).toEqual({ sessionIds: [], taskIds: [] });
  });

  it("is answered by a state", () => {
    expect(toCancelResult("t", "canceled")).toEqual({ id: "t", status: { state: "canceled" } });
    expect(toClearResult("cleared")).toEqual({ status: { state: "cleared" } });
  });
});

describe("devices", () => {
  it.each([
    ["3f2504e0-4f89-11d3-9a0c-0305e82c3301", false],
    ["3F2504E0-4F89-11D3-9A0C-0305E82C3301", false],
    ["b8d1c7f2aa", true],
    ["", false],
    [undefined, false],
  ])("%s is on a desktop: %s", (deviceId, desktop) => {
    expect(isDesktop(deviceId)).toBe(desktop);
  });
});

describe("errors", () => {
  it.each([
    ["TASK_NOT_FOUND", -32001],
    ["TASK_NOT_CANCELABLE", -32002],
    ["UNSUPPORTED_OPERATION", -32004],
    ["PARSE_ERROR", -32700],
    ["INVALID_REQUEST", -32600],
    ["METHOD_NOT_FOUND", -32601],
    ["INVALID_PARAMS", -32602],
    ["INTERNAL_ERROR", -32603],
    ["RESOURCE_EXHAUSTED", 99_911_113],
    ["PERMISSION_DENIED", 99_911_114],
    ["UNAVAILABLE", -32000],
  ] as const)("%s is %i, and back", (code, number) => {
    expect(toFrameError(new ProtocolError(code, "Why."))).toEqual({ code: number, message: "Why." });
    expect(decodeError({ code: number, message: "Why." })).toMatchObject({ code, message: "Why." });
    expect(decodeError({ code: String(number), message: "Why." }).code).toBe(code);
  });

  it("all have a code", () => {
    for (const code of ERROR_CODES) expect(toFrameError(new ProtocolError(code, "")).code).not.toBe(0);
  });

  it.each([
    [99_911_200, "TASK_NOT_FOUND"],
    [99_911_222, "INVALID_PARAMS"],
    [99_921_111, "INTERNAL_ERROR"],
    ["ERROR_CODE", "INTERNAL_ERROR"],
    [undefined, "INTERNAL_ERROR"],
  ])("%s is decoded as %s", (code, known) => {
    expect(decodeError({ code, message: "错误描述" })).toMatchObject({ code: known, message: "错误描述" });
  });

  it("with the code 0 are none", () => {
    expect(isSuccess({ code: 0, message: "" })).toBe(true);
    expect(isSuccess({ code: "0" })).toBe(true);
    expect(isSuccess({ code: 99_921_111 })).toBe(false);
    expect(isSuccess({})).toBe(false);
  });
});
