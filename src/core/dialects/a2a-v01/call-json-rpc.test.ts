import { describe, expect, it } from "vitest";
import { ProtocolError } from "../../model/errors.ts";
import type { Operation } from "../../model/operation.ts";
import type { Task } from "../../model/task.ts";
import type { CallTarget } from "../contract.ts";
import { jsonRpcCalling } from "./call-json-rpc.ts";
import { can } from "./index.ts";

const TARGET: CallTarget = {
  url: "https://agent.example/a2a",
  tenant: undefined,
  headers: { authorization: "Bearer x" },
  extensions: [],
};
const MESSAGE = { messageId: "m1", role: "ROLE_USER" as const, parts: [{ text: "hi" }] };

function encode(operation: Operation, target: CallTarget = TARGET) {
  const { losses, value } = jsonRpcCalling.encode(operation, target);
  const { body = "", ...rest } = value;
  return { losses, ...rest, body: JSON.parse(body) as { method: string; params: unknown } };
}

function heard(kind: "send" | "get" | "cancel" | "push-create" | "push-get", result: unknown) {
  const text = JSON.stringify({ jsonrpc: "2.0", id: 1, result });
  return jsonRpcCalling.decode(kind, { status: 200, contentType: "application/json", text });
}

function frame(result: unknown, id?: string) {
  const data = JSON.stringify({ jsonrpc: "2.0", id: 1, result });
  return jsonRpcCalling.decodeFrame({ data, event: "message", id });
}

describe("asking", () => {
  it("is a POST of the envelope", () => {
    const { value } = jsonRpcCalling.encode({ kind: "send", message: MESSAGE }, TARGET);
    expect(value).toEqual({
      method: "POST",
      url: "https://agent.example/a2a",
      headers: { authorization: "Bearer x", accept: "application/json", "content-type": "application/json" },
      body: '{"jsonrpc":"2.0","id":1,"method":"tasks/send","params":{"id":"m1","message":{"role":"user","parts":[{"type":"text","text":"hi"}]}}}',
    });
  });

  it.each<[Operation, string, unknown]>([
    [
      { kind: "send", message: { ...MESSAGE, contextId: "c", taskId: "t" }, chosenId: "other" },
      "tasks/send",
      { id: "t", sessionId: "c" },
    ],
    [{ kind: "stream", message: MESSAGE, chosenId: "mine" }, "tasks/sendSubscribe", { id: "mine" }],
    [
      {
        kind: "send",
        message: MESSAGE,
        metadata: { k: 1 },
        configuration: {
          historyLength: 3,
          taskPushNotificationConfig: {
            id: "p",
            url: "https://hook.example",
            token: "secret",
            authentication: { scheme: "bearer", credentials: "c" },
          },
        },
      },
      "tasks/send",
      {
        historyLength: 3,
        metadata: { k: 1 },
        pushNotification: {
          url: "https://hook.example",
          token: "secret",
          authentication: { schemes: ["bearer"], credentials: "c" },
        },
      },
    ],
    [{ kind: "get", id: "t", historyLength: 0 }, "tasks/get", { id: "t", historyLength: 0 }],
    [{ kind: "cancel", id: "t", metadata: { a: 1 } }, "tasks/cancel", { id: "t", metadata: { a: 1 } }],
    [{ kind: "subscribe", id: "t", after: 4 }, "tasks/resubscribe", { id: "t" }],
    [
      { kind: "push-create", taskId: "t", config: { url: "https://hook.example" } },
      "tasks/pushNotification/set",
      { id: "t", pushNotificationConfig: { url: "https://hook.example" } },
    ],
    [{ kind: "push-get", taskId: "t", id: "p" }, "tasks/pushNotification/get", { id: "t" }],
  ])("%j is asked by %s", (operation, method, params) => {
    const { body, losses } = encode(operation);
    expect(body).toMatchObject({ jsonrpc: "2.0", id: 1, method, params });
    expect(losses).toEqual([]);
  });

  it("carries the key of a send and the place in a stream in headers", () => {
    const send = encode({ kind: "stream", message: MESSAGE }, { ...TARGET, idempotencyKey: "k" });
    expect(send.headers).toMatchObject({
      "idempotency-key": "k",
      accept: "text/event-stream, application/json",
    });
    expect(encode({ kind: "subscribe", id: "t", after: 4 }).headers).toMatchObject({ "last-event-id": "4" });
  });

  it("says what it could not say", () => {
    const message = { ...MESSAGE, extensions: ["urn:x"], referenceTaskIds: ["t"] };
    const configuration = { acceptedOutputModes: ["text/plain"], returnImmediately: true };
    const { losses } = encode(
      { kind: "send", message, configuration },
      { ...TARGET, tenant: "x", extensions: ["urn:y"] },
    );
    expect(losses.map(({ path }) => path)).toEqual([
      "tenant",
      "extensions",
      "configuration.acceptedOutputModes",
      "configuration.returnImmediately",
      "message.extensions",
      "message.referenceTaskIds",
    ]);
  });

  it.each(["list", "push-list", "push-delete", "extended-card"] as const)("has no word for %s", (kind) => {
    expect(can.operations[kind]).toBe(false);
    const operation = { kind, taskId: "t", id: "p" } as Operation;
    expect(() => jsonRpcCalling.encode(operation, TARGET)).toThrow(
      expect.objectContaining({ code: "UNSUPPORTED_OPERATION" }),
    );
  });
});

describe("hearing", () => {
  it("reads a whole task", () => {
    const { losses, value } = heard("get", {
      id: "t",
      sessionId: "s",
      status: {
        state: "working",
        timestamp: "2025-05-01T10:00:00.331844",
        message: { role: "agent", parts: [{ type: "text", text: "on it" }] },
      },
      artifacts: [
        { name: "a", parts: [{ type: "data", data: [1] }], index: 0, lastChunk: true, append: null },
        { parts: [{ type: "text", text: "b" }], index: 3, metadata: { k: 1 } },
      ],
      history: [{ role: "user", parts: [{ text: "hi" }], metadata: null }],
      metadata: { m: 1 },
      extra: true,
    });
    expect(losses).toEqual([]);
    expect(value).toEqual({
      id: "t",
      contextId: "s",
      status: {
        state: "TASK_STATE_WORKING",
        timestamp: "2025-05-01T10:00:00.331Z",
        message: {
          messageId: expect.stringMatching(/^t-[\w-]{16}$/),
          taskId: "t",
          contextId: "s",
          role: "ROLE_AGENT",
          parts: [{ text: "on it" }],
        },
      },
      artifacts: [
        { artifactId: "artifact-0", name: "a", parts: [{ data: [1] }] },
        { artifactId: "artifact-3", parts: [{ text: "b" }], metadata: { k: 1 } },
      ],
      history: [
        { messageId: expect.any(String), taskId: "t", contextId: "s", role: "ROLE_USER", parts: [{ text: "hi" }] },
      ],
      metadata: { m: 1 },
    });
  });

  it("gives the same message the same id wherever it is received", () => {
    const said = { role: "agent", parts: [{ type: "text", text: "on it" }] };
    const status = { state: "working", message: said };
    const task = heard("get", { id: "t", status, history: [said] }).value as Task;
    const update = frame({ id: "t", status, final: false }).value?.event;
    const ids = [
      task.status.message?.messageId,
      task.history?.[0]?.messageId,
      update !== undefined && "statusUpdate" in update ? update.statusUpdate.status.message?.messageId : undefined,
    ];
    expect(new Set(ids).size).toBe(1);
  });

  it("keeps artifacts apart that have the same index, and joins chunks that say so", () => {
    const part = (text: string) => [{ type: "text", text }];
    const { value } = heard("get", {
      id: "t",
      status: { state: "completed" },
      artifacts: [
        { parts: part("a") },
        { parts: part("b") },
        { parts: part("c"), index: 0, append: true },
        { parts: part("d"), index: 1 },
        { parts: part("e") },
      ],
    });
    expect((value as { artifacts: unknown }).artifacts).toEqual([
      { artifactId: "artifact-0", parts: [{ text: "a" }, { text: "c" }] },
      { artifactId: "artifact-0.2", parts: [{ text: "b" }] },
      { artifactId: "artifact-1", parts: [{ text: "d" }] },
      { artifactId: "artifact-0.3", parts: [{ text: "e" }] },
    ]);
  });

  it("reads the answer to a send as a task, always", () => {
    expect(heard("send", { id: "t", status: { state: "completed" } }).value).toEqual({
      task: { id: "t", contextId: "", status: { state: "TASK_STATE_COMPLETED" } },
    });
  });

  it("reads frames", () => {
    expect(
      frame({ id: "t", status: { state: "completed" }, final: true, metadata: { a: 1 } }, "7").value,
    ).toMatchObject({
      number: 7,
      event: {
        statusUpdate: { taskId: "t", contextId: "", status: { state: "TASK_STATE_COMPLETED" }, metadata: { a: 1 } },
      },
    });
    const artifact = { parts: [{ text: "x" }], index: 2, append: true, lastChunk: true };
    expect(frame({ id: "t", artifact }).value?.event).toEqual({
      artifactUpdate: {
        taskId: "t",
        contextId: "",
        artifact: { artifactId: "artifact-2", parts: [{ text: "x" }] },
        append: true,
        lastChunk: true,
      },
    });
    const whole = { id: "t", sessionId: "s", status: { state: "completed" }, artifacts: [], history: null };
    expect(frame(whole).value?.event).toEqual({
      task: { id: "t", contextId: "s", status: { state: "TASK_STATE_COMPLETED" } },
    });
  });

  it("reads push configs", () => {
    const pushNotificationConfig = { url: "https://hook.example", authentication: { schemes: ["a", "b"] } };
    const { losses, value } = heard("push-get", { id: "t", pushNotificationConfig });
    expect(value).toEqual({ id: "t", taskId: "t", url: "https://hook.example", authentication: { scheme: "a" } });
    expect(losses).toMatchObject([{ kind: "dropped", path: "pushNotificationConfig.authentication.schemes" }]);
  });

  it("loses a time that is none, and says so", () => {
    const { losses, value } = heard("get", { id: "t", status: { state: "working", timestamp: "yesterday" } });
    expect(value).toEqual({ id: "t", contextId: "", status: { state: "TASK_STATE_WORKING" } });
    expect(losses).toMatchObject([{ kind: "dropped", path: "status.timestamp" }]);
  });

  it("does not guess a state that the agent does not know", () => {
    expect(heard("get", { id: "t", status: { state: "unknown" } })).toEqual({
      value: { id: "t", contextId: "", status: { state: "TASK_STATE_UNSPECIFIED" } },
      losses: [],
    });
  });

  it.each([
    [-32001, "TASK_NOT_FOUND"],
    [-32004, "UNSUPPORTED_OPERATION"],
    [-32006, "UNSUPPORTED_OPERATION"],
    [-32007, "UNAUTHENTICATED"],
    [-32008, "PERMISSION_DENIED"],
    [-32009, "UNSUPPORTED_OPERATION"],
    [-32010, "RESOURCE_EXHAUSTED"],
    [-32011, "UNAVAILABLE"],
    [-32601, "METHOD_NOT_FOUND"],
    [-32000, "INTERNAL_ERROR"],
  ])("reads the error %i as 0.1 means it", (code, expected) => {
    const text = JSON.stringify({ jsonrpc: "2.0", id: 1, error: { code, message: "No.", data: null } });
    const answer = { status: 200, contentType: "application/json", text };
    expect(() => jsonRpcCalling.decode("get", answer)).toThrow(
      expect.objectContaining({ code: expected, message: "No." }),
    );
    expect(() => jsonRpcCalling.decodeFrame({ data: text, event: "", id: undefined })).toThrow(ProtocolError);
  });

  it.each([
    [404, "<html>", "METHOD_NOT_FOUND"],
    [401, "", "UNAUTHENTICATED"],
    [500, '{"detail":"x"}', "INTERNAL_ERROR"],
    [200, "hello", "INVALID_AGENT_RESPONSE"],
    [200, '{"jsonrpc":"2.0","id":1}', "INVALID_AGENT_RESPONSE"],
    [200, '{"jsonrpc":"2.0","id":1,"result":null}', "INVALID_AGENT_RESPONSE"],
  ])("HTTP %i with %j is %s", (status, text, code) => {
    const answer = { status, contentType: "text/plain", text };
    expect(() => jsonRpcCalling.decode("send", answer)).toThrow(expect.objectContaining({ code }));
  });
});
