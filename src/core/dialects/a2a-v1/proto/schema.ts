/**
 * The messages of A2A 1.0 as tables, from the `lf.a2a.v1` proto: JSON name, type, presence. `readWire` validates a JSON
 * value against them and returns it in canonical form, which is the model's.
 */

import type {
  AgentCapabilities,
  AgentCard,
  AgentCardSignature,
  AgentExtension,
  AgentInterface,
  AgentProvider,
  AgentSkill,
  SecurityRequirement,
} from "../../../model/card.ts";
import type { StreamEvent, TaskArtifactUpdate, TaskStatusUpdate } from "../../../model/event.ts";
import type { Message, Part } from "../../../model/message.ts";
import type {
  AuthenticationInfo,
  PushConfigPage,
  SendConfiguration,
  SendOutcome,
  TaskPage,
  TaskPushNotificationConfig,
} from "../../../model/operation.ts";
import { type Artifact, TASK_STATES, type Task, type TaskStatus } from "../../../model/task.ts";
import { compileProtobuf, type DecodeOptions } from "../../shared/proto/binary-codec.ts";
import { COMMON_CARD_MESSAGES } from "../../shared/proto/card-messages.ts";
import { compileProtoJson, type FieldRow, type MessageTypes, type Presence } from "../../shared/proto/json-codec.ts";
import type { ReadOptions } from "../../shared/proto/json-reading.ts";
import { DERIVED_IDS } from "../../shared/responses.ts";

export type { ReadOptions } from "../../shared/proto/json-reading.ts";

/** The messages that are types of the model. */
interface ModelTypes {
  Part: Part;
  Message: Message;
  Artifact: Artifact;
  TaskStatus: TaskStatus;
  Task: Task;
  TaskStatusUpdateEvent: TaskStatusUpdate;
  TaskArtifactUpdateEvent: TaskArtifactUpdate;
  StreamResponse: StreamEvent;
  SendMessageConfiguration: SendConfiguration;
  SendMessageResponse: SendOutcome;
  ListTasksResponse: TaskPage;
  AuthenticationInfo: AuthenticationInfo;
  /** Its `tenant` is routing, not part of the config: only the request to create one has it. */
  TaskPushNotificationConfig: TaskPushNotificationConfig;
  ListTaskPushNotificationConfigsResponse: PushConfigPage;
  AgentCard: AgentCard;
  AgentInterface: AgentInterface;
  AgentCapabilities: AgentCapabilities;
  AgentSkill: AgentSkill;
  AgentProvider: AgentProvider;
  AgentExtension: AgentExtension;
  AgentCardSignature: AgentCardSignature;
  SecurityRequirement: SecurityRequirement;
}

const ENUMS = {
  TaskState: ["TASK_STATE_UNSPECIFIED", ...TASK_STATES],
  Role: ["ROLE_UNSPECIFIED", "ROLE_USER", "ROLE_AGENT"],
} as const;

type MemberOf<T> = T extends object ? keyof T & string : never;
type RowsOf<T> = readonly (readonly [name: MemberOf<T>, type: string, presence: Presence, number: number])[];

const TENANT = ["tenant", "string", "implicit", 1] as const;

const MESSAGES = {
  Part: [
    ["text", "string", "oneof", 1],
    ["raw", "bytes", "oneof", 2],
    ["url", "string", "oneof", 3],
    ["data", "value", "oneof", 4],
    ["metadata", "struct", "optional", 5],
    ["filename", "string", "implicit", 6],
    ["mediaType", "string", "implicit", 7],
  ],
  Message: [
    ["messageId", "string", "required", 1],
    ["contextId", "string", "implicit", 2],
    ["taskId", "string", "implicit", 3],
    ["role", "Role", "required", 4],
    ["parts", "Part[]", "required", 5],
    ["metadata", "struct", "optional", 6],
    ["extensions", "string[]", "implicit", 7],
    ["referenceTaskIds", "string[]", "implicit", 8],
  ],
  Artifact: [
    ["artifactId", "string", "required", 1],
    ["name", "string", "implicit", 2],
    ["description", "string", "implicit", 3],
    ["parts", "Part[]", "required", 4],
    ["metadata", "struct", "optional", 5],
    ["extensions", "string[]", "implicit", 6],
  ],
  TaskStatus: [
    ["state", "TaskState", "required", 1],
    ["message", "Message", "optional", 2],
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
    ["contextId", "string", "filled", 2],
    ["status", "TaskStatus", "required", 3],
    ["metadata", "struct", "optional", 4],
  ],
  TaskArtifactUpdateEvent: [
    ["taskId", "string", "required", 1],
    ["contextId", "string", "filled", 2],
    ["artifact", "Artifact", "required", 3],
    ["append", "bool", "implicit", 4],
    ["lastChunk", "bool", "implicit", 5],
    ["metadata", "struct", "optional", 6],
  ],
  StreamResponse: [
    ["task", "Task", "oneof", 1],
    ["message", "Message", "oneof", 2],
    ["statusUpdate", "TaskStatusUpdateEvent", "oneof", 3],
    ["artifactUpdate", "TaskArtifactUpdateEvent", "oneof", 4],
  ],

  SendMessageConfiguration: [
    ["acceptedOutputModes", "string[]", "implicit", 1],
    ["taskPushNotificationConfig", "TaskPushNotificationConfig", "optional", 2],
    ["historyLength", "length", "optional", 3],
    ["returnImmediately", "bool", "implicit", 4],
  ],
  SendMessageRequest: [
    TENANT,
    ["message", "Message", "required", 2],
    ["configuration", "SendMessageConfiguration", "optional", 3],
    ["metadata", "struct", "optional", 4],
  ],
  SendMessageResponse: [
    ["task", "Task", "oneof", 1],
    ["message", "Message", "oneof", 2],
  ],
  GetTaskRequest: [TENANT, ["id", "string", "required", 2], ["historyLength", "length", "optional", 3]],
  ListTasksRequest: [
    TENANT,
    ["contextId", "string", "implicit", 2],
    ["status", "TaskState", "implicit", 3],
    ["pageSize", "pageSize", "optional", 4],
    ["pageToken", "string", "implicit", 5],
    ["historyLength", "length", "optional", 6],
    ["statusTimestampAfter", "timestamp", "optional", 7],
    ["includeArtifacts", "bool", "optional", 8],
  ],
  ListTasksResponse: [
    ["tasks", "Task[]", "filled", 1],
    ["nextPageToken", "string", "filled", 2],
    ["pageSize", "int32", "filled", 3],
    ["totalSize", "int32", "filled", 4],
  ],
  CancelTaskRequest: [TENANT, ["id", "string", "required", 2], ["metadata", "struct", "optional", 3]],
  SubscribeToTaskRequest: [TENANT, ["id", "string", "required", 2]],
  GetExtendedAgentCardRequest: [TENANT],

  AuthenticationInfo: [
    ["scheme", "string", "required", 1],
    ["credentials", "string", "implicit", 2],
  ],
  TaskPushNotificationConfig: [
    ["id", "string", "implicit", 2],
    ["taskId", "string", "implicit", 3],
    ["url", "string", "required", 4],
    ["token", "string", "implicit", 5],
    ["authentication", "AuthenticationInfo", "optional", 6],
  ],
  CreateTaskPushNotificationConfigRequest: [
    TENANT,
    ["id", "string", "implicit", 2],
    ["taskId", "string", "required", 3],
    ["url", "string", "required", 4],
    ["token", "string", "implicit", 5],
    ["authentication", "AuthenticationInfo", "optional", 6],
  ],
  GetTaskPushNotificationConfigRequest: [TENANT, ["taskId", "string", "required", 2], ["id", "string", "required", 3]],
  DeleteTaskPushNotificationConfigRequest: [
    TENANT,
    ["taskId", "string", "required", 2],
    ["id", "string", "required", 3],
  ],
  ListTaskPushNotificationConfigsRequest: [
    ["tenant", "string", "implicit", 4],
    ["taskId", "string", "required", 1],
    ["pageSize", "length", "implicit", 2],
    ["pageToken", "string", "implicit", 3],
  ],
  ListTaskPushNotificationConfigsResponse: [
    ["configs", "TaskPushNotificationConfig[]", "filled", 1],
    ["nextPageToken", "string", "restored", 2],
  ],

  // Serialisers omit empty required strings and lists, so a missing one must not make the card invalid.
  AgentCard: [
    ["name", "string", "required", 1],
    ["description", "string", "filled", 2],
    ["supportedInterfaces", "AgentInterface[]", "required", 3],
    ["provider", "AgentProvider", "optional", 4],
    ["version", "string", "required", 5],
    ["documentationUrl", "string", "optional", 6],
    ["capabilities", "AgentCapabilities", "required", 7],
    ["securitySchemes", "map<SecurityScheme>", "implicit", 8],
    ["securityRequirements", "SecurityRequirement[]", "implicit", 9],
    ["defaultInputModes", "string[]", "filled", 10],
    ["defaultOutputModes", "string[]", "filled", 11],
    ["skills", "AgentSkill[]", "filled", 12],
    ["signatures", "AgentCardSignature[]", "implicit", 13],
    ["iconUrl", "string", "optional", 14],
  ],
  AgentInterface: [
    ["url", "string", "required", 1],
    ["protocolBinding", "string", "required", 2],
    ["tenant", "string", "implicit", 3],
    ["protocolVersion", "string", "required", 4],
  ],
  AgentCapabilities: [
    ["streaming", "bool", "optional", 1],
    ["pushNotifications", "bool", "optional", 2],
    ["extensions", "AgentExtension[]", "implicit", 3],
    ["extendedAgentCard", "bool", "optional", 4],
  ],
  AgentSkill: [
    ["id", "string", "required", 1],
    ["name", "string", "required", 2],
    ["description", "string", "filled", 3],
    ["tags", "string[]", "filled", 4],
    ["examples", "string[]", "implicit", 5],
    ["inputModes", "string[]", "implicit", 6],
    ["outputModes", "string[]", "implicit", 7],
    ["securityRequirements", "SecurityRequirement[]", "implicit", 8],
  ],
  SecurityRequirement: [["schemes", "map<StringList>", "restored", 1]],
  OAuthFlows: [
    ["authorizationCode", "AuthorizationCodeOAuthFlow", "optional", 1],
    ["clientCredentials", "ClientCredentialsOAuthFlow", "optional", 2],
    ["implicit", "ImplicitOAuthFlow", "optional", 3],
    ["password", "PasswordOAuthFlow", "optional", 4],
    ["deviceCode", "DeviceCodeOAuthFlow", "optional", 5],
  ],
  AuthorizationCodeOAuthFlow: [
    ["authorizationUrl", "string", "implicit", 1],
    ["tokenUrl", "string", "implicit", 2],
    ["refreshUrl", "string", "implicit", 3],
    ["scopes", "map<string>", "filled", 4],
    ["pkceRequired", "bool", "implicit", 5],
  ],
  DeviceCodeOAuthFlow: [
    ["deviceAuthorizationUrl", "string", "implicit", 1],
    ["tokenUrl", "string", "implicit", 2],
    ["refreshUrl", "string", "implicit", 3],
    ["scopes", "map<string>", "filled", 4],
  ],
  ...COMMON_CARD_MESSAGES,
} as const satisfies Readonly<Record<string, readonly FieldRow[]>> & {
  readonly [Name in keyof ModelTypes]: RowsOf<ModelTypes[Name]>;
};

/** JSON, binary and the published `.proto` are all derived from these. */
export const TABLES = {
  messages: MESSAGES,
  enums: ENUMS,
  substitutes: { TaskState: "TASK_STATE_UNSPECIFIED", Role: "ROLE_AGENT" },
  ids: DERIVED_IDS,
};

/** Every message by name, in the form that `readWire` returns. */
export type WireTypes = MessageTypes<typeof TABLES, ModelTypes>;
export type WireName = keyof WireTypes;

const codec = compileProtoJson<WireName>(TABLES);
const protobuf = compileProtobuf<WireName>(TABLES);

/** Validates the value as that message. Throws a ProtocolError that lists every invalid member. */
export function readWire<Name extends WireName>(name: Name, value: unknown, options?: ReadOptions): WireTypes[Name] {
  return codec.read(name, value, options) as WireTypes[Name];
}

/** A model value in its wire form, ready for `JSON.stringify`. */
export function writeWire<Name extends WireName>(name: Name, value: WireTypes[Name]): object {
  return codec.write(name, value) as object;
}

export function toBytes(name: WireName, value: object): Uint8Array {
  return protobuf.encode(name, value);
}

/** The decoded bytes, to be validated with `readWire`. */
export function fromBytes(name: WireName, bytes: Uint8Array, options?: DecodeOptions): Record<string, unknown> {
  return protobuf.decode(name, bytes, options);
}
