/** Requests of JSON-RPC to operations. */

import { ProtocolError } from "../../../model/errors.ts";
import { type Lossy, NO_LOSSES } from "../../../model/loss.ts";
import type {
  Operation,
  OperationKind,
  Outcomes,
  SendConfiguration,
  SendInput,
  StreamFrame,
  TaskPushNotificationConfig,
} from "../../../model/operation.ts";
import { parseLastEventId } from "../../shared/http/requests.ts";
import { createFrame, invalidResponse } from "../../shared/responses.ts";
import { LOSSES } from "../losses.ts";
import { defaultPushConfigId } from "../resource-names.ts";
import { fromWireCard } from "./card.ts";
import {
  finishReading,
  flagIn,
  JsonReading,
  lengthIn,
  type Members,
  membersOf,
  readList,
  readMember,
  requiredTextIn,
  structIn,
  textIn,
  textsIn,
} from "./members.ts";
import { readEvent, readMessage, readPushConfig, readTask } from "./read.ts";

/** What comes back from a peer over JSON-RPC, read with good will. */

type UnaryKind = Exclude<OperationKind, "stream" | "subscribe">;

function read<T>(value: unknown, reader: (value: unknown, reading: JsonReading) => T): Lossy<T> {
  const reading = new JsonReading({ tolerant: true });
  try {
    return finishReading(reader(value, reading), reading, "INVALID_AGENT_RESPONSE");
  } catch (error) {
    if (!ProtocolError.is(error)) throw error;
    throw new ProtocolError("INVALID_AGENT_RESPONSE", `The agent's answer cannot be read: ${error.message}.`, {
      cause: error,
      ...(error.violations === undefined ? {} : { violations: error.violations }),
    });
  }
}

function readTaskPushConfig(value: unknown, reading: JsonReading): TaskPushNotificationConfig {
  const members = membersOf(value, reading);
  const config = readMember(members, "pushNotificationConfig", reading, readPushConfig);
  if (config === undefined) reading.violateMember("pushNotificationConfig", "is required");
  const taskId = textIn(members, "taskId", reading);
  return { url: "", ...config, ...(taskId !== undefined && { taskId }) };
}

type Readers = { readonly [Kind in UnaryKind]: (value: unknown) => Lossy<Outcomes[Kind]> };

const READERS: Readers = {
  send(value) {
    const { value: event, losses } = read(value, readEvent);
    if ("task" in event || "message" in event) return { value: event, losses };
    throw invalidResponse("it is an update where a task or a message belongs");
  },
  get: (value) => read(value, readTask),
  cancel: (value) => read(value, readTask),
  list: () => {
    throw invalidResponse("0.3 has no lists of tasks");
  },
  "push-create": (value) => read(value, readTaskPushConfig),
  "push-get": (value) => read(value, readTaskPushConfig),
  "push-list"(value) {
    // Some servers say nothing instead of an empty list.
    const { value: configs, losses } = read(value ?? [], (list, reading) =>
      readList(list, reading, readTaskPushConfig),
    );
    return { value: { configs, nextPageToken: "" }, losses };
  },
  // Success is all there is to say; servers put null, {} or nothing.
  "push-delete": () => ({ value: undefined, losses: NO_LOSSES }),
  "extended-card"(value) {
    const card = fromWireCard(value, undefined);
    if (card === undefined) throw invalidResponse("it is no agent card");
    return card;
  },
};

export function decodeOutcome<Kind extends UnaryKind>(kind: Kind, value: unknown): Lossy<Outcomes[Kind]> {
  return READERS[kind](value);
}

export function decodeFrame(value: unknown, id: string | undefined): Lossy<StreamFrame> {
  const { value: event, losses } = read(value, readEvent);
  return { value: createFrame(event, id), losses };
}

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

type SupportedKind = (typeof METHODS)[keyof typeof METHODS];

const KIND_OF_METHOD: ReadonlyMap<string, SupportedKind> = new Map(Object.entries(METHODS));

export function kindOfMethod(method: string): SupportedKind {
  const kind = KIND_OF_METHOD.get(method);
  if (kind === undefined) {
    throw new ProtocolError("METHOD_NOT_FOUND", "There is no such method in A2A 0.3.", { metadata: { method } });
  }
  return kind;
}

/** `push-first`: the config of a task that had only one, which earlier releases ask for without its id. */
export type RequestedOperation =
  | Exclude<Operation, { readonly kind: "list" }>
  | { readonly kind: "push-first"; readonly taskId: string };

interface RequestOptions {
  readonly maxItems: number;
  /** What the caller says it has of a stream; only subscribing looks at it. */
  readonly lastEventId: string | undefined;
}

export function decodeRequest(
  kind: SupportedKind,
  params: unknown,
  options: RequestOptions,
): Lossy<RequestedOperation> {
  const reading = new JsonReading({ maxItems: options.maxItems });
  const members = membersOf(params, reading);
  return finishReading(readRequest(kind, members, reading, options.lastEventId), reading, "INVALID_PARAMS");
}

function readRequest(
  kind: SupportedKind,
  members: Members,
  reading: JsonReading,
  lastEventId: string | undefined,
): RequestedOperation {
  switch (kind) {
    case "send":
    case "stream":
      return { kind, ...readSend(members, reading) };
    case "get": {
      reportLostMetadata(kind, members, reading);
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
      reportLostMetadata(kind, members, reading);
      const id = requiredTextIn(members, "id", reading);
      const after = parseLastEventId(lastEventId);
      return after === undefined ? { kind, id } : { kind, id, after };
    }
    case "push-create": {
      reportLostMetadata(kind, members, reading);
      const taskId = requiredTextIn(members, "taskId", reading);
      const config = readMember(members, "pushNotificationConfig", reading, readPushConfig);
      if (config === undefined) reading.violateMember("pushNotificationConfig", "is required");
      return { kind, taskId, config: { url: "", id: defaultPushConfigId(taskId), ...config, taskId } };
    }
    case "push-get": {
      reportLostMetadata(kind, members, reading);
      const taskId = requiredTextIn(members, "id", reading);
      const id = textIn(members, "pushNotificationConfigId", reading);
      return id === undefined ? { kind: "push-first", taskId } : { kind, taskId, id };
    }
    case "push-list":
      reportLostMetadata(kind, members, reading);
      return { kind, taskId: requiredTextIn(members, "id", reading) };
    case "push-delete": {
      reportLostMetadata(kind, members, reading);
      const taskId = requiredTextIn(members, "id", reading);
      return { kind, taskId, id: requiredTextIn(members, "pushNotificationConfigId", reading) };
    }
    case "extended-card":
      return { kind };
  }
}

function readSend(members: Members, reading: JsonReading): SendInput {
  const message = readMember(members, "message", reading, readMessage);
  const configuration = readMember(members, "configuration", reading, readConfiguration);
  const metadata = structIn(members, "metadata", reading);
  if (message === undefined) reading.violateMember("message", "is required");
  return {
    message: message ?? { messageId: "", role: "ROLE_USER", parts: [] },
    ...(configuration !== undefined && { configuration }),
    ...(metadata !== undefined && { metadata }),
  };
}

/** Undefined when it says nothing beyond what goes without saying. */
function readConfiguration(value: unknown, reading: JsonReading): SendConfiguration | undefined {
  const members = membersOf(value, reading);
  const configuration: { -readonly [Member in keyof SendConfiguration]: SendConfiguration[Member] } = {};
  const acceptedOutputModes = textsIn(members, "acceptedOutputModes", reading);
  const push = readMember(members, "pushNotificationConfig", reading, readPushConfig);
  const historyLength = lengthIn(members, "historyLength", reading);
  if (acceptedOutputModes !== undefined) configuration.acceptedOutputModes = acceptedOutputModes;
  if (push !== undefined) configuration.taskPushNotificationConfig = push;
  if (historyLength !== undefined) configuration.historyLength = historyLength;
  // 0.3 leaves open what absence means; its servers all waited.
  if (flagIn(members, "blocking", reading) === false) configuration.returnImmediately = true;
  return Object.keys(configuration).length === 0 ? undefined : configuration;
}

function reportLostMetadata(kind: OperationKind, members: Members, reading: JsonReading): void {
  const metadata = structIn(members, "metadata", reading);
  if (metadata !== undefined && Object.keys(metadata).length > 0) {
    reading.lose(LOSSES.requestMetadata, `${kind}.metadata`);
  }
}
