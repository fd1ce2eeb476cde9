/** Requests of 0.1 as operations of the model. */

import { ProtocolError } from "../../model/errors.ts";
import type { StreamEvent } from "../../model/event.ts";
import { type Lossy, NO_LOSSES } from "../../model/loss.ts";
import type { Message } from "../../model/message.ts";
import type { Operation, OperationKind, SendConfiguration, TaskPushNotificationConfig } from "../../model/operation.ts";
import type { Artifact, Task, TaskStatus } from "../../model/task.ts";
import type { CodecTools } from "../contract.ts";
import { parseLastEventId } from "../shared/http/requests.ts";
import { type Members, readRequest } from "../shared/json-members.ts";
import { readPart } from "../shared/legacy/parts.ts";
import { readRole, readState, readTimestamp } from "../shared/legacy/states.ts";
import type { ReadOptions } from "../shared/proto/json-reading.ts";
import { deriveId } from "../shared/responses.ts";
import { LOSSES } from "./losses.ts";

/** The JSON of 0.1 as the model has it. */

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** Messages of 0.1 have no id. */
type CreateMessageId = (message: Omit<Message, "messageId">) => string;

function readMessage(members: Members, name: CreateMessageId): Mutable<Message> {
  const role = readRole(members);
  const parts = members.requiredList("parts", readPart);
  const metadata = members.struct("metadata");
  const message: Omit<Mutable<Message>, "messageId"> = { role, parts };
  if (metadata !== undefined) message.metadata = metadata;
  return { messageId: name(message), ...message };
}

export function readPushConfig(members: Members): TaskPushNotificationConfig {
  const config: Mutable<TaskPushNotificationConfig> = { url: members.requiredText("url") };
  const token = members.text("token");
  const authentication = members.object("authentication", readPushAuthentication);
  if (token !== undefined) config.token = token;
  if (authentication !== undefined) config.authentication = authentication;
  return config;
}

function readPushAuthentication(members: Members): TaskPushNotificationConfig["authentication"] {
  const [scheme, ...others] = members.texts("schemes") ?? [];
  const credentials = members.text("credentials");
  if (others.length > 0 || (scheme === undefined && credentials !== undefined)) {
    members.reading.lose(LOSSES.pushSchemes);
  }
  if (scheme === undefined) return undefined;
  return credentials === undefined ? { scheme } : { scheme, credentials };
}

/** Where a message stands: 0.1 leaves it to the task around it. */
interface TaskScope {
  readonly taskId: string;
  readonly contextId: string;
}

function readTaskMessage(members: Members, { contextId, taskId }: TaskScope): Message {
  const message = readMessage(members, (said) => deriveId(taskId, said));
  message.taskId = taskId;
  if (contextId !== "") message.contextId = contextId;
  return message;
}

function readStatus(members: Members, place: TaskScope): TaskStatus {
  const status: Mutable<TaskStatus> = { state: readState(members) };
  const message = members.object("message", (said) => readTaskMessage(said, place));
  const timestamp = readTimestamp(members);
  if (message !== undefined) status.message = message;
  if (timestamp !== undefined) status.timestamp = timestamp;
  return status;
}

interface ReceivedArtifact {
  readonly artifact: Mutable<Artifact>;
  readonly append: boolean;
  readonly lastChunk: boolean;
}

function readArtifact(members: Members): ReceivedArtifact {
  const artifact: Mutable<Artifact> = {
    artifactId: `artifact-${members.count("index") ?? 0}`,
    parts: members.requiredList("parts", readPart),
  };
  const name = members.text("name");
  const description = members.text("description");
  const metadata = members.struct("metadata");
  if (name !== undefined) artifact.name = name;
  if (description !== undefined) artifact.description = description;
  if (metadata !== undefined) artifact.metadata = metadata;
  return { artifact, append: members.flag("append") === true, lastChunk: members.flag("lastChunk") === true };
}

/**
 * Some servers keep the chunks they sent as artifacts of the task, and many leave the index at its default for all: a
 * chunk that says so joins the one before it, and everything else is an artifact of its own.
 */
function mergeChunks(heard: readonly ReceivedArtifact[]): Artifact[] {
  const byId = new Map<string, Mutable<Artifact>>();
  for (const { artifact, append } of heard) {
    const { artifactId } = artifact;
    const before = byId.get(artifactId);
    if (before === undefined) {
      byId.set(artifactId, artifact);
    } else if (append) {
      before.parts = [...before.parts, ...artifact.parts];
    } else {
      artifact.artifactId = unusedId(artifactId, byId);
      byId.set(artifact.artifactId, artifact);
    }
  }
  return [...byId.values()];
}

function unusedId(taken: string, ids: ReadonlyMap<string, unknown>): string {
  for (let number = 2; ; number++) if (!ids.has(`${taken}.${number}`)) return `${taken}.${number}`;
}

export function readTask(members: Members): Task {
  const place = { taskId: members.requiredText("id"), contextId: members.text("sessionId") ?? "" };
  const task: Mutable<Task> = {
    id: place.taskId,
    contextId: place.contextId,
    status: members.requiredObject("status", (status) => readStatus(status, place)),
  };
  const artifacts = members.list("artifacts", readArtifact) ?? [];
  const history = members.list("history", (said) => readTaskMessage(said, place)) ?? [];
  const metadata = members.struct("metadata");
  if (artifacts.length > 0) task.artifacts = mergeChunks(artifacts);
  if (history.length > 0) task.history = history;
  if (metadata !== undefined) task.metadata = metadata;
  return task;
}

/** Only tasks have these members; a server that answers with one instead of a stream says it all at once. */
const ONLY_IN_TASKS = ["sessionId", "artifacts", "history"];

export function readStreamEvent(members: Members): StreamEvent {
  if (ONLY_IN_TASKS.some((name) => members.raw(name) !== undefined)) return { task: readTask(members) };
  const place = { taskId: members.requiredText("id"), contextId: "" };
  const metadata = members.struct("metadata");
  const more = metadata === undefined ? undefined : { metadata };
  if (members.raw("artifact") === undefined) {
    const status = members.requiredObject("status", (said) => readStatus(said, place));
    return { statusUpdate: { ...place, status, ...more } };
  }
  const { append, artifact, lastChunk } = members.requiredObject("artifact", readArtifact);
  return {
    artifactUpdate: {
      ...place,
      artifact,
      ...(append ? { append } : undefined),
      ...(lastChunk ? { lastChunk } : undefined),
      ...more,
    },
  };
}

export const METHODS = {
  "tasks/send": "send",
  "tasks/sendSubscribe": "stream",
  "tasks/get": "get",
  "tasks/cancel": "cancel",
  "tasks/resubscribe": "subscribe",
  "tasks/pushNotification/set": "push-create",
  "tasks/pushNotification/get": "push-get",
} as const satisfies Record<string, OperationKind>;

type SupportedKind = (typeof METHODS)[keyof typeof METHODS];

const KIND_OF_METHOD: ReadonlyMap<string, SupportedKind> = new Map(Object.entries(METHODS));

export function kindOfMethod(method: string): SupportedKind {
  const kind = KIND_OF_METHOD.get(method);
  if (kind === undefined) {
    throw new ProtocolError("METHOD_NOT_FOUND", "There is no such method in A2A 0.1.", { metadata: { method } });
  }
  return kind;
}

export type SupportedOperation = Extract<Operation, { readonly kind: SupportedKind }>;

/** `lastEventId` is what the caller says it has of a stream; only subscribing looks at it. */
export function decodeRequest(
  kind: SupportedKind,
  params: unknown,
  options: ReadOptions,
  lastEventId: string | undefined,
  ids: CodecTools["ids"],
): Lossy<SupportedOperation> {
  switch (kind) {
    case "send":
    case "stream":
      return readRequest(params, options, (members) => readSend(kind, members, ids));
    case "get":
      return readRequest(params, options, (members) => {
        const id = members.requiredText("id");
        const historyLength = members.count("historyLength");
        return { kind, id, ...(historyLength !== undefined && { historyLength }) };
      });
    case "cancel":
      return readRequest(params, options, (members) => {
        const id = members.requiredText("id");
        const metadata = members.struct("metadata");
        return { kind, id, ...(metadata !== undefined && { metadata }) };
      });
    case "subscribe": {
      const { value: id } = readRequest(params, options, (members) => members.requiredText("id"));
      const after = parseLastEventId(lastEventId);
      return { value: { kind, id, ...(after !== undefined && { after }) }, losses: NO_LOSSES };
    }
    case "push-create":
      return readRequest(params, options, (members) => {
        const taskId = members.requiredText("id");
        const config = members.requiredObject("pushNotificationConfig", readPushConfig);
        return { kind, taskId, config: { id: taskId, taskId, ...config } };
      });
    case "push-get":
      return readRequest(params, options, (members) => {
        const taskId = members.requiredText("id");
        return { kind, taskId, id: taskId };
      });
  }
}

function readSend(kind: "send" | "stream", members: Members, ids: CodecTools["ids"]): SupportedOperation {
  const chosenId = members.requiredText("id");
  const sessionId = members.text("sessionId");
  const said = members.requiredObject("message", (message) => readMessage(message, ids.message));
  const message: Message = sessionId === undefined ? said : { ...said, contextId: sessionId };
  const configuration = readConfiguration(members, chosenId);
  const metadata = members.struct("metadata");
  return {
    kind,
    message,
    chosenId,
    alwaysTask: true,
    ...(configuration !== undefined && { configuration }),
    ...(metadata !== undefined && { metadata }),
  };
}

/** A task has one push config here, so that it is named after the task and setting it again replaces it. */
function readConfiguration(members: Members, taskId: string): SendConfiguration | undefined {
  const historyLength = members.count("historyLength");
  const pushConfig = members.object("pushNotification", readPushConfig);
  // Not in the specification, but the libraries of its time sent it.
  const acceptedOutputModes = members.texts("acceptedOutputModes");
  if (historyLength === undefined && pushConfig === undefined && acceptedOutputModes === undefined) return undefined;
  return {
    ...(acceptedOutputModes !== undefined && { acceptedOutputModes }),
    ...(pushConfig !== undefined && { taskPushNotificationConfig: { id: taskId, ...pushConfig } }),
    ...(historyLength !== undefined && { historyLength }),
  };
}
