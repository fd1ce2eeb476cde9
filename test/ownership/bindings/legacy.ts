import { randomUUID } from "node:crypto";
import { askHttp, type HttpRequest, type Row, type Target } from "../ask-http.ts";

const HOOK = "https://hook.example/a";
const message = { role: "user", parts: [{ type: "text", text: "input More?" }] };
const taken = "the id belongs to somebody";

type Params = (target: Target) => object;
type Method = readonly [operation: string, about: Row["about"], params: Params, isTaken?: boolean];

/** Callers choose the ids of tasks, so that a message to a task and one that makes it are the same. */
const METHODS: readonly Method[] = [
  ["tasks/send", "caller", () => ({ id: randomUUID(), message })],
  ["tasks/send to a task", "task", ({ taskId }) => ({ id: taskId, message }), true],
  ["tasks/sendSubscribe", "caller", () => ({ id: randomUUID(), message })],
  ["tasks/sendSubscribe to a task", "task", ({ taskId }) => ({ id: taskId, message }), true],
  ["tasks/get", "task", ({ taskId }) => ({ id: taskId })],
  ["tasks/cancel", "task", ({ taskId }) => ({ id: taskId })],
  ["tasks/resubscribe", "task", ({ taskId }) => ({ id: taskId })],
  ["tasks/pushNotification/set", "task", ({ taskId }) => ({ id: taskId, pushNotificationConfig: { url: HOOK } })],
  ["tasks/pushNotification/get", "task", ({ taskId }) => ({ id: taskId })],
];

const STREAMS = /^tasks\/(?:sendSubscribe|resubscribe)/;

export function v01Rows(base: string): readonly Row[] {
  return METHODS.map(([operation, about, params, isTaken]) => ({
    binding: "0.1 JSON-RPC",
    operation,
    about,
    right: STREAMS.test(operation) ? "200 stream" : "200",
    ...(isTaken === true && { taken: `200 -32602, ${taken}` }),
    ask: (target, token) => {
      const body = { jsonrpc: "2.0", id: 1, method: operation.split(" ")[0], params: params(target) };
      return askHttp(base, { method: "POST", path: "", headers: { "a2a-version": "0.1" }, body }, token);
    },
  }));
}

type Call = (target: Target) => HttpRequest;

const PATHS: readonly (readonly [operation: string, about: Row["about"], right: string, call: Call])[] = [
  ["POST /tasks/send", "caller", "200", () => ({ method: "POST", path: "/tasks/send", body: { message } })],
  [
    "POST /tasks/send to a task",
    "task",
    "200",
    ({ taskId }) => ({ method: "POST", path: "/tasks/send", body: { message: { ...message, taskId } } }),
  ],
  [
    "POST /tasks/sendSubscribe",
    "caller",
    "200 stream",
    () => ({ method: "POST", path: "/tasks/sendSubscribe", body: { message } }),
  ],
  [
    "POST /tasks/sendSubscribe to a task",
    "task",
    "200 stream",
    ({ taskId }) => ({ method: "POST", path: "/tasks/sendSubscribe", body: { message: { ...message, taskId } } }),
  ],
  ["GET /tasks/{id}", "task", "200", ({ taskId }) => ({ method: "GET", path: `/tasks/${taskId}` })],
  ["POST /tasks/{id}/cancel", "task", "200", ({ taskId }) => ({ method: "POST", path: `/tasks/${taskId}/cancel` })],
  [
    "GET /tasks/{id}/subscribe",
    "task",
    "200 stream",
    ({ taskId }) => ({ method: "GET", path: `/tasks/${taskId}/subscribe` }),
  ],
];

export function tasksRestRows(base: string): readonly Row[] {
  return PATHS.map(([operation, about, right, call]) => ({
    binding: "tasks-rest",
    operation,
    about,
    right,
    ask: (target, token) => askHttp(base, call(target), token),
  }));
}
