/** Requests of this dialect as operations of the model. */

import { invalidParams } from "../../model/errors.ts";
import type { StreamEvent } from "../../model/event.ts";
import { type Lossy, NO_LOSSES } from "../../model/loss.ts";
import type { Message } from "../../model/message.ts";
import type { Operation } from "../../model/operation.ts";
import type { Artifact, Task, TaskStatus } from "../../model/task.ts";
import type { CodecTools } from "../contract.ts";
import { parseLastEventId } from "../shared/http/requests.ts";
import { type Members, readRequest } from "../shared/json-members.ts";
import { readPart } from "../shared/legacy/parts.ts";
import { readRole, readState, readTimestamp } from "../shared/legacy/states.ts";
import type { ReadOptions } from "../shared/proto/json-reading.ts";
import { deriveId } from "../shared/responses.ts";
import type { SupportedKind } from "./http-routes.ts";

/** The JSON of this dialect as the model has it. */

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** For a message that came without an id. */
type CreateMessageId = (message: Omit<Message, "messageId">) => string;

function readMessage(members: Members, name: CreateMessageId): Message {
  const message: Omit<Mutable<Message>, "messageId"> = {
    role: readRole(members),
    parts: members.requiredList("parts", readPart),
  };
  const contextId = members.text("contextId");
  const taskId = members.text("taskId");
  const metadata = members.struct("metadata");
  if (contextId !== undefined) message.contextId = contextId;
  if (taskId !== undefined) message.taskId = taskId;
  if (metadata !== undefined) message.metadata = metadata;
  return { messageId: members.text("messageId") ?? name(message), ...message };
}

function readStatus(members: Members, name: CreateMessageId): TaskStatus {
  const status: Mutable<TaskStatus> = { state: readState(members) };
  const message = members.object("message", (said) => readMessage(said, name));
  const timestamp = readTimestamp(members);
  if (message !== undefined) status.message = message;
  if (timestamp !== undefined) status.timestamp = timestamp;
  return status;
}

function readArtifact(members: Members): Artifact {
  const artifact: Mutable<Artifact> = {
    artifactId: members.text("artifactId") ?? `artifact-${members.count("index") ?? 0}`,
    parts: members.requiredList("parts", readPart),
  };
  const name = members.text("name");
  const description = members.text("description");
  const metadata = members.struct("metadata");
  if (name !== undefined) artifact.name = name;
  if (description !== undefined) artifact.description = description;
  if (metadata !== undefined) artifact.metadata = metadata;
  return artifact;
}

export function readTask(members: Members): Task {
  const id = members.requiredText("id");
  const name: CreateMessageId = (said) => deriveId(id, said);
  const task: Mutable<Task> = {
    id,
    contextId: members.text("contextId") ?? "",
    status: members.requiredObject("status", (status) => readStatus(status, name)),
  };
  const artifacts = members.list("artifacts", readArtifact) ?? [];
  const history = members.list("history", (said) => readMessage(said, name)) ?? [];
  const metadata = members.struct("metadata");
  if (artifacts.length > 0) task.artifacts = artifacts;
  if (history.length > 0) task.history = history;
  if (metadata !== undefined) task.metadata = metadata;
  return task;
}

/** A server that does not stream may answer with the bare task that a send is answered with. */
export function readStreamEvent(members: Members): StreamEvent {
  if (members.raw("artifact") !== undefined) return readArtifactFrame(members);
  if (members.raw("task") === undefined && members.raw("status") !== undefined) return { task: readTask(members) };
  return { task: members.requiredObject("task", readTask) };
}

function readArtifactFrame(members: Members): StreamEvent {
  const taskId = members.requiredText("taskId");
  const contextId = members.text("contextId") ?? "";
  const metadata = members.struct("metadata");
  return members.requiredObject("artifact", (said) => {
    const append = said.flag("append") === true;
    const lastChunk = said.flag("lastChunk") === true;
    return {
      artifactUpdate: {
        taskId,
        contextId,
        artifact: readArtifact(said),
        ...(append ? { append } : undefined),
        ...(lastChunk ? { lastChunk } : undefined),
        ...(metadata === undefined ? undefined : { metadata }),
      },
    };
  });
}

export type SupportedOperation = Extract<Operation, { readonly kind: SupportedKind }>;

/** What a request says, wherever in it. */
interface RequestFields {
  /** In the path; empty where the path names no task. */
  readonly id: string;
  readonly query: string;
  /** Undefined where there is none. */
  readonly body: unknown;
  readonly lastEventId: string | undefined;
}

export function decodeRequest(
  kind: SupportedKind,
  { body, id, lastEventId, query }: RequestFields,
  options: ReadOptions,
  ids: CodecTools["ids"],
): Lossy<SupportedOperation> {
  switch (kind) {
    case "send":
    case "stream":
      return readRequest(body ?? {}, options, (members) => readSend(kind, members, ids));
    case "get": {
      const historyLength = historyLengthIn(query);
      return lossless({ kind, id, ...(historyLength !== undefined && { historyLength }) });
    }
    case "cancel":
      return readRequest(body ?? {}, options, (members) => {
        const metadata = members.struct("metadata");
        return { kind, id, ...(metadata !== undefined && { metadata }) };
      });
    case "subscribe": {
      const after = parseLastEventId(lastEventId);
      return lossless({ kind, id, ...(after !== undefined && { after }) });
    }
  }
}

function lossless(value: SupportedOperation): Lossy<SupportedOperation> {
  return { value, losses: NO_LOSSES };
}

function readSend(kind: "send" | "stream", members: Members, ids: CodecTools["ids"]): SupportedOperation {
  const message = members.requiredObject("message", (said) => readMessage(said, ids.message));
  const metadata = members.struct("metadata");
  return { kind, message, alwaysTask: true, ...(metadata !== undefined && { metadata }) };
}

const COUNT = /^\d{1,9}$/;

function historyLengthIn(query: string): number | undefined {
  const given = query === "" ? null : new URLSearchParams(query).get("historyLength");
  if (given === null || given === "") return undefined;
  if (!COUNT.test(given)) throw invalidParams("historyLength", "must be an integer not below 0");
  return Number(given);
}
