import { describe, expect, it } from "vitest";
import { EXTENSIONS } from "../../model/extensions.ts";
import type { Operation } from "../../model/operation.ts";
import { RPC_CODES, type RpcCodeName } from "../../wire/rpc.ts";
import type { CallTarget } from "../contract.ts";
import { grpcCalling } from "./call-grpc.ts";
import { REQUEST_NAMES } from "./proto/requests.ts";
import { fromBytes, toBytes } from "./proto/schema.ts";

const TARGET: CallTarget = { url: "a.example:1", tenant: undefined, headers: {}, extensions: [] };
const MESSAGE = { messageId: "m1", role: "ROLE_USER", parts: [{ text: "hi" }] } as const;

function asked(operation: Exclude<Operation, { kind: "list" }>, target: CallTarget = TARGET) {
  const { value, losses } = grpcCalling.encode(operation, target);
  return { ...value, message: fromBytes(REQUEST_NAMES[operation.kind], value.message), losses };
}

describe("asking", () => {
  it.each<[Exclude<Operation, { kind: "list" }>, string, unknown]>([
    [
      { kind: "send", message: MESSAGE },
      "SendMessage",
      {
        message: { messageId: "m1", role: "ROLE_USER", content: [{ text: "hi" }] },
        configuration: { blocking: true },
      },
    ],
    [{ kind: "get", id: "t", historyLength: 2 }, "GetTask", { name: "tasks/t", historyLength: 2 }],
    [{ kind: "cancel", id: "t" }, "CancelTask", { name: "tasks/t" }],
    [{ kind: "subscribe", id: "t" }, "TaskSubscription", { name: "tasks/t" }],
    [
      { kind: "push-create", taskId: "t", config: { url: "u:x" } },
      "CreateTaskPushNotificationConfig",
      {
        parent: "tasks/t",
        config: { name: "tasks/t/pushNotificationConfigs/", pushNotificationConfig: { url: "u:x" } },
      },
    ],
    [
      { kind: "push-get", taskId: "t", id: "p" },
      "GetTaskPushNotificationConfig",
      { name: "tasks/t/pushNotificationConfigs/p" },
    ],
    [
      { kind: "push-list", taskId: "t", pageSize: 3 },
      "ListTaskPushNotificationConfig",
      { parent: "tasks/t", pageSize: 3 },
    ],
    [
      { kind: "push-delete", taskId: "t", id: "p" },
      "DeleteTaskPushNotificationConfig",
      { name: "tasks/t/pushNotificationConfigs/p" },
    ],
    [{ kind: "extended-card" }, "GetAgentCard", {}],
  ])("%j", (operation, method, message) => {
    const call = asked(operation);
    expect([call.service, call.method, call.message]).toEqual(["a2a.v1.A2AService", method, message]);
    expect(call.losses).toEqual([]);
  });

  it("says by metadata what goes beside a request, and asks streams for numbers", () => {
    const target = { ...TARGET, headers: { authorization: "x" }, extensions: ["urn:a"], idempotencyKey: "k" };
    expect(asked({ kind: "subscribe", id: "t", after: 4 }, target).metadata).toEqual({
      authorization: "x",
      "x-a2a-extensions": `urn:a,${EXTENSIONS.replay}`,
      "idempotency-key": "k",
      "last-event-id": "4",
    });
    expect(asked({ kind: "get", id: "t" }).metadata).toEqual({});
  });

  it("tells what bytes may not say to everyone", () => {
    const configuration = { returnImmediately: true, historyLength: 0 };
    const { losses, message } = asked({ kind: "send", message: MESSAGE, configuration }, { ...TARGET, tenant: "x" });
    expect(losses.map(({ kind, path }) => [kind, path])).toEqual([
      ["bent", "configuration.historyLength"],
      ["dropped", "call.tenant"],
    ]);
    expect(message).toMatchObject({ configuration: { blocking: false, historyLength: 0 } });
    expect(asked({ kind: "get", id: "t", historyLength: 0 }).losses).toMatchObject([{ path: "historyLength" }]);
    expect(() => grpcCalling.encode({ kind: "list" }, TARGET)).toThrowError(
      expect.objectContaining({ code: "UNSUPPORTED_OPERATION" }),
    );
  });
});

describe("hearing", () => {
  it("takes the number out of a frame", () => {
    const metadata = { [EXTENSIONS.replay]: { number: 5 }, mine: 1 };
    const task = { id: "t", contextId: "c", status: { state: "TASK_STATE_WORKING" as const }, metadata };
    const { value } = grpcCalling.decodeFrame(toBytes("StreamResponse", { task }));
    expect([value?.number, value?.event]).toEqual([5, { task: { ...task, metadata: { mine: 1 } } }]);
  });

  it("cannot read what is no message", () => {
    const broken = Uint8Array.of(0x0a, 0xff);
    const unreadable = expect.objectContaining({ code: "INVALID_AGENT_RESPONSE" });
    expect(() => grpcCalling.decode("get", broken)).toThrowError(unreadable);
    expect(() => grpcCalling.decodeFrame(broken)).toThrowError(unreadable);
    expect(() => grpcCalling.decode("get", new Uint8Array(0))).toThrowError(unreadable);
    expect(() => grpcCalling.decode("list", new Uint8Array(0))).toThrowError(unreadable);
    expect(grpcCalling.decode("push-delete", broken).value).toBeUndefined();
  });

  it.each<[RpcCodeName, string, string]>([
    ["NOT_FOUND", "no such task", "TASK_NOT_FOUND"],
    ["FAILED_PRECONDITION", "it is over", "TASK_NOT_CANCELABLE"],
    ["UNIMPLEMENTED", "", "UNSUPPORTED_OPERATION"],
    ["UNIMPLEMENTED", "TaskNotCancelableError: over", "TASK_NOT_CANCELABLE"],
    ["UNIMPLEMENTED", "PushNotificationNotSupportedError: none", "PUSH_NOTIFICATION_NOT_SUPPORTED"],
    ["DEADLINE_EXCEEDED", "slow", "UNAVAILABLE"],
    ["UNKNOWN", "odd: thing", "INTERNAL_ERROR"],
    ["INVALID_ARGUMENT", "x", "INVALID_PARAMS"],
  ])("%s %j", (name, message, code) => {
    const error = grpcCalling.decodeFailure({ code: RPC_CODES[name], message });
    expect(error.code).toBe(code);
    expect(error.message).not.toBe("");
  });
});
