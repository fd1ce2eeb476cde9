/**
 * The messages of 0.3 over HTTP+JSON and gRPC, from the `a2a.v1` proto of that release: JSON name, type, presence,
 * number. Three fields are newer than the release but in use: a part's metadata, a file's name, the icon.
 */

import type { JsonObject, JsonValue } from "../../../model/json.ts";
import type { Role } from "../../../model/message.ts";
import { TASK_STATES, type TaskState } from "../../../model/task.ts";
import { compileProtobuf, type DecodeOptions } from "../../shared/proto/binary-codec.ts";
import { compileProtoJson, type Presence, type ProtoTables } from "../../shared/proto/json-codec.ts";
import type { ReadOptions, ScalarName } from "../../shared/proto/json-reading.ts";
import { PROTO_CARD_MESSAGES, type ProtoCardTypes } from "./schema-card.ts";

type ProtoTaskState = Exclude<TaskState, "TASK_STATE_CANCELED"> | "TASK_STATE_CANCELLED";

export interface ProtoFile {
  readonly fileWithUri?: string;
  readonly fileWithBytes?: string;
  readonly mimeType?: string;
  readonly name?: string;
}

export interface ProtoPart {
  readonly text?: string;
  readonly file?: ProtoFile;
  readonly data?: { readonly data: JsonObject };
  readonly metadata?: JsonObject;
}

export interface ProtoMessage {
  readonly messageId: string;
  readonly contextId?: string;
  readonly taskId?: string;
  readonly role?: Role;
  readonly content: readonly ProtoPart[];
  readonly metadata?: JsonObject;
  readonly extensions?: readonly string[];
}

export interface ProtoArtifact {
  readonly artifactId: string;
  readonly name?: string;
  readonly description?: string;
  readonly parts: readonly ProtoPart[];
  readonly metadata?: JsonObject;
  readonly extensions?: readonly string[];
}

export interface ProtoTaskStatus {
  readonly state: ProtoTaskState;
  readonly message?: ProtoMessage;
  readonly timestamp?: string;
}

export interface ProtoTask {
  readonly id: string;
  readonly contextId?: string;
  readonly status: ProtoTaskStatus;
  readonly artifacts?: readonly ProtoArtifact[];
  readonly history?: readonly ProtoMessage[];
  readonly metadata?: JsonObject;
}

export interface ProtoStatusUpdate {
  readonly taskId: string;
  readonly contextId?: string;
  readonly status: ProtoTaskStatus;
  readonly final?: boolean;
  readonly metadata?: JsonObject;
}

export interface ProtoArtifactUpdate {
  readonly taskId: string;
  readonly contextId?: string;
  readonly artifact: ProtoArtifact;
  readonly append?: boolean;
  readonly lastChunk?: boolean;
  readonly metadata?: JsonObject;
}

/** Exactly one of them. */
export interface ProtoStreamResponse {
  readonly task?: ProtoTask;
  readonly message?: ProtoMessage;
  readonly statusUpdate?: ProtoStatusUpdate;
  readonly artifactUpdate?: ProtoArtifactUpdate;
}

export interface ProtoPushConfig {
  readonly id?: string;
  readonly url: string;
  readonly token?: string;
  readonly authentication?: { readonly schemes?: readonly string[]; readonly credentials?: string };
}

export interface ProtoTaskPushConfig {
  /** `tasks/{id}/pushNotificationConfigs/{id}` */
  readonly name?: string;
  readonly pushNotificationConfig: ProtoPushConfig;
}

export interface ProtoConfiguration {
  readonly acceptedOutputModes?: readonly string[];
  readonly pushNotification?: ProtoPushConfig;
  readonly historyLength?: number;
  readonly blocking?: boolean;
}

interface Named {
  readonly name: string;
}

/** Every message by name, in the form that `readProto` returns. */
export interface ProtoTypes extends ProtoCardTypes {
  Part: ProtoPart;
  FilePart: ProtoFile;
  DataPart: { readonly data: JsonObject };
  Message: ProtoMessage;
  Artifact: ProtoArtifact;
  TaskStatus: ProtoTaskStatus;
  Task: ProtoTask;
  TaskStatusUpdateEvent: ProtoStatusUpdate;
  TaskArtifactUpdateEvent: ProtoArtifactUpdate;
  StreamResponse: ProtoStreamResponse;

  SendMessageConfiguration: ProtoConfiguration;
  SendMessageRequest: {
    readonly message: ProtoMessage;
    readonly configuration?: ProtoConfiguration;
    readonly metadata?: JsonObject;
  };
  SendMessageResponse: Pick<ProtoStreamResponse, "task" | "message">;
  GetTaskRequest: Named & { readonly historyLength?: number };
  CancelTaskRequest: Named;
  TaskSubscriptionRequest: Named;
  GetAgentCardRequest: Readonly<Record<string, never>>;

  AuthenticationInfo: NonNullable<ProtoPushConfig["authentication"]>;
  PushNotificationConfig: ProtoPushConfig;
  TaskPushNotificationConfig: ProtoTaskPushConfig;
  CreateTaskPushNotificationConfigRequest: {
    readonly parent: string;
    readonly configId?: string;
    readonly config: ProtoTaskPushConfig;
  };
  GetTaskPushNotificationConfigRequest: Named;
  DeleteTaskPushNotificationConfigRequest: Named;
  ListTaskPushNotificationConfigRequest: {
    readonly parent: string;
    readonly pageSize?: number;
    readonly pageToken?: string;
  };
  ListTaskPushNotificationConfigResponse: {
    readonly configs: readonly ProtoTaskPushConfig[];
    readonly nextPageToken?: string;
  };
}

export type ProtoName = keyof ProtoTypes;

const ENUMS = {
  TaskState: ["TASK_STATE_UNSPECIFIED", ...TASK_STATES.map(toProtoState)],
  Role: ["ROLE_UNSPECIFIED", "ROLE_USER", "ROLE_AGENT"],
} as const;

/** The only state with a different spelling. */
export function toProtoState(state: TaskState): ProtoTaskState {
  return state === "TASK_STATE_CANCELED" ? "TASK_STATE_CANCELLED" : state;
}

export function fromProtoState(state: ProtoTaskState): TaskState {
  return state === "TASK_STATE_CANCELLED" ? "TASK_STATE_CANCELED" : state;
}

type SingleType = ScalarName | keyof typeof ENUMS | ProtoName;
type TypeName = SingleType | `${SingleType}[]` | `map<${SingleType}>`;
type MemberOf<T> = T extends JsonValue | object ? keyof T & string : never;
type Table<T> = readonly (readonly [
  name: MemberOf<T>,
  type: TypeName,
  presence: Presence,
  number: number,
  protoName?: string,
])[];

const NAME = ["name", "string", "required", 1] as const;

const MESSAGES = {
  Part: [
    ["text", "string", "oneof", 1],
    ["file", "FilePart", "oneof", 2],
    ["data", "DataPart", "oneof", 3],
    ["metadata", "struct", "optional", 4],
  ],
  FilePart: [
    ["fileWithUri", "string", "oneof", 1],
    ["fileWithBytes", "bytes", "oneof", 2],
    ["mimeType", "string", "implicit", 3],
    ["name", "string", "implicit", 4],
  ],
  DataPart: [["data", "struct", "filled", 1]],
  Message: [
    ["messageId", "string", "required", 1],
    ["contextId", "string", "implicit", 2],
    ["taskId", "string", "implicit", 3],
    // Required in requests; in a response, a message without a role is the agent's.
    ["role", "Role", "implicit", 4],
    ["content", "Part[]", "required", 5],
    ["metadata", "struct", "optional", 6],
    ["extensions", "string[]", "implicit", 7],
  ],
  Artifact: [
    ["artifactId", "string", "required", 1],
    ["name", "string", "implicit", 3],
    ["description", "string", "implicit", 4],
    ["parts", "Part[]", "required", 5],
    ["metadata", "struct", "optional", 6],
    ["extensions", "string[]", "implicit", 7],
  ],
  TaskStatus: [
    ["state", "TaskState", "required", 1],
    ["message", "Message", "optional", 2, "update"],
    ["timestamp", "timestamp", "optional", 3],
  ],
  Task: [
    ["id", "string", "required", 1],
    ["contextId", "string", "implicit", 2],
    ["status", "TaskStatus", "required", 3],
    ["artifacts", "Artifact[]", "implicit", 4],
    ["history", "Message[]", "implicit", 5],
    ["metadata", "struct", "optional", 6],
  ],
  TaskStatusUpdateEvent: [
    ["taskId", "string", "required", 1],
    ["contextId", "string", "implicit", 2],
    ["status", "TaskStatus", "required", 3],
    ["final", "bool", "implicit", 4],
    ["metadata", "struct", "optional", 5],
  ],
  TaskArtifactUpdateEvent: [
    ["taskId", "string", "required", 1],
    ["contextId", "string", "implicit", 2],
    ["artifact", "Artifact", "required", 3],
    ["append", "bool", "implicit", 4],
    ["lastChunk", "bool", "implicit", 5],
    ["metadata", "struct", "optional", 6],
  ],
  StreamResponse: [
    ["task", "Task", "oneof", 1],
    ["message", "Message", "oneof", 2, "msg"],
    ["statusUpdate", "TaskStatusUpdateEvent", "oneof", 3],
    ["artifactUpdate", "TaskArtifactUpdateEvent", "oneof", 4],
  ],

  // The proto's fields have no presence. With presence, an explicit false or zero is decoded where it was sent: JSON
  // peers send it; in binary only we do, and other peers decode the same as if it were absent.
  SendMessageConfiguration: [
    ["acceptedOutputModes", "string[]", "implicit", 1],
    ["pushNotification", "PushNotificationConfig", "optional", 2],
    ["historyLength", "length", "optional", 3],
    ["blocking", "bool", "optional", 4],
  ],
  SendMessageRequest: [
    ["message", "Message", "required", 1, "request"],
    ["configuration", "SendMessageConfiguration", "optional", 2],
    ["metadata", "struct", "optional", 3],
  ],
  SendMessageResponse: [
    ["task", "Task", "oneof", 1],
    ["message", "Message", "oneof", 2, "msg"],
  ],
  GetTaskRequest: [NAME, ["historyLength", "length", "optional", 2]],
  CancelTaskRequest: [NAME],
  TaskSubscriptionRequest: [NAME],
  GetAgentCardRequest: [],

  AuthenticationInfo: [
    ["schemes", "string[]", "implicit", 1],
    ["credentials", "string", "implicit", 2],
  ],
  PushNotificationConfig: [
    ["id", "string", "implicit", 1],
    ["url", "string", "required", 2],
    ["token", "string", "implicit", 3],
    ["authentication", "AuthenticationInfo", "optional", 4],
  ],
  TaskPushNotificationConfig: [
    ["name", "string", "implicit", 1],
    ["pushNotificationConfig", "PushNotificationConfig", "required", 2],
  ],
  CreateTaskPushNotificationConfigRequest: [
    ["parent", "string", "required", 1],
    ["configId", "string", "implicit", 2],
    ["config", "TaskPushNotificationConfig", "required", 3],
  ],
  GetTaskPushNotificationConfigRequest: [NAME],
  DeleteTaskPushNotificationConfigRequest: [NAME],
  ListTaskPushNotificationConfigRequest: [
    ["parent", "string", "required", 1],
    ["pageSize", "length", "implicit", 2],
    ["pageToken", "string", "implicit", 3],
  ],
  ListTaskPushNotificationConfigResponse: [
    ["configs", "TaskPushNotificationConfig[]", "filled", 1],
    ["nextPageToken", "string", "implicit", 2],
  ],

  ...PROTO_CARD_MESSAGES,
} as const satisfies { readonly [Name in ProtoName]: Table<ProtoTypes[Name]> };

/** JSON, binary and the published `.proto` are all derived from these. */
export const PROTO_TABLES: ProtoTables = {
  messages: MESSAGES,
  enums: ENUMS,
  // The spelling of 1.0 and of dialects with lower-case state names.
  aliases: { TASK_STATE_CANCELED: "TASK_STATE_CANCELLED" },
};

const codec = compileProtoJson<ProtoName>(PROTO_TABLES);
const protobuf = compileProtobuf<ProtoName>(PROTO_TABLES);

/** Validates the value as that message. Throws a ProtocolError that lists every invalid member. */
export function readProto<Name extends ProtoName>(name: Name, value: unknown, options?: ReadOptions): ProtoTypes[Name] {
  return codec.read(name, value, options) as ProtoTypes[Name];
}

export function toBytes<Name extends ProtoName>(name: Name, value: ProtoTypes[Name]): Uint8Array {
  return protobuf.encode(name, value);
}

/** The decoded bytes, to be validated with `readProto`. */
export function fromBytes(name: ProtoName, bytes: Uint8Array, options?: DecodeOptions): Record<string, unknown> {
  return protobuf.decode(name, bytes, options);
}
