import type { GrpcAsker } from "../ask-grpc.ts";
import { type Answer, askHttp, type HttpRequest, nextMessage, type Row, type Target } from "../ask-http.ts";

const VERSION = { "a2a-version": "1.0" };
const HOOK = "https://hook.example/a";

const message = (more: object = {}) => ({
  messageId: nextMessage(),
  role: "ROLE_USER",
  parts: [{ text: "input More?" }],
  ...more,
});

type Params = (target: Target) => object;

/** Every operation as its method and the request message, which all three bindings have in common. */
const OPERATIONS: readonly (readonly [method: string, about: Row["about"], params: Params])[] = [
  ["SendMessage", "caller", () => ({ message: message() })],
  ["SendMessage to a task", "task", ({ taskId }) => ({ message: message({ taskId }) })],
  ["SendStreamingMessage", "caller", () => ({ message: message() })],
  ["SendStreamingMessage to a task", "task", ({ taskId }) => ({ message: message({ taskId }) })],
  ["GetTask", "task", ({ taskId }) => ({ id: taskId })],
  ["ListTasks", "caller", () => ({})],
  ["CancelTask", "task", ({ taskId }) => ({ id: taskId })],
  ["SubscribeToTask", "task", ({ taskId }) => ({ id: taskId })],
  ["CreateTaskPushNotificationConfig", "task", ({ taskId }) => ({ taskId, url: HOOK })],
  ["GetTaskPushNotificationConfig", "task", ({ taskId, configId }) => ({ taskId, id: configId })],
  ["ListTaskPushNotificationConfigs", "task", ({ taskId }) => ({ taskId })],
  ["DeleteTaskPushNotificationConfig", "task", ({ taskId, configId }) => ({ taskId, id: configId })],
  ["GetExtendedAgentCard", "caller", () => ({})],
];

const STREAMS = /^(?:SendStreamingMessage|SubscribeToTask)/;
const methodOf = (operation: string) => operation.split(" ")[0] as string;

export function jsonRpcRows(base: string): readonly Row[] {
  return OPERATIONS.map(([operation, about, params]) => ({
    binding: "1.0 JSON-RPC",
    operation,
    about,
    right: STREAMS.test(operation) ? "200 stream" : "200",
    ask: (target, token) => {
      const body = { jsonrpc: "2.0", id: 1, method: methodOf(operation), params: params(target) };
      return askHttp(base, { method: "POST", path: "", headers: VERSION, body }, token);
    },
  }));
}

const PATHS: Readonly<Record<string, (target: Target) => readonly [method: string, path: string]>> = {
  SendMessage: () => ["POST", "/message:send"],
  SendStreamingMessage: () => ["POST", "/message:stream"],
  GetTask: ({ taskId }) => ["GET", `/tasks/${taskId}`],
  ListTasks: () => ["GET", "/tasks"],
  CancelTask: ({ taskId }) => ["POST", `/tasks/${taskId}:cancel`],
  SubscribeToTask: ({ taskId }) => ["POST", `/tasks/${taskId}:subscribe`],
  CreateTaskPushNotificationConfig: ({ taskId }) => ["POST", `/tasks/${taskId}/pushNotificationConfigs`],
  GetTaskPushNotificationConfig: ({ taskId, configId }) => [
    "GET",
    `/tasks/${taskId}/pushNotificationConfigs/${configId}`,
  ],
  ListTaskPushNotificationConfigs: ({ taskId }) => ["GET", `/tasks/${taskId}/pushNotificationConfigs`],
  DeleteTaskPushNotificationConfig: ({ taskId, configId }) => [
    "DELETE",
    `/tasks/${taskId}/pushNotificationConfigs/${configId}`,
  ],
  GetExtendedAgentCard: () => ["GET", "/extendedAgentCard"],
};

const STATUSES: Readonly<Record<string, string>> = {
  CreateTaskPushNotificationConfig: "201",
  DeleteTaskPushNotificationConfig: "204",
};

export function httpRows(base: string): readonly Row[] {
  return OPERATIONS.map(([operation, about, params]) => ({
    binding: "1.0 HTTP+JSON",
    operation,
    about,
    right: STREAMS.test(operation) ? "200 stream" : (STATUSES[operation] ?? "200"),
    ask(target, token): Promise<Answer> {
      const [method, path] = PATHS[methodOf(operation)]?.(target) ?? ["GET", "/"];
      const request: HttpRequest = { method, path: `/rest${path}`, headers: VERSION };
      return askHttp(base, method === "POST" ? { ...request, body: params(target) } : request, token);
    },
  }));
}

export function grpcRows(asker: GrpcAsker): readonly Row[] {
  return OPERATIONS.map(([operation, about, params]) => ({
    binding: "1.0 gRPC",
    operation,
    about,
    right: STREAMS.test(operation) ? "OK stream" : "OK",
    ask: (target, token) => asker.ask(methodOf(operation), { ...params(target) }, token, STREAMS.test(operation)),
  }));
}
