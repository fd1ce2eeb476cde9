import { expect, test } from "vitest";
import type { Operation } from "../../model/operation.ts";
import { jsonRpcCalling } from "./call-json-rpc.ts";

const TARGET = { url: "https://x.example/?k=v", tenant: undefined, headers: {}, extensions: [] };
const MESSAGE = { messageId: "m", role: "ROLE_USER", parts: [{ text: "hi" }] } as const;

const PINNED: readonly (readonly [Operation, string, object])[] = [
  [{ kind: "send", message: MESSAGE }, "SendMessage", { message: MESSAGE }],
  [
    { kind: "stream", message: MESSAGE, metadata: { a: 1 } },
    "SendStreamingMessage",
    { message: MESSAGE, metadata: { a: 1 } },
  ],
  [{ kind: "get", id: "t", historyLength: 0 }, "GetTask", { id: "t", historyLength: 0 }],
  [{ kind: "list", statusTimestampAfter: 0 }, "ListTasks", { statusTimestampAfter: "1970-01-01T00:00:00.000Z" }],
  [{ kind: "cancel", id: "t" }, "CancelTask", { id: "t" }],
  [{ kind: "subscribe", id: "t", after: 5 }, "SubscribeToTask", { id: "t" }],
  [
    { kind: "push-create", taskId: "t", config: { url: "https://h.example" } },
    "CreateTaskPushNotificationConfig",
    { taskId: "t", url: "https://h.example" },
  ],
  [{ kind: "push-get", taskId: "t", id: "p" }, "GetTaskPushNotificationConfig", { taskId: "t", id: "p" }],
  [{ kind: "push-list", taskId: "t" }, "ListTaskPushNotificationConfigs", { taskId: "t" }],
  [{ kind: "push-delete", taskId: "t", id: "p" }, "DeleteTaskPushNotificationConfig", { taskId: "t", id: "p" }],
  [{ kind: "extended-card" }, "GetExtendedAgentCard", {}],
];

test.each(PINNED)("%j is spelled %s", (operation, method, params) => {
  const { value } = jsonRpcCalling.encode(operation, TARGET);
  expect(value).toMatchObject({ method: "POST", url: "https://x.example/?k=v" });
  expect(JSON.parse(value.body ?? "")).toEqual({ jsonrpc: "2.0", id: 1, method, params });
});

test("headers carry the version, the extensions, the key and the cursor, and the caller's own do not override them", () => {
  const { value } = jsonRpcCalling.encode(
    { kind: "subscribe", id: "t", after: 5 },
    { ...TARGET, headers: { "x-key": "k", "a2a-version": "0.3" }, extensions: ["urn:a", "urn:b"], idempotencyKey: "i" },
  );
  expect(value.headers).toEqual({
    accept: "text/event-stream, application/json",
    "a2a-version": "1.0",
    "a2a-extensions": "urn:a,urn:b",
    "content-type": "application/json",
    "idempotency-key": "i",
    "last-event-id": "5",
    "x-key": "k",
  });
});

test("a tenant is echoed exactly", () => {
  const { value } = jsonRpcCalling.encode({ kind: "get", id: "t" }, { ...TARGET, tenant: " A/b " });
  expect(JSON.parse(value.body ?? "").params).toEqual({ id: "t", tenant: " A/b " });
});

test("a proxy's own error is decoded by its status", () => {
  const decode = (status: number, text: string) =>
    jsonRpcCalling.decode("get", { status, contentType: "text/html", text });
  expect(() => decode(502, "<html>")).toThrow(expect.objectContaining({ code: "UNAVAILABLE" }));
  expect(() => decode(401, '{"message":"Who?"}')).toThrow(
    expect.objectContaining({ code: "UNAUTHENTICATED", message: "Who?" }),
  );
  expect(() => decode(200, "<html>")).toThrow(expect.objectContaining({ code: "INVALID_AGENT_RESPONSE" }));
});

test("only whole numbers are numbers of events", () => {
  const data = JSON.stringify({
    result: { task: { id: "t", contextId: "c", status: { state: "TASK_STATE_WORKING" } } },
  });
  const numberOf = (id: string | undefined) => jsonRpcCalling.decodeFrame({ data, event: "message", id }).value?.number;
  expect(["12", "0", "1.5", "-1", "x", "", "99999999999999999999", undefined].map(numberOf)).toEqual([
    12,
    0,
    ...Array(6).fill(undefined),
  ]);
});
