/** The service as a `.proto` file: the messages of the tables, in reading order. */
import type { OperationKind } from "../../../model/operation.ts";
import type { ProtoFile } from "../../shared/proto/proto-file.ts";
import { METHODS } from "../decode.ts";
import { TABLES, type WireName } from "./schema.ts";

const PACKAGE = "lf.a2a.v1";
export const SERVICE = `${PACKAGE}.A2AService`;

export const REQUEST_NAMES = {
  send: "SendMessageRequest",
  stream: "SendMessageRequest",
  get: "GetTaskRequest",
  list: "ListTasksRequest",
  cancel: "CancelTaskRequest",
  subscribe: "SubscribeToTaskRequest",
  "push-create": "CreateTaskPushNotificationConfigRequest",
  "push-get": "GetTaskPushNotificationConfigRequest",
  "push-list": "ListTaskPushNotificationConfigsRequest",
  "push-delete": "DeleteTaskPushNotificationConfigRequest",
  "extended-card": "GetExtendedAgentCardRequest",
} as const satisfies Record<OperationKind, WireName>;

export const RESPONSE_NAMES = {
  send: "SendMessageResponse",
  stream: "StreamResponse",
  get: "Task",
  list: "ListTasksResponse",
  cancel: "Task",
  subscribe: "StreamResponse",
  "push-create": "TaskPushNotificationConfig",
  "push-get": "TaskPushNotificationConfig",
  "push-list": "ListTaskPushNotificationConfigsResponse",
  "push-delete": "google.protobuf.Empty",
  "extended-card": "AgentCard",
} as const satisfies Record<OperationKind, WireName | "google.protobuf.Empty">;

/** On the wire, the request to create a config is the config itself with a tenant added. */
const CREATE = "CreateTaskPushNotificationConfigRequest";
const CONFIG = "TaskPushNotificationConfig";

const { [CREATE]: configWithTenant = [], ...messages } = TABLES.messages;

export const PROTO_FILE: ProtoFile = {
  path: "lf/a2a/v1/a2a.proto",
  package: PACKAGE,
  tables: { messages: { ...messages, [CONFIG]: configWithTenant }, enums: TABLES.enums },
  oneofs: {
    Part: "content",
    StreamResponse: "payload",
    SendMessageResponse: "payload",
    SecurityScheme: "scheme",
    OAuthFlows: "flow",
  },
  service: {
    name: "A2AService",
    methods: Object.entries(METHODS).map(([name, kind]) => ({
      name,
      request: kind === "push-create" ? CONFIG : REQUEST_NAMES[kind],
      response: RESPONSE_NAMES[kind],
      streams: kind === "stream" || kind === "subscribe",
    })),
  },
};
