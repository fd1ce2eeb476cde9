/** Decodes JSON-RPC requests, and leniently the responses of peers. */

import { omitUndefined } from "../../../model/json.ts";
import { type Lossy, NO_LOSSES } from "../../../model/loss.ts";
import type {
  Operation,
  OperationKind,
  Outcomes,
  SendConfiguration,
  StreamFrame,
  TaskPushNotificationConfig,
} from "../../../model/operation.ts";
import { compileMethods, parseLastEventId } from "../../shared/http/requests.ts";
import { type Members, readRequest, readResponse } from "../../shared/json-members.ts";
import { readPushConfig as readAnyPushConfig } from "../../shared/legacy/decode.ts";
import { createFrame, invalidResponse } from "../../shared/responses.ts";
import { LOSSES } from "../losses.ts";
import { defaultPushConfigId } from "../resource-names.ts";
import { fromWireCard } from "./card.ts";
import { readEvent, readMessage, readTask } from "./read.ts";

type UnaryKind = Exclude<OperationKind, "stream" | "subscribe">;

function read<T>(value: unknown, reader: (members: Members) => T): Lossy<T> {
  return readResponse(value, reader, { lenient: true, oneSpelling: true });
}

function readTaskPushConfig(members: Members): TaskPushNotificationConfig {
  const config = members.requiredObject("pushNotificationConfig", readPushConfig);
  const taskId = members.text("taskId");
  return taskId === undefined ? config : { ...config, taskId };
}

type Readers = { readonly [Kind in UnaryKind]: (value: unknown) => Lossy<Outcomes[Kind]> };

const READERS: Readers = {
  send(value) {
    const { value: event, losses } = read(value, readEvent);
    if (event === undefined) throw invalidResponse("it is neither a task nor a message");
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
    // The result is the list itself; some servers omit an empty one.
    return read({ configs: value }, (members) => ({
      configs: members.list("configs", readTaskPushConfig) ?? [],
      nextPageToken: "",
    }));
  },
  // The result carries no data; servers send null, {} or nothing.
  "push-delete": () => ({ value: undefined, losses: NO_LOSSES }),
  "extended-card"(value) {
    const card = fromWireCard(value, undefined);
    if (card === undefined) throw invalidResponse("it is not an agent card");
    return card;
  },
};

export function decodeOutcome<Kind extends UnaryKind>(kind: Kind, value: unknown): Lossy<Outcomes[Kind]> {
  return READERS[kind](value);
}

export function decodeFrame(value: unknown, id: string | undefined): Lossy<StreamFrame | undefined> {
  const { value: event, losses } = read(value, readEvent);
  return { value: event && createFrame(event, id), losses };
}

/** The last one is the 0.2.6 name of the one before it. */
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

export type SupportedKind = (typeof METHODS)[keyof typeof METHODS];

export const { kindOfMethod, methodOf } = compileMethods("0.3", METHODS);

/** `push-first`: the only config of a task, which earlier releases request without its id. */
export type RequestedOperation =
  | Exclude<Operation, { readonly kind: "list" }>
  | { readonly kind: "push-first"; readonly taskId: string };

interface RequestOptions {
  readonly maxItems: number;
  /** The last event that the caller has received; only `subscribe` uses it. */
  readonly lastEventId: string | undefined;
}

export function decodeRequest(
  kind: SupportedKind,
  params: unknown,
  options: RequestOptions,
): Lossy<RequestedOperation> {
  return readRequest(params, { maxItems: options.maxItems, oneSpelling: true }, (members) =>
    readOperation(kind, members, options.lastEventId),
  );
}

function readOperation(kind: SupportedKind, members: Members, lastEventId: string | undefined): RequestedOperation {
  switch (kind) {
    case "send":
    case "stream":
      return {
        kind,
        message: members.requiredObject("message", readMessage),
        configuration: members.object("configuration", readConfiguration),
        metadata: members.struct("metadata"),
      };
    case "cancel":
      return { kind, id: members.requiredText("id"), metadata: members.struct("metadata") };
    case "extended-card":
      return { kind };
    default:
      reportLostMetadata(kind, members);
      return readQuery(kind, members, lastEventId);
  }
}

function readQuery(
  kind: Exclude<SupportedKind, "send" | "stream" | "cancel" | "extended-card">,
  members: Members,
  lastEventId: string | undefined,
): RequestedOperation {
  if (kind === "push-create") {
    const taskId = members.requiredText("taskId");
    const config = members.requiredObject("pushNotificationConfig", readPushConfig);
    return { kind, taskId, config: { id: defaultPushConfigId(taskId), ...config, taskId } };
  }
  const id = members.requiredText("id");
  switch (kind) {
    case "get":
      return { kind, id, historyLength: members.count("historyLength") };
    case "subscribe":
      return { kind, id, after: parseLastEventId(lastEventId) };
    case "push-list":
      return { kind, taskId: id };
    case "push-get": {
      const configId = members.text("pushNotificationConfigId");
      return configId === undefined ? { kind: "push-first", taskId: id } : { kind, taskId: id, id: configId };
    }
    case "push-delete":
      return { kind, taskId: id, id: members.requiredText("pushNotificationConfigId") };
  }
}

function readPushConfig(members: Members): TaskPushNotificationConfig {
  return readAnyPushConfig(members, LOSSES.pushSchemes);
}

/** Undefined if every member is at its default. */
function readConfiguration(members: Members): SendConfiguration | undefined {
  const configuration = omitUndefined({
    acceptedOutputModes: members.texts("acceptedOutputModes"),
    taskPushNotificationConfig: members.object("pushNotificationConfig", readPushConfig),
    historyLength: members.count("historyLength"),
    // 0.3 does not define what absence means; its servers all waited.
    returnImmediately: members.flag("blocking") === false || undefined,
  });
  return Object.keys(configuration).length === 0 ? undefined : configuration;
}

function reportLostMetadata(kind: OperationKind, members: Members): void {
  const metadata = members.struct("metadata");
  if (metadata !== undefined && Object.keys(metadata).length > 0) {
    members.reading.lose(LOSSES.requestMetadata, `${kind}.metadata`);
  }
}
