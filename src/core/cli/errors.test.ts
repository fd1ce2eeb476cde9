import { describe, expect, it } from "vitest";
import { CONNECTION_ERROR_CODES, ConnectionError } from "../client/errors.ts";
import { ERROR_CODES, ProtocolError } from "../model/errors.ts";
import { StoreError } from "../store/errors.ts";
import { CommandError, errorEnvelope, toFailure } from "./errors.ts";

describe("failures", () => {
  it("[A2ACLI_OUT_004] carry A2A's own names for the agent's errors", () => {
    const codes = ERROR_CODES.map((code) => {
      const { code: name, exit } = toFailure(new ProtocolError(code, "x"));
      return [code, name, exit];
    });
    expect(codes).toEqual([
      ["TASK_NOT_FOUND", "TaskNotFoundError", 1],
      ["TASK_NOT_CANCELABLE", "TaskNotCancelableError", 1],
      ["PUSH_NOTIFICATION_NOT_SUPPORTED", "PushNotificationNotSupportedError", 1],
      ["UNSUPPORTED_OPERATION", "UnsupportedOperationError", 1],
      ["CONTENT_TYPE_NOT_SUPPORTED", "ContentTypeNotSupportedError", 1],
      ["INVALID_AGENT_RESPONSE", "InvalidAgentResponseError", 1],
      ["EXTENDED_AGENT_CARD_NOT_CONFIGURED", "ExtendedAgentCardNotConfiguredError", 1],
      ["EXTENSION_SUPPORT_REQUIRED", "ExtensionSupportRequiredError", 1],
      ["VERSION_NOT_SUPPORTED", "VersionNotSupportedError", 1],
      ["PARSE_ERROR", "JSONParseError", 1],
      ["INVALID_REQUEST", "InvalidRequestError", 1],
      ["METHOD_NOT_FOUND", "MethodNotFoundError", 1],
      ["INVALID_PARAMS", "InvalidParamsError", 1],
      ["INTERNAL_ERROR", "InternalError", 1],
      ["UNAUTHENTICATED", "A2ACLI_ERR_AUTH_FAILED", 4],
      ["PERMISSION_DENIED", "A2ACLI_ERR_AUTH_FAILED", 4],
      ["RESOURCE_EXHAUSTED", "DRAGOMAN_ERR_RESOURCE_EXHAUSTED", 1],
      ["UNAVAILABLE", "A2ACLI_ERR_UNREACHABLE", 3],
      ["IDEMPOTENCY_CONFLICT", "DRAGOMAN_ERR_IDEMPOTENCY_CONFLICT", 1],
      ["LOSS_REFUSED", "DRAGOMAN_ERR_LOSS_REFUSED", 1],
    ]);
  });

  it("[A2ACLI_OUT_004] carry the specification's codes for what happened on the way", () => {
    const codes = CONNECTION_ERROR_CODES.map((code) => {
      const { code: name, exit } = toFailure(new ConnectionError(code, "x"));
      return [code, name, exit];
    });
    expect(codes).toEqual([
      ["unreachable", "A2ACLI_ERR_UNREACHABLE", 3],
      ["timeout", "A2ACLI_ERR_TIMEOUT", 5],
      ["aborted", "DRAGOMAN_ERR_INTERRUPTED", 130],
      ["bad-card", "A2ACLI_ERR_CARD_INVALID", 1],
      ["no-interface", "DRAGOMAN_ERR_NO_INTERFACE", 1],
      ["broken-stream", "A2ACLI_ERR_UNREACHABLE", 3],
    ]);
  });

  it("say what to do about a store, a port and a wrong flag", () => {
    expect(toFailure(new StoreError("in-use", "x"))).toMatchObject({ code: "DRAGOMAN_ERR_STORE_IN_USE", exit: 1 });
    const taken = Object.assign(new Error("listen EADDRINUSE"), { code: "EADDRINUSE", port: 4000 });
    expect(toFailure(taken)).toMatchObject({
      code: "DRAGOMAN_ERR_PORT_IN_USE",
      message: "Port 4000 is already in use.",
    });
    expect(toFailure(new CommandError("A2ACLI_ERR_USAGE", "x"))).toMatchObject({ exit: 2 });
    expect(toFailure(new Error("surprise"))).toMatchObject({ code: "A2ACLI_ERR_INTERNAL", exit: 1 });
  });

  it("[A2ACLI_OUT_004] have exactly the members of the envelope", () => {
    const envelope = errorEnvelope(toFailure(new ProtocolError("TASK_NOT_FOUND", "Task not found.")));
    expect(Object.keys(envelope.error)).toEqual(["code", "message", "hint", "a2aCode"]);
    expect(envelope.error.a2aCode).toBe(-32001);
  });
});
