/**
 * The messages of A2A 1.0 as tables, after the `lf.a2a.v1` proto: JSON name, type, presence. `readWire` validates a JSON
 * value by them and gives it in the canonical form, which is the model's.
 */
import type { Artifact } from "../../model/artifact.ts";
import type {
  AgentCapabilities,
  AgentCard,
  AgentCardSignature,
  AgentExtension,
  AgentInterface,
  AgentProvider,
  AgentSkill,
  SecurityRequirement,
} from "../../model/card.ts";
import type { StreamEvent, TaskArtifactUpdate, TaskStatusUpdate } from "../../model/event.ts";
import type { JsonObject, JsonValue } from "../../model/json.ts";
import type { Message } from "../../model/message.ts";
import type { PushConfigPage, SendConfiguration, SendInput, SendOutcome, TaskPage } from "../../model/operation.ts";
import type { Part } from "../../model/part.ts";
import type { AuthenticationInfo, TaskPushNotificationConfig } from "../../model/push.ts";
import { TASK_STATES, type TaskState } from "../../model/state.ts";
import type { Task, TaskStatus } from "../../model/task.ts";
import { compileTables, type Presence } from "./proto-json.ts";
import type { ReadOptions } from "./proto-json-reading.ts";
import type { ScalarName } from "./proto-json-scalars.ts";

export type { ReadOptions } from "./proto-json-reading.ts";

interface Tenanted {
  readonly tenant?: string;
}

interface TaskNamed extends Tenanted {
  readonly id: string;
}

interface PushConfigNamed extends Tenanted {
  readonly taskId: string;
  readonly id: string;
}

/** Every message by name, in the form `readWire` gives it. */
export interface WireTypes {
  Part: Part;
  Message: Message;
  Artifact: Artifact;
  TaskStatus: TaskStatus;
  Task: Task;
  TaskStatusUpdateEvent: TaskStatusUpdate;
  TaskArtifactUpdateEvent: TaskArtifactUpdate;
  StreamResponse: StreamEvent;

  SendMessageConfiguration: SendConfiguration;
  SendMessageRequest: SendInput & Tenanted;
  SendMessageResponse: SendOutcome;
  GetTaskRequest: TaskNamed & { readonly historyLength?: number };
  ListTasksRequest: Tenanted & {
    readonly contextId?: string;
    readonly status?: TaskState;
    readonly pageSize?: number;
    readonly pageToken?: string;
    readonly historyLength?: number;
    readonly statusTimestampAfter?: string;
    readonly includeArtifacts?: boolean;
  };
  ListTasksResponse: TaskPage;
  CancelTaskRequest: TaskNamed & { readonly metadata?: JsonObject };
  SubscribeToTaskRequest: TaskNamed;
  GetExtendedAgentCardRequest: Tenanted;

  AuthenticationInfo: AuthenticationInfo;
  /** Its `tenant` is routing, not part of the config: only the request to create one has it. */
  TaskPushNotificationConfig: TaskPushNotificationConfig;
  CreateTaskPushNotificationConfigRequest: TaskPushNotificationConfig & Tenanted & { readonly taskId: string };
  GetTaskPushNotificationConfigRequest: PushConfigNamed;
  DeleteTaskPushNotificationConfigRequest: PushConfigNamed;
  ListTaskPushNotificationConfigsRequest: Tenanted & {
    readonly taskId: string;
    readonly pageSize?: number;
    readonly pageToken?: string;
  };
  ListTaskPushNotificationConfigsResponse: PushConfigPage;

  AgentCard: AgentCard;
  AgentInterface: AgentInterface;
  AgentProvider: AgentProvider;
  AgentCapabilities: AgentCapabilities;
  AgentExtension: AgentExtension;
  AgentSkill: AgentSkill;
  AgentCardSignature: AgentCardSignature;
  SecurityRequirement: SecurityRequirement;
  StringList: { readonly list: readonly string[] };
  SecurityScheme: JsonObject;
  APIKeySecurityScheme: JsonObject;
  HTTPAuthSecurityScheme: JsonObject;
  OAuth2SecurityScheme: JsonObject;
  OpenIdConnectSecurityScheme: JsonObject;
  MutualTlsSecurityScheme: JsonObject;
  OAuthFlows: JsonObject;
  OAuthFlow: JsonObject;
}

export type WireName = keyof WireTypes;

const ENUMS = {
  TaskState: ["TASK_STATE_UNSPECIFIED", ...TASK_STATES],
  Role: ["ROLE_UNSPECIFIED", "ROLE_USER", "ROLE_AGENT"],
} as const;

type SingleType = ScalarName | keyof typeof ENUMS | WireName;
type TypeName = SingleType | `${SingleType}[]` | `map<${SingleType}>`;
type MemberOf<T> = T extends JsonValue | object ? keyof T & string : never;
type Table<T> = readonly (readonly [name: MemberOf<T>, type: TypeName, presence: Presence])[];

const TENANT = ["tenant", "string", "implicit"] as const;

const MESSAGES = {
  Part: [
    ["text", "string", "oneof"],
    ["raw", "bytes", "oneof"],
    ["url", "string", "oneof"],
    ["data", "value", "oneof"],
    ["metadata", "struct", "optional"],
    ["filename", "string", "implicit"],
    ["mediaType", "string", "implicit"],
  ],
  Message: [
    ["messageId", "string", "required"],
    ["contextId", "string", "implicit"],
    ["taskId", "string", "implicit"],
    ["role", "Role", "required"],
    ["parts", "Part[]", "required"],
    ["metadata", "struct", "optional"],
    ["extensions", "string[]", "implicit"],
    ["referenceTaskIds", "string[]", "implicit"],
  ],
  Artifact: [
    ["artifactId", "string", "required"],
    ["name", "string", "implicit"],
    ["description", "string", "implicit"],
    ["parts", "Part[]", "required"],
    ["metadata", "struct", "optional"],
    ["extensions", "string[]", "implicit"],
  ],
  TaskStatus: [
    ["state", "TaskState", "required"],
    ["message", "Message", "optional"],
    ["timestamp", "timestamp", "optional"],
  ],
  Task: [
    ["id", "string", "required"],
    ["contextId", "string", "restored"],
    ["status", "TaskStatus", "required"],
    ["artifacts", "Artifact[]", "implicit"],
    ["history", "Message[]", "implicit"],
    ["metadata", "struct", "optional"],
  ],
  TaskStatusUpdateEvent: [
    ["taskId", "string", "required"],
    ["contextId", "string", "filled"],
    ["status", "TaskStatus", "required"],
    ["metadata", "struct", "optional"],
  ],
  TaskArtifactUpdateEvent: [
    ["taskId", "string", "required"],
    ["contextId", "string", "filled"],
    ["artifact", "Artifact", "required"],
    ["append", "bool", "implicit"],
    ["lastChunk", "bool", "implicit"],
    ["metadata", "struct", "optional"],
  ],
  StreamResponse: [
    ["task", "Task", "oneof"],
    ["message", "Message", "oneof"],
    ["statusUpdate", "TaskStatusUpdateEvent", "oneof"],
    ["artifactUpdate", "TaskArtifactUpdateEvent", "oneof"],
  ],

  SendMessageConfiguration: [
    ["acceptedOutputModes", "string[]", "implicit"],
    ["taskPushNotificationConfig", "TaskPushNotificationConfig", "optional"],
    ["historyLength", "length", "optional"],
    ["returnImmediately", "bool", "implicit"],
  ],
  SendMessageRequest: [
    TENANT,
    ["message", "Message", "required"],
    ["configuration", "SendMessageConfiguration", "optional"],
    ["metadata", "struct", "optional"],
  ],
  SendMessageResponse: [
    ["task", "Task", "oneof"],
    ["message", "Message", "oneof"],
  ],
  GetTaskRequest: [TENANT, ["id", "string", "required"], ["historyLength", "length", "optional"]],
  ListTasksRequest: [
    TENANT,
    ["contextId", "string", "implicit"],
    ["status", "TaskState", "implicit"],
    ["pageSize", "pageSize", "optional"],
    ["pageToken", "string", "implicit"],
    ["historyLength", "length", "optional"],
    ["statusTimestampAfter", "timestamp", "optional"],
    ["includeArtifacts", "bool", "optional"],
  ],
  ListTasksResponse: [
    ["tasks", "Task[]", "filled"],
    ["nextPageToken", "string", "filled"],
    ["pageSize", "int32", "filled"],
    ["totalSize", "int32", "filled"],
  ],
  CancelTaskRequest: [TENANT, ["id", "string", "required"], ["metadata", "struct", "optional"]],
  SubscribeToTaskRequest: [TENANT, ["id", "string", "required"]],
  GetExtendedAgentCardRequest: [TENANT],

  AuthenticationInfo: [
    ["scheme", "string", "required"],
    ["credentials", "string", "implicit"],
  ],
  TaskPushNotificationConfig: [
    ["id", "string", "implicit"],
    ["taskId", "string", "implicit"],
    ["url", "string", "required"],
    ["token", "string", "implicit"],
    ["authentication", "AuthenticationInfo", "optional"],
  ],
  CreateTaskPushNotificationConfigRequest: [
    TENANT,
    ["id", "string", "implicit"],
    ["taskId", "string", "required"],
    ["url", "string", "required"],
    ["token", "string", "implicit"],
    ["authentication", "AuthenticationInfo", "optional"],
  ],
  GetTaskPushNotificationConfigRequest: [TENANT, ["taskId", "string", "required"], ["id", "string", "required"]],
  DeleteTaskPushNotificationConfigRequest: [TENANT, ["taskId", "string", "required"], ["id", "string", "required"]],
  ListTaskPushNotificationConfigsRequest: [
    TENANT,
    ["taskId", "string", "required"],
    ["pageSize", "length", "implicit"],
    ["pageToken", "string", "implicit"],
  ],
  ListTaskPushNotificationConfigsResponse: [
    ["configs", "TaskPushNotificationConfig[]", "filled"],
    ["nextPageToken", "string", "restored"],
  ],

  // Serialisers leave out empty required text and lists, so that absence of one must not cost us the card.
  AgentCard: [
    ["name", "string", "required"],
    ["description", "string", "filled"],
    ["supportedInterfaces", "AgentInterface[]", "required"],
    ["provider", "AgentProvider", "optional"],
    ["version", "string", "required"],
    ["documentationUrl", "string", "optional"],
    ["capabilities", "AgentCapabilities", "required"],
    ["securitySchemes", "map<SecurityScheme>", "implicit"],
    ["securityRequirements", "SecurityRequirement[]", "implicit"],
    ["defaultInputModes", "string[]", "filled"],
    ["defaultOutputModes", "string[]", "filled"],
    ["skills", "AgentSkill[]", "filled"],
    ["signatures", "AgentCardSignature[]", "implicit"],
    ["iconUrl", "string", "optional"],
  ],
  AgentInterface: [
    ["url", "string", "required"],
    ["protocolBinding", "string", "required"],
    ["tenant", "string", "implicit"],
    ["protocolVersion", "string", "required"],
  ],
  AgentProvider: [
    ["url", "string", "filled"],
    ["organization", "string", "filled"],
  ],
  AgentCapabilities: [
    ["streaming", "bool", "optional"],
    ["pushNotifications", "bool", "optional"],
    ["extensions", "AgentExtension[]", "implicit"],
    ["extendedAgentCard", "bool", "optional"],
  ],
  AgentExtension: [
    ["uri", "string", "required"],
    ["description", "string", "implicit"],
    ["required", "bool", "implicit"],
    ["params", "struct", "optional"],
  ],
  AgentSkill: [
    ["id", "string", "required"],
    ["name", "string", "required"],
    ["description", "string", "filled"],
    ["tags", "string[]", "filled"],
    ["examples", "string[]", "implicit"],
    ["inputModes", "string[]", "implicit"],
    ["outputModes", "string[]", "implicit"],
    ["securityRequirements", "SecurityRequirement[]", "implicit"],
  ],
  AgentCardSignature: [
    ["protected", "string", "required"],
    ["signature", "string", "required"],
    ["header", "struct", "optional"],
  ],
  SecurityRequirement: [["schemes", "map<StringList>", "restored"]],
  StringList: [["list", "string[]", "restored"]],
  // A kind of scheme that is not known here reads as an empty object: it cannot be satisfied, the rest can be used.
  SecurityScheme: [
    ["apiKeySecurityScheme", "APIKeySecurityScheme", "optional"],
    ["httpAuthSecurityScheme", "HTTPAuthSecurityScheme", "optional"],
    ["oauth2SecurityScheme", "OAuth2SecurityScheme", "optional"],
    ["openIdConnectSecurityScheme", "OpenIdConnectSecurityScheme", "optional"],
    ["mtlsSecurityScheme", "MutualTlsSecurityScheme", "optional"],
  ],
  APIKeySecurityScheme: [
    ["description", "string", "implicit"],
    ["location", "string", "required"],
    ["name", "string", "required"],
  ],
  HTTPAuthSecurityScheme: [
    ["description", "string", "implicit"],
    ["scheme", "string", "required"],
    ["bearerFormat", "string", "implicit"],
  ],
  OAuth2SecurityScheme: [
    ["description", "string", "implicit"],
    ["flows", "OAuthFlows", "required"],
    ["oauth2MetadataUrl", "string", "implicit"],
  ],
  OpenIdConnectSecurityScheme: [
    ["description", "string", "implicit"],
    ["openIdConnectUrl", "string", "required"],
  ],
  MutualTlsSecurityScheme: [["description", "string", "implicit"]],
  OAuthFlows: [
    ["authorizationCode", "OAuthFlow", "optional"],
    ["clientCredentials", "OAuthFlow", "optional"],
    ["implicit", "OAuthFlow", "optional"],
    ["password", "OAuthFlow", "optional"],
    ["deviceCode", "OAuthFlow", "optional"],
  ],
  // The five flows differ only in which of these they may have.
  OAuthFlow: [
    ["authorizationUrl", "string", "implicit"],
    ["deviceAuthorizationUrl", "string", "implicit"],
    ["tokenUrl", "string", "implicit"],
    ["refreshUrl", "string", "implicit"],
    ["scopes", "map<string>", "filled"],
    ["pkceRequired", "bool", "implicit"],
  ],
} as const satisfies { readonly [Name in WireName]: Table<WireTypes[Name]> };

const codec = compileTables<WireName>({ messages: MESSAGES, enums: ENUMS });

/** The value as that message, or a ProtocolError that names every member that does not fit. */
export function readWire<Name extends WireName>(name: Name, value: unknown, options?: ReadOptions): WireTypes[Name] {
  return codec.read(name, value, options) as WireTypes[Name];
}

/** A value of the model in the form that goes on the wire, ready for `JSON.stringify`. */
export function writeWire<Name extends WireName>(name: Name, value: WireTypes[Name]): object {
  return codec.write(name, value) as object;
}
