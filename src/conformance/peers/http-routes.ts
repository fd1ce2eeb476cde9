/** Where operations are in HTTP+JSON. Members in braces come from the request and stand in the path. */
import { type Fields, fieldsOf } from "../json.ts";
import type { Version } from "../requirement.ts";
import type { OperationName } from "./peer.ts";
import { SPELLING_V1, type Spelling } from "./spelling.ts";
import { SPELLING_V03_PROTO } from "./spelling-v03-proto.ts";

const ROUTES_V1 = {
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
} as const satisfies Record<OperationName, string>;

/** The same below `/v1`, without lists and with another name for the card. */
const ROUTES_V03: Readonly<Partial<Record<OperationName, string>>> = Object.fromEntries(
  Object.entries({ ...ROUTES_V1, GetExtendedAgentCard: "GET /card" })
    .filter(([operation]) => operation !== "ListTasks")
    .map(([operation, route]) => [operation, route.replace(" /", " /v1/")]),
);

export interface Route {
  readonly method: string;
  readonly path: string;
  readonly query: readonly (readonly [string, string])[];
  readonly body: string | undefined;
}

export function hasRoute(operation: OperationName, version: Version): boolean {
  return version === "1.0" || ROUTES_V03[operation] !== undefined;
}

export function routeOf(operation: OperationName, params: Fields, version: Version): Route {
  return version === "1.0" ? routeV1(operation, params) : routeV03(operation, params);
}

function routeV1(operation: OperationName, params: Fields): Route {
  const { tenant, ...rest } = params;
  const [method = "", template = ""] = ROUTES_V1[operation].split(" ");
  const { path, unused } = fill(template, rest);
  const prefix = tenant === undefined ? "" : `/${encodeURIComponent(String(tenant))}`;
  return { method, path: `${prefix}${path}`, ...carry(method, unused) };
}

function routeV03(operation: OperationName, params: Fields): Route {
  const [method = "", template = ""] = (ROUTES_V03[operation] ?? "GET /v1/unknown").split(" ");
  const { path, unused } = fill(template, params);
  if (operation === "SendMessage" || operation === "SendStreamingMessage") {
    return { method, path, ...carry(method, SPELLING_V03_PROTO.request(operation, params)) };
  }
  if (operation === "CreateTaskPushNotificationConfig") {
    // The proto maps one member of the request to the body, not the request.
    const { config } = SPELLING_V03_PROTO.request(operation, params);
    return { method, path, ...carry(method, fieldsOf(config)) };
  }
  const { tenant: _tenant, ...rest } = unused;
  return { method, path, ...carry(method, rest) };
}

function fill(template: string, params: Fields): { readonly path: string; readonly unused: Fields } {
  const unused = { ...params };
  const path = template.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = unused[name];
    delete unused[name];
    return encodeURIComponent(String(value ?? ""));
  });
  return { path, unused };
}

function carry(method: string, params: Fields): Pick<Route, "body" | "query"> {
  if (method === "POST") return { query: [], body: JSON.stringify(params) };
  const members = Object.entries(params).filter(([, value]) => value !== undefined);
  return { query: members.map(([name, value]) => [name, String(value)] as const), body: undefined };
}

export function httpSpelling(version: Version): Spelling {
  return version === "1.0" ? SPELLING_V1 : SPELLING_V03_PROTO;
}
