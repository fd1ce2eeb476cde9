/** Outcomes as the JSON of 0.1: whole answers here, streams frame by frame below. */

import type { JsonValue } from "../../model/json.ts";
import { type Loss, toLoss } from "../../model/loss.ts";
import type { Message } from "../../model/message.ts";
import type { AnswersByKind, StreamFrame, TaskPushNotificationConfig } from "../../model/operation.ts";
import { type Artifact, isTerminal, type Task, type TaskState, type TaskStatus } from "../../model/task.ts";
import type { PushEncoding } from "../contract.ts";
import { withJson } from "../shared/http/map-frames.ts";
import { ArtifactIndexes, toLegacyParts } from "../shared/legacy/parts.ts";
import { encodeRole, encodeState, endsSendStream } from "../shared/legacy/states.ts";
import type { SupportedOperation } from "./decode.ts";
import { LOSSES } from "./losses.ts";

/** The model as the JSON of 0.1. `JSON.stringify` leaves out members that are undefined. */

function acceptsData(data: JsonValue): boolean {
  return typeof data === "object" && data !== null;
}

export function toMessage(message: Message, path: string, losses: Loss[]): object {
  const { extensions, metadata, parts, referenceTaskIds, role } = message;
  if (extensions !== undefined) losses.push(toLoss(LOSSES.messageExtensions, `${path}.extensions`));
  if (referenceTaskIds !== undefined) losses.push(toLoss(LOSSES.referenceTaskIds, `${path}.referenceTaskIds`));
  return { role: encodeRole(role), parts: toLegacyParts(parts, path, losses, acceptsData), metadata };
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
  const { description, extensions, metadata, name, parts } = artifact;
  if (extensions !== undefined) losses.push(toLoss(LOSSES.artifactExtensions, `${path}.extensions`));
  return {
    name,
    description,
    parts: toLegacyParts(parts, path, losses, acceptsData),
    index,
    append,
    lastChunk,
    metadata,
  };
}

function toTask(task: Task, losses: Loss[]): object {
  const { artifacts, contextId, history, id, metadata, status } = task;
  return {
    id,
    sessionId: contextId === "" ? undefined : contextId,
    status: toStatus(status, "task.status", losses),
    artifacts: artifacts?.map((artifact, index) => toArtifact(artifact, index, `task.artifacts[${index}]`, losses)),
    history: history?.map((message, index) => toMessage(message, `task.history[${index}]`, losses)),
    metadata,
  };
}

/** The completed task that an answer without a task is told as. */
function toCompletedTask(message: Message, id: string, contextId: string | undefined, losses: Loss[]): Task {
  losses.push(toLoss(LOSSES.messageAsTask, "message"));
  return {
    id,
    contextId: message.contextId ?? contextId ?? "",
    status: { state: "TASK_STATE_COMPLETED", message },
  };
}

export function toPushConfig({ authentication, token, url }: TaskPushNotificationConfig): object {
  return {
    url,
    token,
    authentication:
      authentication === undefined
        ? undefined
        : { schemes: [authentication.scheme], credentials: authentication.credentials },
  };
}

/** 0.1 never said what is told; the task itself is what its callers can read. */
export const push: PushEncoding = {
  wholeTask: true,
  async encode(_, task, report) {
    const losses: Loss[] = [];
    const body = JSON.stringify(toTask(await task(), losses));
    if (losses.length > 0) report(losses);
    return { contentType: "application/json", body };
  },
};

type Answers = AnswersByKind<SupportedOperation>;
export type Answer = Answers[SupportedOperation["kind"]];
type UnaryAnswer = Exclude<Answer, { readonly kind: "stream" | "subscribe" }>;

export function encodeAnswer(answer: UnaryAnswer, losses: Loss[]): string {
  switch (answer.kind) {
    case "send":
      return JSON.stringify(toTask(taskOf(answer, losses), losses));
    case "get":
    case "cancel":
      return JSON.stringify(toTask(answer.outcome, losses));
    case "push-create":
    case "push-get":
      return JSON.stringify({
        id: answer.operation.taskId,
        pushNotificationConfig: toPushConfig(answer.outcome),
      });
  }
}

function taskOf({ operation, outcome }: Answers["send"], losses: Loss[]): Task {
  if ("task" in outcome) return outcome.task;
  return toCompletedTask(outcome.message, operation.chosenId ?? "", operation.message.contextId, losses);
}

/** One stream. Frames of 0.1 name artifacts by their index, which takes knowing those that came before. */
export class StreamEncoder {
  readonly #operation: Answers["stream" | "subscribe"]["operation"];
  readonly #report: (losses: readonly Loss[]) => void;
  readonly #indexes = new ArtifactIndexes();

  constructor(operation: Answers["stream" | "subscribe"]["operation"], report: (losses: readonly Loss[]) => void) {
    this.#operation = operation;
    this.#report = report;
  }

  readonly encode = (frame: StreamFrame, into: StreamFrame[]): boolean => {
    const { event } = frame;
    const losses: Loss[] = [];
    if ("artifactUpdate" in event) {
      const { artifact, metadata, taskId } = event.artifactUpdate;
      const said = toArtifact(
        artifact,
        this.#indexes.of(artifact.artifactId),
        "artifact",
        losses,
        event.artifactUpdate,
      );
      into.push(withJson(frame, JSON.stringify({ id: taskId, artifact: said, metadata })));
    } else if ("statusUpdate" in event) {
      const { metadata, status, taskId } = event.statusUpdate;
      const final = this.#endsAt(status.state);
      const said = toStatus(status, "status", losses);
      into.push(withJson(frame, JSON.stringify({ id: taskId, status: said, final, metadata })));
    } else if ("task" in event) {
      this.#encodeTask(event.task, frame, into, losses);
    } else {
      this.#encodeTask(toCompletedTask(event.message, this.#chosenId, undefined, losses), frame, into, losses);
    }
    if (losses.length > 0) this.#report(losses);
    // Streams of the engine end by themselves but for this state, which here is told as one that ends them.
    return "statusUpdate" in event && this.#endsAt(event.statusUpdate.status.state);
  };

  /**
   * There are no tasks in streams of 0.1: the status stands for the task. Who comes back gets the artifacts it may have
   * missed, before a status that may be final and without a number, for the number is known to be had only after the
   * last of these frames.
   */
  #encodeTask(task: Task, frame: StreamFrame, into: StreamFrame[], losses: Loss[]): void {
    const { artifacts = [], id, status } = task;
    this.#indexes.seed(artifacts);
    if (this.#mayHaveMissed(frame.number)) {
      artifacts.forEach((artifact, index) => {
        const said = toArtifact(artifact, index, `task.artifacts[${index}]`, losses);
        into.push({ event: frame.event, json: JSON.stringify({ id, artifact: said }) });
      });
    }
    const final = this.#endsAt(status.state);
    into.push(withJson(frame, JSON.stringify({ id, status: toStatus(status, "status", losses), final })));
  }

  /** Only a send is answered by a message. */
  get #chosenId(): string {
    const operation = this.#operation;
    return (operation.kind === "stream" ? operation.chosenId : operation.id) ?? "";
  }

  #mayHaveMissed(number: number | undefined): boolean {
    const operation = this.#operation;
    return operation.kind === "subscribe" && (operation.after === undefined || operation.after !== number);
  }

  /** The stream of a send closes when the task asks something; an observer's goes on. */
  #endsAt(state: TaskState): boolean {
    return this.#operation.kind === "stream" ? endsSendStream(state) : isTerminal(state);
  }
}
