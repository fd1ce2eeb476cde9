/** The same request in both bindings of A2A 1.0, written by hand from the specification. */
import type { IncomingHttpHeaders } from "node:http";
import type { RawRequest } from "./raw-http.ts";
import type { WireDetail, WireError } from "./wire-types.ts";

export type Params = Readonly<Record<string, unknown>>;

export type Method =
  | "SendMessage"
  | "SendStreamingMessage"
  | "GetTask"
  | "ListTasks"
  | "CancelTask"
  | "SubscribeToTask"
  | "CreateTaskPushNotificationConfig"
  | "GetTaskPushNotificationConfig"
  | "ListTaskPushNotificationConfigs"
  | "DeleteTaskPushNotificationConfig"
  | "GetExtendedAgentCard";

export interface Answered {
  readonly result?: unknown;
  readonly error?: WireError;
}

export interface Binding {
  readonly name: "JSON-RPC" | "HTTP+JSON";
  readonly mediaType: string;
  request(method: Method, params: Params): RawRequest;
  /** Throws for what is not a well-formed answer of this binding. */
  read(status: number, headers: IncomingHttpHeaders, body: string): Answered;
  /** The StreamResponse in one event of a stream. */
  readEvent(data: string): unknown;
}

/** One fixed id: that it comes back is checked for every answer and every event. */
export const REQUEST_ID = "request-\u2713-1";

const jsonRpc: Binding = {
  name: "JSON-RPC",
  mediaType: "application/json",

  request: (method, params) => ({
    method: "POST",
    headers: { "content-type": "application/json", "a2a-version": "1.0" },
    body: JSON.stringify({ jsonrpc: "2.0", id: REQUEST_ID, method, params }),
  }),

  read(_status, headers, body) {
    if (headers["content-type"] !== "application/json") throw new Error(`Not JSON: ${headers["content-type"]} ${body}`);
    const envelope = JSON.parse(body) as Record<string, unknown>;
    const members = Object.keys(envelope).sort().join();
    if (envelope.jsonrpc !== "2.0") throw new Error(`No JSON-RPC: ${body}`);
    if (members === "id,jsonrpc,result") return { result: sameId(envelope).result };
    if (members !== "error,id,jsonrpc") throw new Error(`Neither result nor error: ${body}`);
    const { code, message, data } = envelope.error as { code: number; message: string; data: WireDetail[] };
    if (envelope.id !== null) sameId(envelope);
    return { error: toError(code, message, data) };
  },

  readEvent(data) {
    const envelope = sameId(JSON.parse(data) as Record<string, unknown>);
    if (envelope.error !== undefined) throw new Error(`An error event: ${data}`);
    return envelope.result;
  },
};

function sameId(envelope: Record<string, unknown>): Record<string, unknown> {
  if (envelope.id !== REQUEST_ID) throw new Error(`Another id: ${JSON.stringify(envelope)}`);
  return envelope;
}

const REST_PATHS = {
  SendMessage: "POST /message:send",
  SendStreamingMessage: "POST /message:stream",
  GetTask: "GET /tasks/{id}",
  ListTasks: "GET /tasks",
  CancelTask: "POST /tasks/{id}:cancel",
  SubscribeToTask: "POST /tasks/{id}:subscribe",
  CreateTaskPushNotificationConfig: "POST /tasks/{taskId}/pushNotificationConfigs",
  GetTaskPushNotificationConfig: "GET /tasks/{taskId}/pushNotificationConfigs/{id}",
  ListTaskPushNotificationConfigs: "GET /tasks/{taskId}/pushNotificationConfigs",
  DeleteTaskPushNotificationConfig: "DELETE /tasks/{taskId}/pushNotificationConfigs/{id}",
  GetExtendedAgentCard: "GET /extendedAgentCard",
} as const satisfies Record<Method, string>;

const httpJson: Binding = {
  name: "HTTP+JSON",
  mediaType: "application/a2a+json",

  request(method, params) {
    const { tenant, ...rest } = params as Record<string, unknown>;
    const [verb = "", template = ""] = REST_PATHS[method].split(" ");
    const path = template.replace(/\{(\w+)\}/g, (_, name: string) => {
      const value = rest[name];
      delete rest[name];
      return encodeURIComponent(String(value));
    });
    const prefix = tenant === undefined ? "" : `/${encodeURIComponent(String(tenant))}`;
    const headers = { "a2a-version": "1.0" };
    if (verb === "POST") {
      const withType = { ...headers, "content-type": "application/a2a+json" };
      return { method: verb, path: `/rest${prefix}${path}`, headers: withType, body: JSON.stringify(rest) };
    }
    const query = Object.entries(rest).map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`);
    const search = query.length === 0 ? "" : `?${query.join("&")}`;
    return { method: verb, path: `/rest${prefix}${path}${search}`, headers };
  },

  read(status, headers, body) {
    if (status === 204) return { result: null };
    if (headers["content-type"] !== "application/a2a+json") {
      throw new Error(`Not A2A JSON: ${headers["content-type"]} ${body}`);
    }
    const value = JSON.parse(body) as Record<string, unknown>;
    if (status >= 200 && status < 300) return { result: value };
    if (Object.keys(value).join() !== "error") throw new Error(`No error body: ${body}`);
    const error = value.error as { code: number; status: string; message: string; details: WireDetail[] };
    if (error.code !== status) throw new Error(`The body does not tell the status ${status}: ${body}`);
    if (!/^[A-Z_]+$/.test(error.status)) throw new Error(`No status name: ${body}`);
    return { error: toError(error.code, error.message, error.details) };
  },

  readEvent: (data) => JSON.parse(data),
};

function toError(code: number, message: string, details: readonly WireDetail[]): WireError {
  if (!Number.isInteger(code) || typeof message !== "string" || message === "") throw new Error("No error object.");
  const info = details.find((detail) => detail["@type"] === "type.googleapis.com/google.rpc.ErrorInfo");
  if (info?.domain !== "a2a-protocol.org" || info.reason === undefined) throw new Error("No ErrorInfo of A2A.");
  if (details.some((detail) => typeof detail["@type"] !== "string")) throw new Error("A detail without a type.");
  return { reason: info.reason, code, message, details };
}

export const BINDINGS: readonly Binding[] = [jsonRpc, httpJson];
