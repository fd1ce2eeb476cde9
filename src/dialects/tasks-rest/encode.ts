/** Outcomes as the JSON of this dialect: whole answers here, streams frame by frame below. */

import { LogEntry, type TaskEvent } from "../../model/event.ts";
import { TaskFold } from "../../model/fold.ts";
import { isObject, type JsonValue } from "../../model/json.ts";
import { type Loss, toLoss } from "../../model/loss.ts";
import type { Message } from "../../model/message.ts";
import type { AnswersByKind, StreamFrame } from "../../model/operation.ts";
import type { Artifact, Task, TaskStatus } from "../../model/task.ts";
import { withJson } from "../shared/http/map-frames.ts";
import { ArtifactIndexes, toLegacyParts } from "../shared/legacy/parts.ts";
import { encodeRole, encodeState, endsSendStream } from "../shared/legacy/states.ts";
import type { SupportedOperation } from "./decode.ts";
import { LOSSES } from "./losses.ts";

/** The model as the JSON of this dialect. `JSON.stringify` leaves out members that are undefined. */

function acceptsData(data: JsonValue): boolean {
  return isObject(data);
}

export function toMessage(message: Message, path: string, losses: Loss[]): object {
  const { contextId, extensions, messageId, metadata, parts, referenceTaskIds, role, taskId } = message;
  if (extensions !== undefined) losses.push(toLoss(LOSSES.messageExtensions, `${path}.extensions`));
  if (referenceTaskIds !== undefined) losses.push(toLoss(LOSSES.referenceTaskIds, `${path}.referenceTaskIds`));
  return {
    role: encodeRole(role),
    parts: toLegacyParts(parts, path, losses, acceptsData),
    messageId,
    taskId,
    contextId,
    metadata,
  };
}

function toStatus({ message, state, timestamp }: TaskStatus, path: string, losses: Loss[]): object {
  return {
    state: encodeState(state, path, losses),
    message: message === undefined ? undefined : toMessage(message, `${path}.message`, losses),
    timestamp,
  };
}

/** How a chunk of an artifact relates to what came before it. */
interface ChunkMarks {
  readonly append?: boolean;
  readonly lastChunk?: boolean;
}

const NO_MARKS: ChunkMarks = {};

function toArtifact(
  artifact: Artifact,
  index: number,
  path: string,
  losses: Loss[],
  { append, lastChunk }: ChunkMarks = NO_MARKS,
): object {
  const { artifactId, description, extensions, metadata, name, parts } = artifact;
  if (extensions !== undefined) losses.push(toLoss(LOSSES.artifactExtensions, `${path}.extensions`));
  return {
    artifactId,
    name,
    description,
    parts: toLegacyParts(parts, path, losses, acceptsData),
    index,
    append,
    lastChunk,
    metadata,
  };
}

/** Readers of this dialect expect both lists, also where there is nothing in them. */
export function toTask(
  { artifacts = [], contextId, history = [], id, metadata, status }: Task,
  losses: Loss[],
): object {
  return {
    id,
    contextId,
    status: toStatus(status, "task.status", losses),
    artifacts: artifacts.map((artifact, index) => toArtifact(artifact, index, `task.artifacts[${index}]`, losses)),
    history: history.map((message, index) => toMessage(message, `task.history[${index}]`, losses)),
    metadata,
  };
}

/** The completed task that an answer without a task is told as; it is named after the answer. */
function toCompletedTask(message: Message, asked: Message | undefined, losses: Loss[]): Task {
  losses.push(toLoss(LOSSES.messageAsTask, "message"));
  return {
    id: message.taskId ?? message.messageId,
    contextId: message.contextId ?? asked?.contextId ?? "",
    status: { state: "TASK_STATE_COMPLETED", message },
    ...(asked === undefined ? undefined : { history: [asked] }),
  };
}

type Answers = AnswersByKind<SupportedOperation>;
export type Answer = Answers[SupportedOperation["kind"]];
type UnaryAnswer = Exclude<Answer, { readonly kind: "stream" | "subscribe" }>;

export function encodeAnswer(answer: UnaryAnswer, losses: Loss[]): string {
  if (answer.kind !== "send") return JSON.stringify(toTask(answer.outcome, losses));
  const { operation, outcome } = answer;
  const task = "task" in outcome ? outcome.task : toCompletedTask(outcome.message, operation.message, losses);
  return JSON.stringify(toTask(task, losses));
}

/** One stream. A change of state is told by the whole task, which takes keeping the task. */
export class StreamEncoder {
  readonly #operation: Answers["stream" | "subscribe"]["operation"];
  readonly #report: (losses: readonly Loss[]) => void;
  readonly #indexes = new ArtifactIndexes();
  #fold = new TaskFold();

  constructor(operation: Answers["stream" | "subscribe"]["operation"], report: (losses: readonly Loss[]) => void) {
    this.#operation = operation;
    this.#report = report;
  }

  readonly encode = (frame: StreamFrame, into: StreamFrame[]): boolean => {
    const { event } = frame;
    const losses: Loss[] = [];
    if ("artifactUpdate" in event) {
      this.#follow(event, frame);
      const { artifact, contextId, metadata, taskId } = event.artifactUpdate;
      const said = toArtifact(
        artifact,
        this.#indexes.of(artifact.artifactId),
        "artifact",
        losses,
        event.artifactUpdate,
      );
      into.push(withJson(frame, JSON.stringify({ taskId, contextId, artifact: said, metadata })));
    } else if ("statusUpdate" in event) {
      this.#follow(event, frame);
      if (event.statusUpdate.metadata !== undefined)
        losses.push(toLoss(LOSSES.statusMetadata, "statusUpdate.metadata"));
      into.push(withJson(frame, JSON.stringify({ task: toTask(this.#fold.toTask(), losses) })));
    } else if ("task" in event) {
      this.#fold = TaskFold.from(event.task, 0);
      this.#indexes.seed(event.task.artifacts);
      into.push(withJson(frame, JSON.stringify({ task: toTask(event.task, losses) })));
    } else {
      const asked = this.#operation.kind === "stream" ? this.#operation.message : undefined;
      into.push(
        withJson(frame, JSON.stringify({ task: toTask(toCompletedTask(event.message, asked, losses), losses) })),
      );
    }
    if (losses.length > 0) this.#report(losses);
    return (
      this.#operation.kind === "stream" && "statusUpdate" in event && endsSendStream(event.statusUpdate.status.state)
    );
  };

  /** What is told is shown as it was told, also where the model's rules would not have it so. */
  #follow(event: TaskUpdate, frame: StreamFrame): void {
    const refusal = this.#fold.refusal(event);
    if (refusal !== undefined) {
      const { contextId, taskId } = "statusUpdate" in event ? event.statusUpdate : event.artifactUpdate;
      const known = refusal === "no-task-yet" || refusal === "other-task" ? undefined : this.#fold.toTask();
      this.#fold = TaskFold.from({ ...known, id: taskId, contextId, status: INITIAL_STATUS }, 0);
    }
    // The caller's own messages are in the history, but no event shows them.
    const received = frame instanceof LogEntry ? frame.received : undefined;
    this.#fold.apply(LogEntry.of(this.#fold.number + 1, event, received));
  }
}

type TaskUpdate = Exclude<TaskEvent, { readonly task: Task }>;

const INITIAL_STATUS: TaskStatus = { state: "TASK_STATE_SUBMITTED" };
