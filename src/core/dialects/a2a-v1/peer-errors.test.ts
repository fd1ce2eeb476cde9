import { expect, test } from "vitest";
import { httpStatusError } from "../shared/errors.ts";
import { decodeError } from "./errors.ts";

const INFO = "type.googleapis.com/google.rpc.ErrorInfo";

test.each([
  [
    "the reason before the code",
    { code: -32603, data: [{ "@type": INFO, reason: "TASK_NOT_FOUND" }] },
    200,
    "TASK_NOT_FOUND",
  ],
  [
    "the reason before the status",
    { code: 409, status: "ABORTED", details: [{ reason: "TASK_NOT_CANCELABLE" }] },
    409,
    "TASK_NOT_CANCELABLE",
  ],
  ["the code without a reason", { code: -32005, data: "text" }, 200, "CONTENT_TYPE_NOT_SUPPORTED"],
  [
    "the code although the reason is unknown",
    { code: -32003, data: [{ reason: "OWN" }] },
    200,
    "PUSH_NOTIFICATION_NOT_SUPPORTED",
  ],
  ["the name of a gRPC status", { code: 404, status: "NOT_FOUND" }, 404, "TASK_NOT_FOUND"],
  [
    "a problem document",
    { type: "https://a2a-protocol.org/errors/task-not-found", detail: "Gone." },
    404,
    "TASK_NOT_FOUND",
  ],
  ["the HTTP status when there is nothing else", { detail: "Not Found" }, 404, "METHOD_NOT_FOUND"],
  ["an unknown code in the middle of a stream", { code: -31999 }, 0, "INTERNAL_ERROR"],
])("a refusal is identified by %s", (_, given, status, code) => {
  expect(decodeError(given, status).code).toBe(code);
});

test("message, metadata, violations and the raw data are kept", () => {
  const data = [
    { "@type": INFO, reason: "INVALID_PARAMS", metadata: { a: "b" } },
    { "@type": "type.googleapis.com/google.rpc.BadRequest", fieldViolations: [{ field: "id", description: "is odd" }] },
  ];
  expect(decodeError({ code: -32602, message: "Odd.", data }, 200)).toMatchObject({
    code: "INVALID_PARAMS",
    message: "Odd.",
    metadata: { a: "b" },
    violations: [{ field: "id", description: "is odd" }],
    data,
  });
  expect(decodeError({}, 0).message).toBe("The agent refused without giving a reason.");
});

test.each([
  [400, "INVALID_REQUEST"],
  [401, "UNAUTHENTICATED"],
  [403, "PERMISSION_DENIED"],
  [404, "METHOD_NOT_FOUND"],
  [405, "METHOD_NOT_FOUND"],
  [418, "INVALID_REQUEST"],
  [429, "RESOURCE_EXHAUSTED"],
  [500, "INTERNAL_ERROR"],
  [502, "UNAVAILABLE"],
  [503, "UNAVAILABLE"],
  [504, "UNAVAILABLE"],
  [599, "INTERNAL_ERROR"],
  [304, "INVALID_AGENT_RESPONSE"],
])("a bare status %i is %s", (status, code) => {
  expect(httpStatusError(status)).toMatchObject({ code, metadata: { httpStatus: String(status) } });
});
