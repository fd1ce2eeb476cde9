/** The methods of both gRPC services, with the messages they take and give. */
import type { Version } from "../requirement.ts";
import type { OperationName } from "./peer.ts";

export const SERVICES = {
  "1.0": "lf.a2a.v1.A2AService",
  "0.3": "a2a.v1.A2AService",
} as const satisfies Record<Version, string>;

interface RpcMethod {
  readonly method: string;
  readonly request: string;
  readonly reply: string;
}

const row = (method: string, request: string, reply: string): RpcMethod => ({ method, request, reply });

const COMMON = {
  SendMessage: row("SendMessage", "SendMessageRequest", "SendMessageResponse"),
  SendStreamingMessage: row("SendStreamingMessage", "SendMessageRequest", "StreamResponse"),
  GetTask: row("GetTask", "GetTaskRequest", "Task"),
  CancelTask: row("CancelTask", "CancelTaskRequest", "Task"),
  GetTaskPushNotificationConfig: row(
    "GetTaskPushNotificationConfig",
    "GetTaskPushNotificationConfigRequest",
    "TaskPushNotificationConfig",
  ),
  DeleteTaskPushNotificationConfig: row(
    "DeleteTaskPushNotificationConfig",
    "DeleteTaskPushNotificationConfigRequest",
    "Empty",
  ),
};

export const METHODS: Readonly<Record<Version, Readonly<Partial<Record<OperationName, RpcMethod>>>>> = {
  "1.0": {
    ...COMMON,
    ListTasks: row("ListTasks", "ListTasksRequest", "ListTasksResponse"),
    SubscribeToTask: row("SubscribeToTask", "SubscribeToTaskRequest", "StreamResponse"),
    CreateTaskPushNotificationConfig: row(
      "CreateTaskPushNotificationConfig",
      "TaskPushNotificationConfig",
      "TaskPushNotificationConfig",
    ),
    ListTaskPushNotificationConfigs: row(
      "ListTaskPushNotificationConfigs",
      "ListTaskPushNotificationConfigsRequest",
      "ListTaskPushNotificationConfigsResponse",
    ),
    GetExtendedAgentCard: row("GetExtendedAgentCard", "GetExtendedAgentCardRequest", "AgentCard"),
  },
  "0.3": {
    ...COMMON,
    SubscribeToTask: row("TaskSubscription", "TaskSubscriptionRequest", "StreamResponse"),
    CreateTaskPushNotificationConfig: row(
      "CreateTaskPushNotificationConfig",
      "CreateTaskPushNotificationConfigRequest",
      "TaskPushNotificationConfig",
    ),
    ListTaskPushNotificationConfigs: row(
      "ListTaskPushNotificationConfig",
      "ListTaskPushNotificationConfigRequest",
      "ListTaskPushNotificationConfigResponse",
    ),
    GetExtendedAgentCard: row("GetAgentCard", "GetAgentCardRequest", "AgentCard"),
  },
};
