/** Requests of JSON-RPC to operations. */
import { ProtocolError } from "../../model/errors.ts";
import type { Lossy } from "../../model/loss.ts";
import type { Operation, OperationKind, SendConfiguration, SendInput } from "../../model/operation.ts";
import { cursorIn } from "../shared/request-headers.ts";
import { LOSSES } from "./losses.ts";
import {
  finish,
  flagIn,
  lengthIn,
  type Members,
  membersOf,
  requiredTextIn,
  ShapeReading,
  structIn,
  textIn,
  textsIn,
  within,
} from "./members.ts";
import { unnamedConfig } from "./push-names.ts";
import { readMessage, readPushConfig } from "./read.ts";

/** The last one is how 0.2.6 named the one before. */
export const METHODS = {
  "message/send": "send",
  "message/stream": "stream",
  "tasks/get": "get",
  "tasks/cancel": "cancel",
  "tasks/resubscribe": "subscribe",
  "tasks/pushNotificationConfig/set": "push-create",
  "tasks/pushNotificationConfig/get": "push-get",
  "tasks/pushNotificationConfig/list": "push-list",
  "tasks/pushNotificationConfig/delete": "push-delete",
  "agent/getAuthenticatedExtendedCard": "extended-card",
  "agent/authenticatedExtendedCard": "extended-card",
} as const satisfies Record<string, OperationKind>;

export type ServedKind = (typeof METHODS)[keyof typeof METHODS];

const KIND_OF_METHOD: ReadonlyMap<string, ServedKind> = new Map(Object.entries(METHODS));

export function kindOfMethod(method: string): ServedKind {
  const kind = KIND_OF_METHOD.get(method);
  if (kind === undefined) {
    throw new ProtocolError("METHOD_NOT_FOUND", "There is no such method in A2A 0.3.", { metadata: { method } });
  }
  return kind;
}

/** `push-first`: the config of a task that had only one, which earlier releases ask for without its id. */
export type Asked =
  | Exclude<Operation, { readonly kind: "list" }>
  | { readonly kind: "push-first"; readonly taskId: string };

export interface RequestOptions {
  readonly maxItems: number;
  /** What the caller says it has of a stream; only subscribing looks at it. */
  readonly lastEventId: string | undefined;
}

export function decodeRequest(kind: ServedKind, params: unknown, options: RequestOptions): Lossy<Asked> {
  const reading = new ShapeReading({ maxItems: options.maxItems });
  const members = membersOf(params, reading);
  return finish(readRequest(kind, members, reading, options.lastEventId), reading, "INVALID_PARAMS");
}

function readRequest(
  kind: ServedKind,
  members: Members,
  reading: ShapeReading,
  lastEventId: string | undefined,
): Asked {
  switch (kind) {
    case "send":
    case "stream":
      return { kind, ...readSend(members, reading) };
    case "get": {
      loseMetadata(kind, members, reading);
      const historyLength = lengthIn(members, "historyLength", reading);
      const id = requiredTextIn(members, "id", reading);
      return historyLength === undefined ? { kind, id } : { kind, id, historyLength };
    }
    case "cancel": {
      const metadata = structIn(members, "metadata", reading);
      const id = requiredTextIn(members, "id", reading);
      return metadata === undefined ? { kind, id } : { kind, id, metadata };
    }
    case "subscribe": {
      loseMetadata(kind, members, reading);
      const id = requiredTextIn(members, "id", reading);
      const after = cursorIn(lastEventId);
      return after === undefined ? { kind, id } : { kind, id, after };
    }
    case "push-create": {
      loseMetadata(kind, members, reading);
      const taskId = requiredTextIn(members, "taskId", reading);
      const config = within(members, "pushNotificationConfig", reading, readPushConfig);
      if (config === undefined) reading.violateMember("pushNotificationConfig", "is required");
      return { kind, taskId, config: { url: "", id: unnamedConfig(taskId), ...config, taskId } };
    }
    case "push-get": {
      loseMetadata(kind, members, reading);
      const taskId = requiredTextIn(members, "id", reading);
      const id = textIn(members, "pushNotificationConfigId", reading);
      return id === undefined ? { kind: "push-first", taskId } : { kind, taskId, id };
    }
    case "push-list":
      loseMetadata(kind, members, reading);
      return { kind, taskId: requiredTextIn(members, "id", reading) };
    case "push-delete": {
      loseMetadata(kind, members, reading);
      const taskId = requiredTextIn(members, "id", reading);
      return { kind, taskId, id: requiredTextIn(members, "pushNotificationConfigId", reading) };
    }
    case "extended-card":
      return { kind };
  }
}

function readSend(members: Members, reading: ShapeReading): SendInput {
  const message = within(members, "message", reading, readMessage);
  const configuration = within(members, "configuration", reading, readConfiguration);
  const metadata = structIn(members, "metadata", reading);
  if (message === undefined) reading.violateMember("message", "is required");
  return {
    message: message ?? { messageId: "", role: "ROLE_USER", parts: [] },
    ...(configuration !== undefined && { configuration }),
    ...(metadata !== undefined && { metadata }),
  };
}

/** Undefined when it says nothing beyond what goes without saying. */
function readConfiguration(value: unknown, reading: ShapeReading): SendConfiguration | undefined {
  const members = membersOf(value, reading);
  const configuration: { -readonly [Member in keyof SendConfiguration]: SendConfiguration[Member] } = {};
  const acceptedOutputModes = textsIn(members, "acceptedOutputModes", reading);
  const push = within(members, "pushNotificationConfig", reading, readPushConfig);
  const historyLength = lengthIn(members, "historyLength", reading);
  if (acceptedOutputModes !== undefined) configuration.acceptedOutputModes = acceptedOutputModes;
  if (push !== undefined) configuration.taskPushNotificationConfig = push;
  if (historyLength !== undefined) configuration.historyLength = historyLength;
  // 0.3 leaves open what absence means; its servers all waited.
  if (flagIn(members, "blocking", reading) === false) configuration.returnImmediately = true;
  return Object.keys(configuration).length === 0 ? undefined : configuration;
}

function loseMetadata(kind: OperationKind, members: Members, reading: ShapeReading): void {
  const metadata = structIn(members, "metadata", reading);
  if (metadata !== undefined && Object.keys(metadata).length > 0) {
    reading.lose(LOSSES.requestMetadata, `${kind}.metadata`);
  }
}
