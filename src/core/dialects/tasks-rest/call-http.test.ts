import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { Operation } from "../../model/operation.ts";
import { readSseEvents } from "../../wire/sse.ts";
import type { CallTarget } from "../contract.ts";
import { httpCalling } from "./call-http.ts";
import { can } from "./index.ts";

const TARGET: CallTarget = {
  url: "http://127.0.0.1:8001/",
  tenant: undefined,
  headers: { "x-api-key": "k" },
  extensions: [],
};
const MESSAGE = { messageId: "m1", role: "ROLE_USER" as const, parts: [{ text: "茶" }], contextId: "c" };

function decode(kind: "send" | "get" | "cancel", value: unknown, status = 200) {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return httpCalling.decode(kind, { status, contentType: "application/json", text });
}

function frame(value: unknown, event = "message", id?: string) {
  return httpCalling.decodeFrame({ data: JSON.stringify(value), event, id });
}

describe("asking", () => {
  it("sends the message as the other side of the chain does", () => {
    const { losses, value } = httpCalling.encode({ kind: "send", message: MESSAGE }, TARGET);
    expect(losses).toEqual([]);
    expect(value).toEqual({
      method: "POST",
      url: "http://127.0.0.1:8001/tasks/send",
      headers: { "x-api-key": "k", accept: "application/json", "content-type": "application/json" },
      body: '{"message":{"role":"user","parts":[{"type":"text","text":"茶"}],"messageId":"m1","contextId":"c"}}',
    });
  });

  it.each<[Operation, string, string]>([
    [{ kind: "stream", message: MESSAGE }, "POST", "/tasks/sendSubscribe"],
    [{ kind: "get", id: "a/b" }, "GET", "/tasks/a%2Fb"],
    [{ kind: "get", id: "t", historyLength: 2 }, "GET", "/tasks/t?historyLength=2"],
    [{ kind: "cancel", id: "t" }, "POST", "/tasks/t/cancel"],
    [{ kind: "subscribe", id: "t", after: 4 }, "GET", "/tasks/t/subscribe"],
  ])("%j is %s %s", (operation, method, path) => {
    const { value } = httpCalling.encode(operation, TARGET);
    expect([value.method, value.url]).toEqual([method, `http://127.0.0.1:8001${path}`]);
  });

  it("goes before a query that the address has", () => {
    const target = { ...TARGET, url: "https://x.example/base?key=1" };
    expect(httpCalling.encode({ kind: "get", id: "t", historyLength: 1 }, target).value.url).toBe(
      "https://x.example/base/tasks/t?key=1&historyLength=1",
    );
  });

  it("carries the key of a send and the place in a stream in headers", () => {
    const send = httpCalling.encode({ kind: "stream", message: MESSAGE }, { ...TARGET, idempotencyKey: "k" });
    expect(send.value.headers).toMatchObject({ "idempotency-key": "k", accept: "text/event-stream, application/json" });
    const subscribe = httpCalling.encode({ kind: "subscribe", id: "t", after: 4 }, TARGET);
    expect(subscribe.value.headers).toMatchObject({ "last-event-id": "4" });
  });

  it("says what it could not say", () => {
    const configuration = {
      acceptedOutputModes: ["text/plain"],
      historyLength: 1,
      returnImmediately: true,
      taskPushNotificationConfig: { url: "https://hook.example" },
    };
    const operation: Operation = { kind: "send", message: { ...MESSAGE, extensions: ["urn:x"] }, configuration };
    const { losses } = httpCalling.encode(operation, { ...TARGET, tenant: "x", extensions: ["urn:y"] });
    expect(losses.map(({ path }) => path)).toEqual([
      "tenant",
      "extensions",
      "configuration.acceptedOutputModes",
      "configuration.returnImmediately",
      "configuration.historyLength",
      "configuration.taskPushNotificationConfig",
      "message.extensions",
    ]);
  });

  it.each(["list", "push-create", "push-get", "push-list", "push-delete", "extended-card"] as const)(
    "has no word for %s",
    (kind) => {
      expect(can.operations[kind]).toBe(false);
      expect(() => httpCalling.encode({ kind } as Operation, TARGET)).toThrow(
        expect.objectContaining({ code: "UNSUPPORTED_OPERATION" }),
      );
    },
  );
});

describe("hearing", () => {
  it("reads a stream of the chain", async () => {
    const text = readFileSync(new URL("./fixtures/outline-stream.txt", import.meta.url));
    async function* bytes() {
      yield text;
    }
    const heard: unknown[] = [];
    for await (const events of readSseEvents(bytes())) {
      for (const { data, event, lastEventId } of events) {
        const { losses, value } = httpCalling.decodeFrame({ data, event, id: lastEventId });
        expect(losses).toEqual([]);
        heard.push(value?.event);
      }
    }
    const history = [{ messageId: "m-1", contextId: "c0ffee", role: "ROLE_USER", parts: [{ text: "茶的历史" }] }];
    const artifact = {
      artifactId: "a-1",
      name: "outline",
      parts: [{ data: { title: "茶的历史", sections: ["起源"] } }],
    };
    const task = { id: "9b2e", contextId: "c0ffee", history };
    expect(heard).toEqual([
      { task: { ...task, status: { state: "TASK_STATE_SUBMITTED", timestamp: "2025-11-03T08:15:00.120Z" } } },
      { task: { ...task, status: { state: "TASK_STATE_WORKING", timestamp: "2025-11-03T08:15:00.121Z" } } },
      { artifactUpdate: { taskId: "9b2e", contextId: "c0ffee", artifact, lastChunk: true } },
      {
        task: {
          ...task,
          artifacts: [artifact],
          status: {
            state: "TASK_STATE_COMPLETED",
            timestamp: "2025-11-03T08:15:02.000Z",
            message: {
              messageId: "m-2",
              taskId: "9b2e",
              contextId: "c0ffee",
              role: "ROLE_AGENT",
              parts: [{ text: "完成" }],
            },
          },
        },
      },
    ]);
  });

  it("reads frames that leave out what can be known", () => {
    const artifact = { parts: [{ type: "data", data: {} }] };
    expect(frame({ taskId: "t", artifact }, "message", "3").value).toMatchObject({
      number: 3,
      event: { artifactUpdate: { taskId: "t", contextId: "", artifact: { artifactId: "artifact-0" } } },
    });
    expect(frame({ id: "t", status: { state: "completed" } }).value?.event).toEqual({
      task: { id: "t", contextId: "", status: { state: "TASK_STATE_COMPLETED" } },
    });
  });

  it("reads the task that every answer is", () => {
    const said = { id: "t", contextId: "c", status: { state: "input-required" }, artifacts: [], history: [] };
    const task = { id: "t", contextId: "c", status: { state: "TASK_STATE_INPUT_REQUIRED" } };
    expect(decode("send", said).value).toEqual({ task });
    expect(decode("get", said).value).toEqual(task);
    expect(decode("cancel", said).value).toEqual(task);
  });

  it.each([
    ["get", 404, { detail: "Task not found" }, "TASK_NOT_FOUND", "Task not found"],
    ["get", 404, { detail: "Not Found" }, "METHOD_NOT_FOUND", "Not Found"],
    ["get", 404, "", "METHOD_NOT_FOUND", "404"],
    ["send", 404, { detail: "Not Found" }, "METHOD_NOT_FOUND", "Not Found"],
    ["send", 405, { detail: "Method Not Allowed" }, "METHOD_NOT_FOUND", "Method"],
    ["send", 404, "<html>", "METHOD_NOT_FOUND", "404"],
    ["cancel", 404, { detail: "Not Found" }, "UNSUPPORTED_OPERATION", "Not Found"],
    ["cancel", 405, "", "UNSUPPORTED_OPERATION", "405"],
    ["cancel", 404, { detail: "任务不存在" }, "TASK_NOT_FOUND", "任务不存在"],
    ["send", 401, { detail: "no key" }, "UNAUTHENTICATED", "no key"],
    ["send", 422, { detail: [{ loc: ["body", "message"], msg: "field required" }] }, "INVALID_PARAMS", "body.message"],
    ["send", 500, "Internal Server Error", "INTERNAL_ERROR", "500"],
    ["send", 200, "hello", "INVALID_AGENT_RESPONSE", "JSON"],
    ["send", 200, { id: "t" }, "INVALID_AGENT_RESPONSE", "status"],
    ["get", 200, { error: { code: "unavailable", message: "Later." } }, "UNAVAILABLE", "Later."],
    ["get", 400, { error: { code: "odd", message: "No." } }, "INVALID_REQUEST", "No."],
  ] as const)("%s: HTTP %i with %j is %s", (kind, status, body, code, message) => {
    expect(() => decode(kind, body, status)).toThrow(
      expect.objectContaining({ code, message: expect.stringContaining(message) }),
    );
  });

  it("reads errors in the middle of a stream", () => {
    const error = { code: "resource-exhausted", message: "Later.", taskId: "t", retryAfter: 2 };
    expect(() => frame({ error })).toThrow(
      expect.objectContaining({ code: "RESOURCE_EXHAUSTED", retryAfter: 2, metadata: { taskId: "t" } }),
    );
    expect(() => httpCalling.decodeFrame({ data: "boom", event: "error", id: undefined })).toThrow(
      expect.objectContaining({ code: "INTERNAL_ERROR", message: "boom" }),
    );
  });
});
