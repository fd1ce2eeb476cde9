import type { GrpcAsker } from "../ask-grpc.ts";
import { askHttp, type HttpRequest, nextMessage, type Row, type Target } from "../ask-http.ts";

const HOOK = "https://hook.example/a";

const message = (more: object = {}) => ({
  kind: "message",
  messageId: nextMessage(),
  role: "user",
  parts: [{ kind: "text", text: "input More?" }],
  ...more,
});

const protoMessage = (more: object = {}) => ({
  messageId: nextMessage(),
  role: "ROLE_USER",
  content: [{ text: "input More?" }],
  ...more,
});

type Params = (target: Target) => object | undefined;

const METHODS: readonly (readonly [operation: string, about: Row["about"], params: Params])[] = [
  ["message/send", "caller", () => ({ message: message() })],
  ["message/send to a task", "task", ({ taskId }) => ({ message: message({ taskId }) })],
  ["message/stream", "caller", () => ({ message: message() })],
  ["message/stream to a task", "task", ({ taskId }) => ({ message: message({ taskId }) })],
  ["tasks/get", "task", ({ taskId }) => ({ id: taskId })],
  ["tasks/cancel", "task", ({ taskId }) => ({ id: taskId })],
  ["tasks/resubscribe", "task", ({ taskId }) => ({ id: taskId })],
  ["tasks/pushNotificationConfig/set", "task", ({ taskId }) => ({ taskId, pushNotificationConfig: { url: HOOK } })],
  [
    "tasks/pushNotificationConfig/get",
    "task",
    ({ taskId, configId }) => ({ id: taskId, pushNotificationConfigId: configId }),
  ],
  ["tasks/pushNotificationConfig/list", "task", ({ taskId }) => ({ id: taskId })],
  [
    "tasks/pushNotificationConfig/delete",
    "task",
    ({ taskId, configId }) => ({ id: taskId, pushNotificationConfigId: configId }),
  ],
  ["agent/getAuthenticatedExtendedCard", "caller", () => undefined],
];

const STREAMS = /^(?:message\/stream|tasks\/resubscribe|POST \/message:stream|POST \/tasks\/\{id\}:subscribe)/;

export function jsonRpcRows(base: string): readonly Row[] {
  return METHODS.map(([operation, about, params]) => ({
    binding: "0.3 JSON-RPC",
    operation,
    about,
    right: STREAMS.test(operation) ? "200 stream" : "200",
    ask: (target, token) => {
      const body = { jsonrpc: "2.0", id: 1, method: operation.split(" ")[0], params: params(target) };
      return askHttp(base, { method: "POST", path: "", body }, token);
    },
  }));
}

type Call = (target: Target) => HttpRequest;

const configs = (taskId: string) => `/tasks/${taskId}/pushNotificationConfigs`;

const PATHS: readonly (readonly [operation: string, about: Row["about"], right: string, call: Call])[] = [
  [
    "POST /message:send",
    "caller",
    "200",
    () => ({ method: "POST", path: "/message:send", body: { message: protoMessage() } }),
  ],
  [
    "POST /message:send to a task",
    "task",
    "200",
    ({ taskId }) => ({ method: "POST", path: "/message:send", body: { message: protoMessage({ taskId }) } }),
  ],
  [
    "POST /message:stream",
    "caller",
    "200 stream",
    () => ({ method: "POST", path: "/message:stream", body: { message: protoMessage() } }),
  ],
  [
    "POST /message:stream to a task",
    "task",
    "200 stream",
    ({ taskId }) => ({ method: "POST", path: "/message:stream", body: { message: protoMessage({ taskId }) } }),
  ],
  ["GET /tasks/{id}", "task", "200", ({ taskId }) => ({ method: "GET", path: `/tasks/${taskId}` })],
  ["POST /tasks/{id}:cancel", "task", "200", ({ taskId }) => ({ method: "POST", path: `/tasks/${taskId}:cancel` })],
  [
    "POST /tasks/{id}:subscribe",
    "task",
    "200 stream",
    ({ taskId }) => ({ method: "POST", path: `/tasks/${taskId}:subscribe` }),
  ],
  [
    "POST …/pushNotificationConfigs",
    "task",
    "201",
    ({ taskId }) => ({
      method: "POST",
      path: configs(taskId),
      body: { config: { pushNotificationConfig: { url: HOOK } } },
    }),
  ],
  [
    "GET …/pushNotificationConfigs/{id}",
    "task",
    "200",
    ({ taskId, configId }) => ({ method: "GET", path: `${configs(taskId)}/${configId}` }),
  ],
  ["GET …/pushNotificationConfigs", "task", "200", ({ taskId }) => ({ method: "GET", path: configs(taskId) })],
  [
    "DELETE …/pushNotificationConfigs/{id}",
    "task",
    "204",
    ({ taskId, configId }) => ({ method: "DELETE", path: `${configs(taskId)}/${configId}` }),
  ],
  ["GET /card", "caller", "200", () => ({ method: "GET", path: "/card" })],
];

export function httpRows(base: string): readonly Row[] {
  const rows = PATHS.map(
    ([operation, about, right, call]): Row => ({
      binding: "0.3 HTTP+JSON",
      operation,
      about,
      right,
      ask: (target, token) => {
        const request = call(target);
        return askHttp(base, { ...request, path: `/rest/v1${request.path}` }, token);
      },
    }),
  );
  const earlier: Row = {
    binding: "0.2 HTTP",
    operation: "GET /agent/authenticatedExtendedCard",
    about: "caller",
    right: "200",
    ask: (_target, token) => askHttp(base, { method: "GET", path: "/agent/authenticatedExtendedCard" }, token),
  };
  return [...rows, earlier];
}

const RPCS: readonly (readonly [operation: string, about: Row["about"], params: (target: Target) => object])[] = [
  ["SendMessage", "caller", () => ({ request: protoMessage() })],
  ["SendMessage to a task", "task", ({ taskId }) => ({ request: protoMessage({ taskId }) })],
  ["SendStreamingMessage", "caller", () => ({ request: protoMessage() })],
  ["SendStreamingMessage to a task", "task", ({ taskId }) => ({ request: protoMessage({ taskId }) })],
  ["GetTask", "task", ({ taskId }) => ({ name: `tasks/${taskId}` })],
  ["CancelTask", "task", ({ taskId }) => ({ name: `tasks/${taskId}` })],
  ["TaskSubscription", "task", ({ taskId }) => ({ name: `tasks/${taskId}` })],
  [
    "CreateTaskPushNotificationConfig",
    "task",
    ({ taskId }) => ({ parent: `tasks/${taskId}`, config: { pushNotificationConfig: { url: HOOK } } }),
  ],
  [
    "GetTaskPushNotificationConfig",
    "task",
    ({ taskId, configId }) => ({ name: `tasks/${taskId}/pushNotificationConfigs/${configId}` }),
  ],
  ["ListTaskPushNotificationConfig", "task", ({ taskId }) => ({ parent: `tasks/${taskId}` })],
  [
    "DeleteTaskPushNotificationConfig",
    "task",
    ({ taskId, configId }) => ({ name: `tasks/${taskId}/pushNotificationConfigs/${configId}` }),
  ],
  ["GetAgentCard", "caller", () => ({})],
];

const RPC_STREAMS = /^(?:SendStreamingMessage|TaskSubscription)\b/;

export function grpcRows(asker: GrpcAsker): readonly Row[] {
  return RPCS.map(([operation, about, params]) => ({
    binding: "0.3 gRPC",
    operation,
    about,
    right: RPC_STREAMS.test(operation) ? "OK stream" : "OK",
    ask: (target, token) =>
      asker.ask(operation.split(" ")[0] as string, { ...params(target) }, token, RPC_STREAMS.test(operation)),
  }));
}
