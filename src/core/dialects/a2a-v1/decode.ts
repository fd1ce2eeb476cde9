/**
 * Decodes requests of every binding (JSON-RPC has params; HTTP has a body, a query and path parameters), and leniently
 * the responses of peers: what they leave out or send in a form of their own is filled in or dropped, and reported.
 */

import { invalidParams } from "../../model/errors.ts";
import { isObject } from "../../model/json.ts";
import { type Loss, type Lossy, toLoss } from "../../model/loss.ts";
import type { ListInput, Operation, OperationKind, Outcomes, SendInput, StreamFrame } from "../../model/operation.ts";
import { compileMethods, parseLastEventId } from "../shared/http/requests.ts";
import { asResponse, createFrame, invalidResponse, RESPONSE_LOSSES } from "../shared/responses.ts";
import { readCardLeniently } from "./card.ts";
import { type ReadOptions, readWire, type WireName, type WireTypes } from "./proto/schema.ts";

export type UnaryKind = Exclude<OperationKind, "stream" | "subscribe">;

function read<Name extends WireName>(name: Name, value: unknown, losses: Loss[]): WireTypes[Name] {
  return asResponse(() => readWire(name, value, { lenient: true, losses, code: "INVALID_AGENT_RESPONSE" }));
}

type Readers = { readonly [Kind in UnaryKind]: (value: unknown, losses: Loss[]) => Outcomes[Kind] };

const READERS: Readers = {
  send: (value, losses) => read("SendMessageResponse", value, losses),
  get: (value, losses) => read("Task", value, losses),
  list: (value, losses) => read("ListTasksResponse", value, losses),
  cancel: (value, losses) => read("Task", value, losses),
  "push-create": (value, losses) => read("TaskPushNotificationConfig", value, losses),
  "push-get": (value, losses) => read("TaskPushNotificationConfig", value, losses),
  "push-list": (value, losses) => read("ListTaskPushNotificationConfigsResponse", value, losses),
  // The result carries no data; servers send null, {} or nothing.
  "push-delete": () => undefined,
  "extended-card": (value) => {
    const card = readCardLeniently(value);
    if (card === undefined) throw invalidResponse("it is not an agent card");
    return card;
  },
};

export function decodeOutcome<Kind extends UnaryKind>(kind: Kind, value: unknown): Lossy<Outcomes[Kind]> {
  const losses: Loss[] = [];
  return { value: READERS[kind](value, losses), losses };
}

const EVENTS = ["task", "message", "statusUpdate", "artifactUpdate", "status_update", "artifact_update"];

/** A frame without an event is one of a kind that a later version has added. */
export function decodeFrame(value: unknown, id: string | undefined): Lossy<StreamFrame | undefined> {
  if (isObject(value) && !EVENTS.some((name) => name in value)) {
    return { value: undefined, losses: [toLoss(RESPONSE_LOSSES.unknownEvent, Object.keys(value).join())] };
  }
  const losses: Loss[] = [];
  return { value: createFrame(read("StreamResponse", value, losses), id), losses };
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
      return { operation: { kind, id, historyLength }, tenant };
    }
    case "list": {
      const read = readWire("ListTasksRequest", request, options);
      return { operation: { kind, ...listInput(read) }, tenant: tenantOf(read) };
    }
    case "cancel": {
      const { tenant = "", id, metadata } = readWire("CancelTaskRequest", request, options);
      return { operation: { kind, id, metadata }, tenant };
    }
    case "subscribe": {
      const { tenant = "", id } = readWire("SubscribeToTaskRequest", request, options);
      const after = parseLastEventId(lastEventId);
      return { operation: { kind, id, after }, tenant };
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
  return { message, configuration, metadata };
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
