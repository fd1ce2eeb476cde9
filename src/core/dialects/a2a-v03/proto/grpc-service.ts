/** The service as a `.proto` file: the messages of the tables, in reading order. */
import type { OperationKind } from "../../../model/operation.ts";
import { compileMethods } from "../../shared/http/requests.ts";
import type { FieldRow, Presence } from "../../shared/proto/json-codec.ts";
import type { ProtoFile } from "../../shared/proto/proto-file.ts";
import { REQUEST_NAMES } from "./requests.ts";
import { PROTO_TABLES, type ProtoName } from "./schema.ts";

const PACKAGE = "a2a.v1";
export const SERVICE = `${PACKAGE}.A2AService`;

export type ProtoKind = Exclude<OperationKind, "list">;

export const METHODS = {
  SendMessage: "send",
  SendStreamingMessage: "stream",
  GetTask: "get",
  CancelTask: "cancel",
  TaskSubscription: "subscribe",
  CreateTaskPushNotificationConfig: "push-create",
  GetTaskPushNotificationConfig: "push-get",
  ListTaskPushNotificationConfig: "push-list",
  GetAgentCard: "extended-card",
  DeleteTaskPushNotificationConfig: "push-delete",
} as const satisfies Record<string, ProtoKind>;

export const { kindOfMethod, methodOf } = compileMethods("0.3", METHODS);

export const RESPONSE_NAMES = {
  send: "SendMessageResponse",
  stream: "StreamResponse",
  get: "Task",
  cancel: "Task",
  subscribe: "StreamResponse",
  "push-create": "TaskPushNotificationConfig",
  "push-get": "TaskPushNotificationConfig",
  "push-list": "ListTaskPushNotificationConfigResponse",
  "push-delete": "google.protobuf.Empty",
  "extended-card": "AgentCard",
} as const satisfies Record<ProtoKind, ProtoName | "google.protobuf.Empty">;

const SCALARS: ReadonlySet<string> = new Set(["string", "bool", "length"]);

/** The release has no `optional` fields. Some are decoded as if they were; the published file does not show that. */
function asReleased([name, type, presence, number, protoName]: FieldRow): FieldRow {
  const released: Presence = presence === "optional" && SCALARS.has(type) ? "implicit" : presence;
  return protoName === undefined ? [name, type, released, number] : [name, type, released, number, protoName];
}

export const PROTO_FILE: ProtoFile = {
  path: "a2a/v1/a2a.proto",
  package: PACKAGE,
  tables: {
    messages: Object.fromEntries(
      Object.entries(PROTO_TABLES.messages).map(([name, rows]) => [name, rows.map(asReleased)]),
    ),
    enums: PROTO_TABLES.enums,
  },
  oneofs: {
    Part: "part",
    FilePart: "file",
    StreamResponse: "payload",
    SendMessageResponse: "payload",
    SecurityScheme: "scheme",
    OAuthFlows: "flow",
  },
  service: {
    name: "A2AService",
    methods: Object.entries(METHODS).map(([name, kind]) => ({
      name,
      request: REQUEST_NAMES[kind],
      response: RESPONSE_NAMES[kind],
      streams: kind === "stream" || kind === "subscribe",
    })),
  },
};
