/** Every operation of every dialect and binding: how it is asked for, and how the owner is answered. */
import { randomUUID } from "node:crypto";
import type { DragomanServer } from "../../src/index.ts";
import { GeneratedClient } from "../support/generated-client.ts";
import { type Answer, askGrpc, askHttp } from "./ask.ts";

/** Whose task a request is about. */
export interface Target {
  readonly taskId: string;
  readonly configId: string;
  readonly contextId: string;
}

/** What the request is about: an owner's task, or the caller alone, whoever that is. */
type About = "task" | "caller";

export interface Row {
  readonly binding: string;
  readonly operation: string;
  readonly about: About;
  readonly right: string;
  /** Where a task of that id cannot be told from none, see the README of this folder. */
  readonly taken?: string;
  ask(target: Target, token: string | undefined): Promise<Answer>;
}

/** A method, perhaps with a remark after a blank, and the params or the request message. */
type Call = readonly [operation: string, about: About, params: (target: Target) => object | undefined];
/** A line such as `GET /tasks/{taskId}`, perhaps with a remark, the answer, and the body. */
type HttpCall = readonly [line: string, about: About, right: string, body?: (target: Target) => object];

const url = "https://hook.example/a";
const text = "input More?";
const newMessage = (more: object = {}) => ({ messageId: randomUUID(), role: "ROLE_USER", parts: [{ text }], ...more });
const newV03Message = (more: object = {}) => {
  const parts = [{ kind: "text", text }];
  return { kind: "message", messageId: randomUUID(), role: "user", parts, ...more };
};
const newProtoMessage = (more: object = {}) => {
  const { parts: content, ...members } = newMessage(more);
  return { ...members, content };
};
const legacyMessage = { role: "user", parts: [{ type: "text", text }] };

const idOf = ({ taskId }: Target) => ({ id: taskId });
const nameOf = ({ taskId }: Target) => ({ name: `tasks/${taskId}` });
const configNameOf = ({ taskId, configId }: Target) => ({
  name: `tasks/${taskId}/pushNotificationConfigs/${configId}`,
});

const V1: readonly Call[] = [
  ["SendMessage", "caller", () => ({ message: newMessage() })],
  ["SendMessage to a task", "task", ({ taskId }) => ({ message: newMessage({ taskId }) })],
  ["SendStreamingMessage", "caller", () => ({ message: newMessage() })],
  ["SendStreamingMessage to a task", "task", ({ taskId }) => ({ message: newMessage({ taskId }) })],
  ["GetTask", "task", idOf],
  ["ListTasks", "caller", () => ({})],
  ["CancelTask", "task", idOf],
  ["SubscribeToTask", "task", idOf],
  ["CreateTaskPushNotificationConfig", "task", ({ taskId }) => ({ taskId, url })],
  ["GetTaskPushNotificationConfig", "task", ({ taskId, configId }) => ({ taskId, id: configId })],
  ["ListTaskPushNotificationConfigs", "task", ({ taskId }) => ({ taskId })],
  ["DeleteTaskPushNotificationConfig", "task", ({ taskId, configId }) => ({ taskId, id: configId })],
  ["GetExtendedAgentCard", "caller", () => ({})],
];

const V1_HTTP: readonly HttpCall[] = [
  ["POST /message:send", "caller", "200", () => ({ message: newMessage() })],
  ["POST /message:send to a task", "task", "200", ({ taskId }) => ({ message: newMessage({ taskId }) })],
  ["POST /message:stream", "caller", "200 stream", () => ({ message: newMessage() })],
  ["POST /message:stream to a task", "task", "200 stream", ({ taskId }) => ({ message: newMessage({ taskId }) })],
  ["GET /tasks/{taskId}", "task", "200"],
  ["GET /tasks", "caller", "200"],
  ["POST /tasks/{taskId}:cancel", "task", "200", idOf],
  ["POST /tasks/{taskId}:subscribe", "task", "200 stream", idOf],
  ["POST /tasks/{taskId}/pushNotificationConfigs", "task", "201", ({ taskId }) => ({ taskId, url })],
  ["GET /tasks/{taskId}/pushNotificationConfigs/{configId}", "task", "200"],
  ["GET /tasks/{taskId}/pushNotificationConfigs", "task", "200"],
  ["DELETE /tasks/{taskId}/pushNotificationConfigs/{configId}", "task", "204"],
  ["GET /extendedAgentCard", "caller", "200"],
];

const configOfV03 = ({ taskId, configId }: Target) => ({ id: taskId, pushNotificationConfigId: configId });

const V03: readonly Call[] = [
  ["message/send", "caller", () => ({ message: newV03Message() })],
  ["message/send to a task", "task", ({ taskId }) => ({ message: newV03Message({ taskId }) })],
  ["message/stream", "caller", () => ({ message: newV03Message() })],
  ["message/stream to a task", "task", ({ taskId }) => ({ message: newV03Message({ taskId }) })],
  ["tasks/get", "task", idOf],
  ["tasks/cancel", "task", idOf],
  ["tasks/resubscribe", "task", idOf],
  ["tasks/pushNotificationConfig/set", "task", ({ taskId }) => ({ taskId, pushNotificationConfig: { url } })],
  ["tasks/pushNotificationConfig/get", "task", configOfV03],
  ["tasks/pushNotificationConfig/list", "task", idOf],
  ["tasks/pushNotificationConfig/delete", "task", configOfV03],
  ["agent/getAuthenticatedExtendedCard", "caller", () => undefined],
];

const PROTO_CONFIG = { config: { pushNotificationConfig: { url } } };

const V03_HTTP: readonly HttpCall[] = [
  ["POST /message:send", "caller", "200", () => ({ message: newProtoMessage() })],
  ["POST /message:send to a task", "task", "200", ({ taskId }) => ({ message: newProtoMessage({ taskId }) })],
  ["POST /message:stream", "caller", "200 stream", () => ({ message: newProtoMessage() })],
  ["POST /message:stream to a task", "task", "200 stream", ({ taskId }) => ({ message: newProtoMessage({ taskId }) })],
  ["GET /tasks/{taskId}", "task", "200"],
  ["POST /tasks/{taskId}:cancel", "task", "200"],
  ["POST /tasks/{taskId}:subscribe", "task", "200 stream"],
  ["POST /tasks/{taskId}/pushNotificationConfigs", "task", "201", () => PROTO_CONFIG],
  ["GET /tasks/{taskId}/pushNotificationConfigs/{configId}", "task", "200"],
  ["GET /tasks/{taskId}/pushNotificationConfigs", "task", "200"],
  ["DELETE /tasks/{taskId}/pushNotificationConfigs/{configId}", "task", "204"],
  ["GET /card", "caller", "200"],
];

const V03_GRPC: readonly Call[] = [
  ["SendMessage", "caller", () => ({ request: newProtoMessage() })],
  ["SendMessage to a task", "task", ({ taskId }) => ({ request: newProtoMessage({ taskId }) })],
  ["SendStreamingMessage", "caller", () => ({ request: newProtoMessage() })],
  ["SendStreamingMessage to a task", "task", ({ taskId }) => ({ request: newProtoMessage({ taskId }) })],
  ["GetTask", "task", nameOf],
  ["CancelTask", "task", nameOf],
  ["TaskSubscription", "task", nameOf],
  ["CreateTaskPushNotificationConfig", "task", ({ taskId }) => ({ parent: `tasks/${taskId}`, ...PROTO_CONFIG })],
  ["GetTaskPushNotificationConfig", "task", configNameOf],
  ["ListTaskPushNotificationConfig", "task", ({ taskId }) => ({ parent: `tasks/${taskId}` })],
  ["DeleteTaskPushNotificationConfig", "task", configNameOf],
  ["GetAgentCard", "caller", () => ({})],
];

/** Callers choose the ids of tasks, so that a message to a task and one that makes it are the same. */
const V01: readonly Call[] = [
  ["tasks/send", "caller", () => ({ id: randomUUID(), message: legacyMessage })],
  ["tasks/send to a task", "task", ({ taskId }) => ({ id: taskId, message: legacyMessage })],
  ["tasks/sendSubscribe", "caller", () => ({ id: randomUUID(), message: legacyMessage })],
  ["tasks/sendSubscribe to a task", "task", ({ taskId }) => ({ id: taskId, message: legacyMessage })],
  ["tasks/get", "task", idOf],
  ["tasks/cancel", "task", idOf],
  ["tasks/resubscribe", "task", idOf],
  ["tasks/pushNotification/set", "task", ({ taskId }) => ({ id: taskId, pushNotificationConfig: { url } })],
  ["tasks/pushNotification/get", "task", idOf],
];

const TASKS_REST: readonly HttpCall[] = [
  ["POST /tasks/send", "caller", "200", () => ({ message: legacyMessage })],
  ["POST /tasks/send to a task", "task", "200", ({ taskId }) => ({ message: { ...legacyMessage, taskId } })],
  ["POST /tasks/sendSubscribe", "caller", "200 stream", () => ({ message: legacyMessage })],
  [
    "POST /tasks/sendSubscribe to a task",
    "task",
    "200 stream",
    ({ taskId }) => ({ message: { ...legacyMessage, taskId } }),
  ],
  ["GET /tasks/{taskId}", "task", "200"],
  ["POST /tasks/{taskId}/cancel", "task", "200"],
  ["GET /tasks/{taskId}/subscribe", "task", "200 stream"],
];

const STREAMS =
  /^(?:SendStreamingMessage|SubscribeToTask|TaskSubscription|message\/stream|tasks\/(?:resubscribe|sendSubscribe))\b/;
const methodOf = (operation: string) => operation.split(" ")[0] as string;

function rpcRows(base: string, binding: string, calls: readonly Call[], headers: HttpRequestHeaders = {}): Row[] {
  return calls.map(([operation, about, params]) => ({
    binding,
    operation,
    about,
    right: STREAMS.test(operation) ? "200 stream" : "200",
    ask: (target, token) => {
      const body = { jsonrpc: "2.0", id: 1, method: methodOf(operation), params: params(target) };
      return askHttp(base, { method: "POST", path: "", headers, body }, token);
    },
  }));
}

type HttpRequestHeaders = Readonly<Record<string, string>>;

function httpRows(base: string, binding: string, calls: readonly HttpCall[], headers: HttpRequestHeaders = {}): Row[] {
  return calls.map(([operation, about, right, body]) => ({
    binding,
    operation,
    about,
    right,
    ask: (target, token) => {
      const [method = "", template = ""] = operation.split(" ");
      const path = template.replace(/\{(\w+)\}/g, (_, name: string) => target[name as keyof Target]);
      return askHttp(base, { method, path, headers, ...(body && { body: body(target) }) }, token);
    },
  }));
}

function grpcRows(client: GeneratedClient, binding: string, calls: readonly Call[], entries = {}): Row[] {
  return calls.map(([operation, about, params]) => {
    const streams = STREAMS.test(operation);
    return {
      binding,
      operation,
      about,
      right: streams ? "OK stream" : "OK",
      ask: (target, token) => {
        const shown = token === undefined ? undefined : { authorization: `Bearer ${token}` };
        return askGrpc(client, methodOf(operation), { ...params(target) }, { ...entries, ...shown }, streams);
      },
    };
  });
}

const V1_ENTRIES = { "a2a-version": "1.0" };
const TAKEN = "200 -32602, the id belongs to somebody";
const V02_CARD: HttpCall = ["GET /agent/authenticatedExtendedCard", "caller", "200"];

const ROWS = {
  "1.0 over JSON-RPC": (base) => rpcRows(base, "1.0 JSON-RPC", V1, V1_ENTRIES),
  "1.0 over HTTP+JSON": (base) => httpRows(`${base}/rest`, "1.0 HTTP+JSON", V1_HTTP, V1_ENTRIES),
  "1.0 over gRPC": (_, rpc) => grpcRows(new GeneratedClient(rpc, "lf/a2a/v1/a2a.proto"), "1.0 gRPC", V1, V1_ENTRIES),
  "0.3 over JSON-RPC": (base) => rpcRows(base, "0.3 JSON-RPC", V03),
  "0.3 over HTTP+JSON, and 0.2": (base) => [
    ...httpRows(`${base}/rest/v1`, "0.3 HTTP+JSON", V03_HTTP),
    ...httpRows(base, "0.2 HTTP", [V02_CARD]),
  ],
  "0.3 over gRPC": (_, rpc) => grpcRows(new GeneratedClient(rpc, "a2a/v1/a2a.proto"), "0.3 gRPC", V03_GRPC),
  "0.1": (base) =>
    rpcRows(base, "0.1 JSON-RPC", V01, { "a2a-version": "0.1" }).map((row) =>
      / to a task$/.test(row.operation) ? { ...row, taken: TAKEN } : row,
    ),
  "tasks-rest": (base) => httpRows(base, "tasks-rest", TASKS_REST),
} as const satisfies Readonly<Record<string, (base: string, rpc: string) => readonly Row[]>>;

export type Dialect = keyof typeof ROWS;
export const DIALECTS = Object.keys(ROWS) as readonly Dialect[];

export function rowsOf(dialect: Dialect, { url: base, grpc = "" }: DragomanServer): readonly Row[] {
  return ROWS[dialect](base, grpc);
}
