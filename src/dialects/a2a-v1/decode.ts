/**
 * Decodes requests of every binding (JSON-RPC has params; HTTP has a body, a query and path parameters), and leniently
 * the responses of peers: unknown members, missing defaults and empty lists are accepted.
 */

import { invalidParams } from "../../model/errors.ts";
import { isObject } from "../../model/json.ts";
import type { ListInput, Operation, OperationKind, Outcomes, SendInput, StreamFrame } from "../../model/operation.ts";
import { compileMethods, parseLastEventId } from "../shared/http/requests.ts";
import { asResponse, createFrame, invalidResponse } from "../shared/responses.ts";
import { readCardLeniently } from "./card.ts";
import { type ReadOptions, readWire, type WireName, type WireTypes } from "./proto/schema.ts";

export type UnaryKind = Exclude<OperationKind, "stream" | "subscribe">;

const TOLERANT: ReadOptions = { tolerant: true, code: "INVALID_AGENT_RESPONSE" };

function read<Name extends WireName>(name: Name, value: unknown): WireTypes[Name] {
  return asResponse(() => readWire(name, value, TOLERANT));
}

type Readers = { readonly [Kind in UnaryKind]: (value: unknown) => Outcomes[Kind] };

const READERS: Readers = {
  send: (value) => read("SendMessageResponse", value),
  get: (value) => read("Task", value),
  list: (value) => read("ListTasksResponse", value),
  cancel: (value) => read("Task", value),
  "push-create": (value) => read("TaskPushNotificationConfig", value),
  "push-get": (value) => read("TaskPushNotificationConfig", value),
  "push-list": (value) => read("ListTaskPushNotificationConfigsResponse", value),
  // The result carries no data; servers send null, {} or nothing.
  "push-delete": () => undefined,
  "extended-card": (value) => {
    const card = readCardLeniently(value);
    if (card === undefined) throw invalidResponse("it is not an agent card");
    return card;
  },
};

export function decodeOutcome<Kind extends UnaryKind>(kind: Kind, value: unknown): Outcomes[Kind] {
  return READERS[kind](value);
}

export function decodeFrame(value: unknown, id: string | undefined): StreamFrame {
  return createFrame(read("StreamResponse", value), id);
}

interface Decoded {
  readonly operation: Operation;
  /** `""` if the caller named none. */
  readonly tenant: string;
}

/** Also the names of the gRPC methods. */
export const METHODS = {
  SendMessage: "send",
  SendStreamingMessage: "stream",
  GetTask: "get",
  ListTasks: "list",
  CancelTask: "cancel",
  SubscribeToTask: "subscribe",
  CreateTaskPushNotificationConfig: "push-create",
  GetTaskPushNotificationConfig: "push-get",
  ListTaskPushNotificationConfigs: "push-list",
  DeleteTaskPushNotificationConfig: "push-delete",
  GetExtendedAgentCard: "extended-card",
} as const satisfies Record<string, OperationKind>;

export const { kindOfMethod, methodOf } = compileMethods<OperationKind>("1.0", METHODS);

/** `lastEventId` is the last event that the caller has received; only `subscribe` uses it. */
export function decodeRequest(
  kind: OperationKind,
  request: unknown,
  options: ReadOptions,
  lastEventId: string | undefined,
): Decoded {
  switch (kind) {
    case "send":
    case "stream": {
      const read = readWire("SendMessageRequest", request, options);
      return { operation: { kind, ...sendInput(read) }, tenant: tenantOf(read) };
    }
    case "get": {
      const { tenant = "", id, historyLength } = readWire("GetTaskRequest", request, options);
      return { operation: { kind, id, ...(historyLength !== undefined && { historyLength }) }, tenant };
    }
    case "list": {
      const read = readWire("ListTasksRequest", request, options);
      return { operation: { kind, ...listInput(read) }, tenant: tenantOf(read) };
    }
    case "cancel": {
      const { tenant = "", id, metadata } = readWire("CancelTaskRequest", request, options);
      return { operation: { kind, id, ...(metadata !== undefined && { metadata }) }, tenant };
    }
    case "subscribe": {
      const { tenant = "", id } = readWire("SubscribeToTaskRequest", request, options);
      const after = parseLastEventId(lastEventId);
      return { operation: { kind, id, ...(after !== undefined && { after }) }, tenant };
    }
    case "push-create": {
      const { tenant = "", ...config } = readWire("CreateTaskPushNotificationConfigRequest", request, options);
      return { operation: { kind, taskId: config.taskId, config }, tenant };
    }
    case "push-get":
    case "push-delete": {
      // The request to delete has the same members.
      const { tenant = "", taskId, id } = readWire("GetTaskPushNotificationConfigRequest", request, options);
      return { operation: { kind, taskId, id }, tenant };
    }
    case "push-list": {
      const { tenant = "", ...page } = readWire("ListTaskPushNotificationConfigsRequest", request, options);
      return { operation: { kind, ...page }, tenant };
    }
    case "extended-card":
      return { operation: { kind }, tenant: tenantOf(readWire("GetExtendedAgentCardRequest", request, options)) };
  }
}

function tenantOf(request: { readonly tenant?: string }): string {
  return request.tenant ?? "";
}

function sendInput({ message, configuration, metadata }: WireTypes["SendMessageRequest"]): SendInput {
  if (configuration === undefined && metadata === undefined) return { message };
  return {
    message,
    ...(configuration !== undefined && { configuration }),
    ...(metadata !== undefined && { metadata }),
  };
}

function listInput(request: WireTypes["ListTasksRequest"]): ListInput {
  const { tenant: _tenant, statusTimestampAfter, ...input } = request;
  if (statusTimestampAfter === undefined) return input;
  return { ...input, statusTimestampAfter: Date.parse(statusTimestampAfter) };
}

/**
 * Merges path parameters, query and body into one request. The body may repeat path parameters, in either spelling, but
 * not contradict them.
 */
export function joinRequest(named: Readonly<Record<string, string>>, rest: unknown): unknown {
  if (!isObject(rest)) return rest;
  const names = Object.keys(named);
  if (names.length === 0) return rest;
  const joined: Record<string, unknown> = { ...rest };
  for (const name of names) {
    for (const spelling of [name, SNAKE_CASE[name]]) {
      if (spelling === undefined) continue;
      const repeated = joined[spelling];
      if (repeated !== undefined && repeated !== null && repeated !== "" && repeated !== named[name]) {
        throw invalidParams(spelling, "differs from what the path says");
      }
      delete joined[spelling];
    }
    joined[name] = named[name];
  }
  return joined;
}

/** For the names that occur in paths. */
const SNAKE_CASE: Readonly<Record<string, string | undefined>> = { taskId: "task_id" };

/** The query as a request with string values. These requests have no repeated fields, so a second value is an error. */
export function decodeQuery(query: string): Readonly<Record<string, string>> {
  if (query === "") return {};
  const request: Record<string, string> = Object.create(null);
  for (const [name, value] of new URLSearchParams(query)) {
    if (request[name] !== undefined && request[name] !== value) throw invalidParams(name, "has more than one value");
    request[name] = value;
  }
  return request;
}
