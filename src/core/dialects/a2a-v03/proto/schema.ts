/**
 * The messages of 0.3 over HTTP+JSON and gRPC, from the `a2a.v1` proto of that release: JSON name, type, presence,
 * number. Three fields are newer than the release but in use: a part's metadata, a file's name, the icon.
 */

import type { SecurityRequirement } from "../../../model/card.ts";
import type { JsonObject } from "../../../model/json.ts";
import { TASK_STATES, type TaskState } from "../../../model/task.ts";
import { compileProtobuf, type DecodeOptions } from "../../shared/proto/binary-codec.ts";
import { COMMON_CARD_MESSAGES } from "../../shared/proto/card-messages.ts";
import { compileProtoJson, type FieldRow, type MessageTypes } from "../../shared/proto/json-codec.ts";
import type { ReadOptions } from "../../shared/proto/json-reading.ts";
import { DERIVED_IDS } from "../../shared/responses.ts";

type ProtoTaskState = Exclude<TaskState, "TASK_STATE_CANCELED"> | "TASK_STATE_CANCELLED";

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
    ["contextId", "string", "restored", 2],
    ["status", "TaskStatus", "required", 3],
    ["artifacts", "Artifact[]", "implicit", 4],
    ["history", "Message[]", "implicit", 5],
    ["metadata", "struct", "optional", 6],
  ],
  TaskStatusUpdateEvent: [
    ["taskId", "string", "required", 1],
    ["contextId", "string", "restored", 2],
    ["status", "TaskStatus", "required", 3],
    ["final", "bool", "implicit", 4],
    ["metadata", "struct", "optional", 5],
  ],
  TaskArtifactUpdateEvent: [
    ["taskId", "string", "required", 1],
    ["contextId", "string", "restored", 2],
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

  // Serialisers omit empty values, so only members without which a card is useless are required.
  AgentCard: [
    ["protocolVersion", "string", "implicit", 16],
    ["name", "string", "required", 1],
    ["description", "string", "filled", 2],
    ["url", "string", "filled", 3],
    ["preferredTransport", "string", "implicit", 14],
    ["additionalInterfaces", "AgentInterface[]", "implicit", 15],
    ["provider", "AgentProvider", "optional", 4],
    ["version", "string", "filled", 5],
    ["documentationUrl", "string", "optional", 6],
    ["capabilities", "AgentCapabilities", "optional", 7],
    ["securitySchemes", "map<SecurityScheme>", "implicit", 8],
    ["security", "Security[]", "implicit", 9],
    ["defaultInputModes", "string[]", "filled", 10],
    ["defaultOutputModes", "string[]", "filled", 11],
    ["skills", "AgentSkill[]", "filled", 12],
    ["supportsAuthenticatedExtendedCard", "bool", "optional", 13],
    ["signatures", "AgentCardSignature[]", "implicit", 17],
    ["iconUrl", "string", "optional", 18],
  ],
  AgentInterface: [
    ["url", "string", "required", 1],
    ["transport", "string", "required", 2],
  ],
  AgentCapabilities: [
    ["streaming", "bool", "optional", 1],
    ["pushNotifications", "bool", "optional", 2],
    ["extensions", "AgentExtension[]", "implicit", 3],
  ],
  AgentSkill: [
    ["id", "string", "required", 1],
    ["name", "string", "required", 2],
    ["description", "string", "filled", 3],
    ["tags", "string[]", "filled", 4],
    ["examples", "string[]", "implicit", 5],
    ["inputModes", "string[]", "implicit", 6],
    ["outputModes", "string[]", "implicit", 7],
    ["security", "Security[]", "implicit", 8],
  ],
  Security: [["schemes", "map<StringList>", "restored", 1]],
  OAuthFlows: [
    ["authorizationCode", "AuthorizationCodeOAuthFlow", "optional", 1],
    ["clientCredentials", "ClientCredentialsOAuthFlow", "optional", 2],
    ["implicit", "ImplicitOAuthFlow", "optional", 3],
    ["password", "PasswordOAuthFlow", "optional", 4],
  ],
  AuthorizationCodeOAuthFlow: [
    ["authorizationUrl", "string", "implicit", 1],
    ["tokenUrl", "string", "implicit", 2],
    ["refreshUrl", "string", "implicit", 3],
    ["scopes", "map<string>", "filled", 4],
  ],
  ...COMMON_CARD_MESSAGES,
} as const satisfies Readonly<Record<string, readonly FieldRow[]>>;

/** JSON, binary and the published `.proto` are all derived from these. */
export const PROTO_TABLES = {
  messages: MESSAGES,
  enums: ENUMS,
  // The spelling of 1.0 and of dialects with lower-case state names.
  aliases: { TASK_STATE_CANCELED: "TASK_STATE_CANCELLED" },
  substitutes: { TaskState: "TASK_STATE_UNSPECIFIED", Role: "ROLE_AGENT" },
  ids: DERIVED_IDS,
};

/** Security has the model's form. */
interface ModelTypes {
  SecurityScheme: JsonObject;
  Security: SecurityRequirement;
}

/** Every message by name, in the form that `readProto` returns. */
export type ProtoTypes = MessageTypes<typeof PROTO_TABLES, ModelTypes>;
export type ProtoName = keyof ProtoTypes;

const codec = compileProtoJson<ProtoName>(PROTO_TABLES);
const protobuf = compileProtobuf<ProtoName>(PROTO_TABLES);

/** Validates the value as that message. Throws a ProtocolError that lists every invalid member. */
export function readProto<Name extends ProtoName>(name: Name, value: unknown, options?: ReadOptions): ProtoTypes[Name] {
  return codec.read(name, value, options) as ProtoTypes[Name];
}

export function toBytes(name: ProtoName, value: object): Uint8Array {
  return protobuf.encode(name, value);
}

/** The decoded bytes, to be validated with `readProto`. */
export function fromBytes(name: ProtoName, bytes: Uint8Array, options?: DecodeOptions): Record<string, unknown> {
  return protobuf.decode(name, bytes, options);
}
