import { describe, expect, it } from "vitest";
import { routeOf } from "./peer-http.ts";
import { translationFor } from "./translate.ts";

const PARTS = [
  { text: "hi" },
  { raw: "aGk=", filename: "f.txt", mediaType: "text/plain" },
  { url: "https://x.example/f", mediaType: "image/png" },
  { data: { n: 1 }, metadata: { m: 1 } },
];
const MESSAGE = { messageId: "m1", role: "ROLE_USER", parts: PARTS, contextId: "c1", taskId: "t1" };
const PUSH = { url: "https://hook.example", token: "t", authentication: { scheme: "Bearer", credentials: "s" } };
const CONFIGURATION = { returnImmediately: true, historyLength: 3, taskPushNotificationConfig: PUSH };

describe("0.3 over JSON-RPC", () => {
  const { decodeEvent, encodeRequest, decodeResult } = translationFor("0.3", "JSONRPC");

  it("says messages with kinds", () => {
    expect(encodeRequest("SendMessage", { message: MESSAGE, configuration: CONFIGURATION, tenant: "lost" })).toEqual({
      message: {
        kind: "message",
        messageId: "m1",
        role: "user",
        contextId: "c1",
        taskId: "t1",
        parts: [
          { kind: "text", text: "hi" },
          { kind: "file", file: { bytes: "aGk=", name: "f.txt", mimeType: "text/plain" } },
          { kind: "file", file: { uri: "https://x.example/f", mimeType: "image/png" } },
          { kind: "data", data: { n: 1 }, metadata: { m: 1 } },
        ],
      },
      configuration: {
        blocking: false,
        historyLength: 3,
        pushNotificationConfig: {
          url: "https://hook.example",
          token: "t",
          authentication: { schemes: ["Bearer"], credentials: "s" },
        },
      },
    });
  });

  it("passes on what is wrong on purpose", () => {
    expect(encodeRequest("SendMessage", {})).toEqual({});
    expect(encodeRequest("SendMessage", { message: { messageId: "m" } })).toEqual({
      message: { kind: "message", messageId: "m" },
    });
    expect(encodeRequest("SendMessage", { message: "text" })).toEqual({ message: "text" });
    expect(encodeRequest("SendMessage", { message: { role: 7, parts: ["text", {}] } })).toEqual({
      message: { kind: "message", role: 7, parts: ["text", {}] },
    });
  });

  it("names push configs by task and id", () => {
    expect(encodeRequest("CreateTaskPushNotificationConfig", { taskId: "t1", ...PUSH })).toEqual({
      taskId: "t1",
      pushNotificationConfig: {
        url: "https://hook.example",
        token: "t",
        authentication: { schemes: ["Bearer"], credentials: "s" },
      },
    });
    expect(encodeRequest("GetTaskPushNotificationConfig", { taskId: "t1", id: "p" })).toEqual({
      id: "t1",
      pushNotificationConfigId: "p",
    });
    const config = { taskId: "t1", pushNotificationConfig: { id: "p", url: "u" } };
    expect(decodeResult("ListTaskPushNotificationConfigs", [config])).toEqual({
      configs: [{ taskId: "t1", id: "p", url: "u" }],
    });
  });

  it("understands answers and events by their kind", () => {
    const task = {
      kind: "task",
      id: "t1",
      contextId: "c1",
      status: { state: "input-required", message: { kind: "message", messageId: "a", role: "agent", parts: [] } },
      artifacts: [{ artifactId: "x", parts: [{ kind: "file", file: { bytes: "aGk=", name: "f" } }] }],
    };
    expect(decodeResult("SendMessage", task)).toEqual({
      task: {
        id: "t1",
        contextId: "c1",
        status: { state: "TASK_STATE_INPUT_REQUIRED", message: { messageId: "a", role: "ROLE_AGENT", parts: [] } },
        artifacts: [{ artifactId: "x", parts: [{ raw: "aGk=", filename: "f" }] }],
      },
    });
    const update = { kind: "status-update", taskId: "t1", contextId: "c1", status: { state: "canceled" }, final: true };
    expect(decodeEvent(update)).toEqual({
      statusUpdate: { taskId: "t1", contextId: "c1", status: { state: "TASK_STATE_CANCELED" } },
    });
    expect(
      decodeEvent({ kind: "artifact-update", taskId: "t1", artifact: { artifactId: "x", parts: [] }, append: true }),
    ).toEqual({
      artifactUpdate: { taskId: "t1", artifact: { artifactId: "x", parts: [] }, append: true },
    });
    expect(decodeEvent({ kind: "something else" })).toEqual({});
    expect(decodeEvent(null)).toEqual({});
  });
});

describe("0.3 by its proto", () => {
  const { decodeEvent, encodeRequest, decodeResult } = translationFor("0.3", "GRPC");

  it("says messages with content", () => {
    expect(encodeRequest("SendMessage", { message: MESSAGE, configuration: CONFIGURATION })).toEqual({
      message: {
        messageId: "m1",
        role: "ROLE_USER",
        contextId: "c1",
        taskId: "t1",
        content: [
          { text: "hi" },
          { file: { fileWithBytes: "aGk=", name: "f.txt", mimeType: "text/plain" } },
          { file: { fileWithUri: "https://x.example/f", mimeType: "image/png" } },
          { data: { data: { n: 1 } }, metadata: { m: 1 } },
        ],
      },
      configuration: {
        blocking: false,
        historyLength: 3,
        pushNotification: {
          url: "https://hook.example",
          token: "t",
          authentication: { schemes: ["Bearer"], credentials: "s" },
        },
      },
    });
  });

  it("names things by resource", () => {
    expect(encodeRequest("GetTask", { id: "t1", historyLength: 2 })).toEqual({ name: "tasks/t1", historyLength: 2 });
    expect(encodeRequest("DeleteTaskPushNotificationConfig", { taskId: "t1", id: "p" })).toEqual({
      name: "tasks/t1/pushNotificationConfigs/p",
    });
    const name = "tasks/t1/pushNotificationConfigs/p";
    expect(decodeResult("GetTaskPushNotificationConfig", { name, pushNotificationConfig: { url: "u" } })).toEqual({
      taskId: "t1",
      id: "p",
      url: "u",
    });
  });

  it("understands answers and events", () => {
    const said = {
      messageId: "a",
      role: "ROLE_AGENT",
      content: [{ file: { fileWithUri: "u" } }, { data: { data: { n: 1 } } }],
    };
    expect(decodeEvent({ msg: said })).toEqual({
      message: { messageId: "a", role: "ROLE_AGENT", parts: [{ url: "u" }, { data: { n: 1 } }] },
    });
    const status = { state: "TASK_STATE_CANCELLED", update: said };
    expect(decodeEvent({ statusUpdate: { taskId: "t1", status, final: true } })).toMatchObject({
      statusUpdate: { taskId: "t1", status: { state: "TASK_STATE_CANCELED", message: { messageId: "a" } } },
    });
  });
});

describe("routes", () => {
  it("of 1.0 carry what is not in the path as query or body, behind the tenant", () => {
    expect(routeOf("GetTask", { tenant: "a b", id: "t/1", historyLength: 0 }, "1.0")).toEqual({
      method: "GET",
      path: "/a%20b/tasks/t%2F1",
      query: [["historyLength", "0"]],
      body: undefined,
    });
    expect(routeOf("CreateTaskPushNotificationConfig", { taskId: "t1", url: "u" }, "1.0")).toEqual({
      method: "POST",
      path: "/tasks/t1/pushNotificationConfigs",
      query: [],
      body: '{"url":"u"}',
    });
  });

  it("of 0.3 are below v1, and a config is sent without an envelope", () => {
    expect(routeOf("CancelTask", { id: "t1" }, "0.3")).toEqual({
      method: "POST",
      path: "/v1/tasks/t1:cancel",
      query: [],
      body: "{}",
    });
    const { body, path } = routeOf("CreateTaskPushNotificationConfig", { taskId: "t1", id: "p", url: "u" }, "0.3");
    expect(path).toBe("/v1/tasks/t1/pushNotificationConfigs");
    expect(JSON.parse(body ?? "")).toEqual({
      name: "tasks/t1/pushNotificationConfigs/p",
      pushNotificationConfig: { id: "p", url: "u" },
    });
    expect(routeOf("GetExtendedAgentCard", {}, "0.3").path).toBe("/v1/card");
  });
});
