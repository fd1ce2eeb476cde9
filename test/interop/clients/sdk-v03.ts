import type { MessageSendParams, TaskPushNotificationConfig as V03PushConfig } from "a2a-js-sdk-0.3";
import {
  AgentCardResolver,
  AuthenticatedExtendedCardNotConfiguredError,
  ClientFactory,
  ContentTypeNotSupportedError,
  InvalidAgentResponseError,
  JsonRpcTransportFactory,
  PushNotificationNotSupportedError,
  type RequestOptions,
  RestTransportFactory,
  TaskNotCancelableError,
  TaskNotFoundError,
  UnsupportedOperationError,
} from "a2a-js-sdk-0.3/client";
import { GrpcTransportFactory } from "a2a-js-sdk-0.3/client/grpc";
import type { StreamEvent } from "../../../src/core/model/event.ts";
import type { TaskPushNotificationConfig } from "../../../src/core/model/operation.ts";
import { CREDENTIALS, type Credentials, codeByClass, type Driver, factsOf, type Sending } from "../driver.ts";
import { fromV03Event, fromV03Message, fromV03Task, toV03Message, type V03Event } from "../v03-conversions.ts";

/** The client of the last 0.3 SDK, which names no version and knows no card but its own. */
export async function driveSdkV03(
  url: string,
  binding: string,
  _version: string,
  credentials: Credentials = CREDENTIALS,
): Promise<Driver> {
  const options: RequestOptions = { serviceParameters: { ...credentials } };
  const factory = new ClientFactory({
    transports: [new JsonRpcTransportFactory(), new RestTransportFactory(), new GrpcTransportFactory()],
    preferredTransports: [binding],
  });
  const card = await AgentCardResolver.default.resolve(url);
  const client = await factory.createFromAgentCard(card);
  return {
    card: factsOf(card),
    speaks: `${binding} ${/^\d+\.\d+/.exec(card.protocolVersion)?.[0]}`,
    async send(sending) {
      const answer = await client.sendMessage(toParams(sending), options);
      return answer.kind === "message" ? { message: fromV03Message(answer) } : { task: fromV03Task(answer) };
    },
    stream: (sending) => events(client.sendMessageStream(toParams(sending), options)),
    get: async (id, historyLength) =>
      fromV03Task(await client.getTask({ id, ...(historyLength === undefined ? {} : { historyLength }) }, options)),
    cancel: async (id) => fromV03Task(await client.cancelTask({ id }, options)),
    subscribe: (id) => events(client.resubscribeTask({ id }, options)),
    createPushConfig: async (taskId, config) =>
      fromConfig(
        await client.setTaskPushNotificationConfig({ taskId, pushNotificationConfig: toConfig(config) }, options),
      ),
    async getPushConfig(taskId, id) {
      const query = { id: taskId, pushNotificationConfigId: id };
      return fromConfig(await client.getTaskPushNotificationConfig(query, options));
    },
    listPushConfigs: async (taskId) =>
      (await client.listTaskPushNotificationConfig({ id: taskId }, options)).map(fromConfig),
    deletePushConfig: (taskId, id) =>
      client.deleteTaskPushNotificationConfig({ id: taskId, pushNotificationConfigId: id }, options),
    extendedCard: async () => factsOf(await client.getAgentCard(options)),
    codeOf,
  };
}

const CLASSES = {
  TASK_NOT_FOUND: TaskNotFoundError,
  TASK_NOT_CANCELABLE: TaskNotCancelableError,
  PUSH_NOTIFICATION_NOT_SUPPORTED: PushNotificationNotSupportedError,
  UNSUPPORTED_OPERATION: UnsupportedOperationError,
  CONTENT_TYPE_NOT_SUPPORTED: ContentTypeNotSupportedError,
  INVALID_AGENT_RESPONSE: InvalidAgentResponseError,
  EXTENDED_AGENT_CARD_NOT_CONFIGURED: AuthenticatedExtendedCardNotConfiguredError,
};

function codeOf(error: unknown): string {
  const code = codeByClass(error, CLASSES);
  if (code !== undefined || !(error instanceof Error)) return code ?? String(error);
  // Without a class of its own, an error still tells the number it was sent with.
  const [, number] = /\(Code: (-?\d+)\)|^GRPC error for \w+! (\d+) /.exec(error.message)?.filter(Boolean) ?? [];
  return number === undefined ? String(error) : `untyped ${number}`;
}

function toParams({ configuration, message }: Sending): MessageSendParams {
  const params: MessageSendParams = { message: toV03Message(message) };
  if (configuration === undefined) return params;
  const { historyLength, returnImmediately, taskPushNotificationConfig } = configuration;
  params.configuration = {
    ...(historyLength === undefined ? {} : { historyLength }),
    ...(returnImmediately === undefined ? {} : { blocking: !returnImmediately }),
    ...(taskPushNotificationConfig === undefined
      ? {}
      : { pushNotificationConfig: toConfig(taskPushNotificationConfig) }),
  };
  return params;
}

async function* events(stream: AsyncIterable<V03Event>): AsyncGenerator<StreamEvent> {
  for await (const event of stream) yield fromV03Event(event);
}

function toConfig({ authentication, id, token, url }: TaskPushNotificationConfig) {
  return {
    url,
    ...(id === undefined ? {} : { id }),
    ...(token === undefined ? {} : { token }),
    ...(authentication === undefined
      ? {}
      : {
          authentication: {
            schemes: [authentication.scheme],
            ...(authentication.credentials === undefined ? {} : { credentials: authentication.credentials }),
          },
        }),
  };
}

function fromConfig({ pushNotificationConfig, taskId }: V03PushConfig): TaskPushNotificationConfig {
  const { authentication, id, token, url } = pushNotificationConfig;
  const [scheme] = authentication?.schemes ?? [];
  return {
    taskId,
    url,
    ...(id ? { id } : {}),
    ...(token ? { token } : {}),
    ...(scheme === undefined
      ? {}
      : {
          authentication: {
            scheme,
            ...(authentication?.credentials ? { credentials: authentication.credentials } : {}),
          },
        }),
  };
}
