import { Message, SendMessageRequest, StreamResponse, Task, TaskPushNotificationConfig } from "@a2a-js/sdk";
import {
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  type RequestOptions,
  RestTransportFactory,
} from "@a2a-js/sdk/client";
import { GrpcTransportFactory } from "@a2a-js/sdk/client/grpc";
import * as errors from "@a2a-js/sdk/errors";
import type { StreamEvent } from "../../../src/core/model/event.ts";
import type { TaskPushNotificationConfig as ModelPushConfig, SendOutcome } from "../../../src/core/model/operation.ts";
import type { Task as ModelTask } from "../../../src/core/model/task.ts";
import { CREDENTIALS, type Credentials, codeByClass, type Driver, factsOf } from "../driver.ts";

/**
 * The client of the 1.0 SDK. For 0.3 it is shown the card an old agent would have, which makes it use its layer for old
 * agents; left to itself it takes 1.0 wherever a card offers it.
 */
export async function driveSdkV1(
  url: string,
  binding: string,
  version: string,
  credentials: Credentials = CREDENTIALS,
): Promise<Driver> {
  const options: RequestOptions = { serviceParameters: { ...credentials } };
  const legacyCompat = { enabled: version === "0.3" };
  const fetchImpl: typeof fetch = (input, init) =>
    fetch(input, { ...init, headers: { ...init?.headers, "A2A-Version": version } });
  const factory = new ClientFactory({
    transports: [
      new JsonRpcTransportFactory({ legacyCompat }),
      new RestTransportFactory({ legacyCompat }),
      new GrpcTransportFactory({ legacyCompat }),
    ],
    preferredTransports: [binding],
    cardResolver: new DefaultAgentCardResolver({ legacyCompat, fetchImpl }),
  });
  const client = await factory.createFromUrl(url);
  // The public card, before the client replaces it by the extended one: it keeps it where types do not show it.
  const card = await new DefaultAgentCardResolver({ legacyCompat, fetchImpl }).resolve(url);
  return {
    card: factsOf(card),
    speaks: `${client.transport.protocolName} ${client.transport.protocolVersion}`,
    async send(sending) {
      const answer = await client.sendMessage(SendMessageRequest.fromJSON(sending), options);
      return "messageId" in answer
        ? ({ message: Message.toJSON(answer) } as SendOutcome)
        : ({ task: Task.toJSON(answer) } as SendOutcome);
    },
    stream: (sending) => events(client.sendMessageStream(SendMessageRequest.fromJSON(sending), options)),
    async get(id, historyLength) {
      return toTask(await client.getTask({ tenant: "", id, historyLength }, options));
    },
    async list(contextId) {
      const page = await client.listTasks(
        { tenant: "", contextId, status: 0, pageSize: 10, pageToken: "", statusTimestampAfter: undefined },
        options,
      );
      return page.tasks.map(toTask);
    },
    cancel: async (id) => toTask(await client.cancelTask({ tenant: "", id, metadata: undefined }, options)),
    subscribe: (id) => events(client.resubscribeTask({ tenant: "", id }, options)),
    async createPushConfig(taskId, config) {
      const sent = TaskPushNotificationConfig.fromJSON({ ...config, taskId });
      return toConfig(await client.createTaskPushNotificationConfig(sent, options));
    },
    async getPushConfig(taskId, id) {
      return toConfig(await client.getTaskPushNotificationConfig({ tenant: "", taskId, id }, options));
    },
    async listPushConfigs(taskId) {
      const query = { tenant: "", taskId, pageSize: 0, pageToken: "" };
      return (await client.listTaskPushNotificationConfig(query, options)).configs.map(toConfig);
    },
    deletePushConfig: (taskId, id) => client.deleteTaskPushNotificationConfig({ tenant: "", taskId, id }, options),
    extendedCard: async () => factsOf(await client.getAgentCard(options)),
    codeOf: (error) => codeByClass(error, CLASSES) ?? String(error),
  };
}

const CLASSES = {
  TASK_NOT_FOUND: errors.TaskNotFoundError,
  TASK_NOT_CANCELABLE: errors.TaskNotCancelableError,
  PUSH_NOTIFICATION_NOT_SUPPORTED: errors.PushNotificationNotSupportedError,
  UNSUPPORTED_OPERATION: errors.UnsupportedOperationError,
  CONTENT_TYPE_NOT_SUPPORTED: errors.ContentTypeNotSupportedError,
  INVALID_AGENT_RESPONSE: errors.InvalidAgentResponseError,
  EXTENDED_AGENT_CARD_NOT_CONFIGURED: errors.ExtendedAgentCardNotConfiguredError,
  EXTENSION_SUPPORT_REQUIRED: errors.ExtensionSupportRequiredError,
  VERSION_NOT_SUPPORTED: errors.VersionNotSupportedError,
  INVALID_PARAMS: errors.RequestMalformedError,
};

async function* events(stream: AsyncIterable<StreamResponse>): AsyncGenerator<StreamEvent> {
  for await (const event of stream) yield StreamResponse.toJSON(event) as StreamEvent;
}

function toTask(task: Task): ModelTask {
  return Task.toJSON(task) as ModelTask;
}

function toConfig(config: TaskPushNotificationConfig): ModelPushConfig {
  return TaskPushNotificationConfig.toJSON(config) as ModelPushConfig;
}
