import { describe, expect, it } from "vitest";
import { ProtocolError } from "../../model/errors.ts";
import type { Operation } from "../../model/operation.ts";
import type { CallTarget } from "../contract.ts";
import { httpCalling } from "./call-http.ts";
import type { UnaryKind } from "./proto/decode.ts";

const TARGET: CallTarget = { url: "https://a.example/rest", tenant: undefined, headers: {}, extensions: [] };
const MESSAGE = { messageId: "m1", role: "ROLE_USER", parts: [{ text: "hi" }] } as const;

function asked(operation: Operation, target: CallTarget = TARGET) {
  const { value, losses } = httpCalling.encode(operation, target);
  return { ...value, body: value.body === undefined ? undefined : JSON.parse(value.body), losses };
}

function refusal(kind: UnaryKind, status: number, body: unknown): unknown {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  try {
    return httpCalling.decode(kind, { status, contentType: "application/json", text });
  } catch (error) {
    if (ProtocolError.is(error)) return error.code;
    throw error;
  }
}

const answer = (kind: UnaryKind, body: unknown, status = 200) =>
  httpCalling.decode(kind, { status, contentType: "application/json", text: JSON.stringify(body) });

describe("asking", () => {
  it.each<[Operation, string, string, unknown]>([
    [
      { kind: "send", message: MESSAGE },
      "POST",
      "/message:send",
      {
        message: { messageId: "m1", role: "ROLE_USER", content: [{ text: "hi" }] },
        configuration: { blocking: true },
      },
    ],
    [
      {
        kind: "stream",
        message: MESSAGE,
        configuration: {
          returnImmediately: true,
          historyLength: 0,
          taskPushNotificationConfig: { url: "u:x", token: "k", authentication: { scheme: "Bearer" } },
        },
        metadata: { a: 1 },
      },
      "POST",
      "/message:stream",
      {
        message: { messageId: "m1", role: "ROLE_USER", content: [{ text: "hi" }] },
        configuration: {
          blocking: false,
          historyLength: 0,
          pushNotification: { url: "u:x", token: "k", authentication: { schemes: ["Bearer"] } },
        },
        metadata: { a: 1 },
      },
    ],
    [{ kind: "get", id: "a/b", historyLength: 0 }, "GET", "/tasks/a%2Fb?historyLength=0", undefined],
    [{ kind: "cancel", id: "t" }, "POST", "/tasks/t:cancel", { name: "tasks/t" }],
    [{ kind: "subscribe", id: "t", after: 4 }, "POST", "/tasks/t:subscribe", { name: "tasks/t" }],
    [
      { kind: "push-create", taskId: "t", config: { id: "p", url: "u:x" } },
      "POST",
      "/tasks/t/pushNotificationConfigs",
      {
        parent: "tasks/t",
        configId: "p",
        config: { name: "tasks/t/pushNotificationConfigs/p", pushNotificationConfig: { id: "p", url: "u:x" } },
      },
    ],
    [{ kind: "push-get", taskId: "t", id: "p" }, "GET", "/tasks/t/pushNotificationConfigs/p", undefined],
    [{ kind: "push-delete", taskId: "t", id: "p" }, "DELETE", "/tasks/t/pushNotificationConfigs/p", undefined],
    [
      { kind: "push-list", taskId: "t", pageSize: 2, pageToken: "a b" },
      "GET",
      "/tasks/t/pushNotificationConfigs?pageSize=2&pageToken=a%20b",
      undefined,
    ],
    [{ kind: "extended-card" }, "GET", "/card", undefined],
  ])("%j", (operation, method, path, body) => {
    const call = asked(operation);
    expect([call.method, call.url, call.body]).toEqual([method, `https://a.example/rest/v1${path}`, body]);
    expect(call.headers["content-type"]).toBe(body === undefined ? undefined : "application/json");
    expect(call.losses).toEqual([]);
  });

  it.each([
    ["https://a.example", "https://a.example/v1/card"],
    ["https://a.example/", "https://a.example/v1/card"],
    ["https://a.example/v1", "https://a.example/v1/card"],
    ["https://a.example/x/v1/?key=1", "https://a.example/x/v1/card?key=1"],
  ])("below %s", (url, expected) => {
    expect(asked({ kind: "extended-card" }, { ...TARGET, url }).url).toBe(expected);
  });

  it("says by headers what goes beside a request", () => {
    const target = { ...TARGET, headers: { authorization: "x" }, extensions: ["urn:a", "urn:b"], idempotencyKey: "k" };
    expect(asked({ kind: "subscribe", id: "t", after: 4 }, target).headers).toEqual({
      authorization: "x",
      accept: "text/event-stream, application/json",
      "x-a2a-extensions": "urn:a,urn:b",
      "idempotency-key": "k",
      "last-event-id": "4",
      "content-type": "application/json",
    });
  });

  it("tells what it cannot say", () => {
    const message = { ...MESSAGE, referenceTaskIds: ["t0"] };
    expect(asked({ kind: "send", message }, { ...TARGET, tenant: "x" }).losses.map(({ path }) => path)).toEqual([
      "message.referenceTaskIds",
      "call.tenant",
    ]);
    expect(asked({ kind: "cancel", id: "t", metadata: {} }).losses).toMatchObject([{ path: "metadata" }]);
    expect(() => asked({ kind: "list" })).toThrowError(expect.objectContaining({ code: "UNSUPPORTED_OPERATION" }));
  });

  it("subscribes by the other verb where the first is not known", () => {
    const { value } = httpCalling.encode({ kind: "subscribe", id: "t" }, TARGET);
    expect(httpCalling.alternative(value)).toEqual({
      method: "GET",
      url: "https://a.example/rest/v1/tasks/t:subscribe",
      headers: { accept: "text/event-stream, application/json" },
    });
    expect(httpCalling.alternative(httpCalling.encode({ kind: "cancel", id: "t" }, TARGET).value)).toBeUndefined();
  });
});

describe("hearing", () => {
  it.each([
    ["message", 200],
    ["msg", 201],
  ])("an answer under %s with status %i", (member, status) => {
    const said = { messageId: "m", role: "ROLE_AGENT", content: [{ text: "x" }] };
    expect(answer("send", { [member]: said }, status)).toEqual({
      value: { message: { messageId: "m", role: "ROLE_AGENT", parts: [{ text: "x" }] } },
      losses: [],
    });
  });

  it("a task as careless servers write it", () => {
    const status = {
      state: "TASK_STATE_CANCELED",
      update: { message_id: "m", content: [] },
      timestamp: "2026-01-02T03:04:05",
    };
    const { value, losses } = answer("get", { id: "t", status, artifacts: [], history: null, final: true });
    expect(value).toEqual({
      id: "t",
      contextId: "",
      status: {
        state: "TASK_STATE_CANCELED",
        message: { messageId: "m", role: "ROLE_AGENT", parts: [] },
        timestamp: "2026-01-02T03:04:05.000Z",
      },
    });
    expect(losses).toMatchObject([{ kind: "filled", path: "message.role" }]);
  });

  it("push configs, whose ids are in their names", () => {
    const wire = { name: "tasks/t/pushNotificationConfigs/p", pushNotificationConfig: { url: "u:x" } };
    expect(answer("push-get", wire).value).toEqual({ id: "p", taskId: "t", url: "u:x" });
    expect(answer("push-list", { configs: [wire] }).value).toEqual({
      configs: [{ id: "p", taskId: "t", url: "u:x" }],
      nextPageToken: "",
    });
    expect(answer("push-list", {}).value).toEqual({ configs: [], nextPageToken: "" });
    expect(httpCalling.decode("push-delete", { status: 204, contentType: "", text: "" }).value).toBeUndefined();
  });

  it("credentials without a scheme are lost, which is reported", () => {
    const wire = { pushNotificationConfig: { url: "u:x", authentication: { credentials: "x" } } };
    expect(answer("push-get", wire)).toMatchObject({
      value: { url: "u:x" },
      losses: [{ path: "config.authentication.credentials" }],
    });
  });

  it("cards", () => {
    const { value, losses } = answer("extended-card", {
      name: "A",
      url: "https://a.example",
      additional_interfaces: [
        { url: "https://a.example", transport: "JSONRPC" },
        { url: "a.example:1", transport: "GRPC" },
      ],
      capabilities: { streaming: true },
      supportsAuthenticatedExtendedCard: true,
      securitySchemes: { odd: { strangeScheme: {} } },
      signatures: [{ protected: "p", signature: "s" }],
    });
    expect(value).toEqual({
      name: "A",
      description: "",
      version: "",
      supportedInterfaces: [
        { url: "https://a.example", protocolBinding: "JSONRPC", protocolVersion: "0.3" },
        { url: "a.example:1", protocolBinding: "GRPC", protocolVersion: "0.3" },
      ],
      capabilities: { streaming: true, extendedAgentCard: true },
      securitySchemes: { odd: {} },
      defaultInputModes: [],
      defaultOutputModes: [],
      skills: [],
    });
    expect(losses.map(({ path }) => path)).toEqual(["card.securitySchemes.odd", "card.signatures"]);
  });

  it("frames, over several lines too, with their numbers", () => {
    const data = JSON.stringify({ status_update: { taskId: "t", status: { state: 6 }, final: true } }, null, 2);
    const { value } = httpCalling.decodeFrame({ data, event: "message", id: "7" });
    expect([value?.number, value?.event]).toEqual([
      7,
      { statusUpdate: { taskId: "t", contextId: "", status: { state: "TASK_STATE_INPUT_REQUIRED" } } },
    ]);
  });

  it.each([
    ["an error in the form of one library", "get", 404, { code: -32001, message: "x" }, "TASK_NOT_FOUND"],
    ["in that of the other", "get", 404, { message: "Task not found" }, "TASK_NOT_FOUND"],
    ["about a card", "extended-card", 404, { message: "x" }, "EXTENDED_AGENT_CARD_NOT_CONFIGURED"],
    ["about cancelling", "cancel", 409, { message: "x" }, "TASK_NOT_CANCELABLE"],
    ["about push", "push-get", 501, { message: "x" }, "PUSH_NOTIFICATION_NOT_SUPPORTED"],
    ["about anything else", "send", 501, { message: "x" }, "UNSUPPORTED_OPERATION"],
    ["about parameters", "send", 422, { message: "x" }, "INVALID_PARAMS"],
    ["about an agent behind", "send", 502, { message: "x" }, "INVALID_AGENT_RESPONSE"],
    ["of a framework that does not know the path", "get", 404, { detail: "Not Found" }, "METHOD_NOT_FOUND"],
    ["of a proxy", "get", 502, "<html>", "UNAVAILABLE"],
    ["that is no JSON", "get", 200, "<html>", "INVALID_AGENT_RESPONSE"],
    ["that is another answer", "get", 200, { task: {} }, "INVALID_AGENT_RESPONSE"],
    ["with our own reason", "get", 400, { code: -32600, data: [{ reason: "LOSS_REFUSED" }] }, "LOSS_REFUSED"],
  ] as const)("%s", (_what, kind, status, body, code) => {
    expect(refusal(kind, status, body)).toBe(code);
  });

  it.each([
    ["an event of that name", "error", { code: -32053, message: "gone" }, "UNAVAILABLE"],
    ["a member of that name", "message", { error: { code: -32001, message: "x" } }, "TASK_NOT_FOUND"],
    ["text", "error", "gone", "INTERNAL_ERROR"],
    ["no event at all", "message", "x", "INVALID_AGENT_RESPONSE"],
  ])("an error in a stream as %s", (_what, event, body, code) => {
    const data = typeof body === "string" ? body : JSON.stringify(body);
    expect(() => httpCalling.decodeFrame({ data, event, id: undefined })).toThrowError(
      expect.objectContaining({ code }),
    );
  });
});
