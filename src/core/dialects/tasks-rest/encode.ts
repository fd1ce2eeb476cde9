/** Encodes outcomes as JSON: unary responses first, streams frame by frame below. */

import { LogEntry, type TaskEvent } from "../../model/event.ts";
import { TaskFold } from "../../model/fold.ts";
import { isObject } from "../../model/json.ts";
import { type Loss, toLoss } from "../../model/loss.ts";
import type { Message } from "../../model/message.ts";
import type { AnswersByKind, StreamFrame } from "../../model/operation.ts";
import type { Task, TaskStatus } from "../../model/task.ts";
import { withJson } from "../shared/http/map-frames.ts";
import {
  ArtifactIndexes,
  endsSendStream,
  type LegacyForm,
  toArtifact,
  toCompletedTask,
  toTask,
} from "../shared/legacy/encode.ts";
import type { SupportedOperation } from "./decode.ts";
import { LOSSES } from "./losses.ts";

export const FORM: LegacyForm = { context: "contextId", hasIds: true, acceptsData: isObject };

/** Its id is derived from the message that it replaces. */
function toAnsweredTask(message: Message, asked: Message | undefined, losses: Loss[]): Task {
  const id = message.taskId ?? message.messageId;
  const task = toCompletedTask(message, { id, contextId: asked?.contextId }, losses);
  return asked === undefined ? task : { ...task, history: [asked] };
}

type Answers = AnswersByKind<SupportedOperation>;
export type Answer = Answers[SupportedOperation["kind"]];
type UnaryAnswer = Exclude<Answer, { readonly kind: "stream" | "subscribe" }>;

export function encodeAnswer(answer: UnaryAnswer, losses: Loss[]): string {
  if (answer.kind !== "send") return JSON.stringify(toTask(answer.outcome, losses, FORM));
  const { operation, outcome } = answer;
  const task = "task" in outcome ? outcome.task : toAnsweredTask(outcome.message, operation.message, losses);
  return JSON.stringify(toTask(task, losses, FORM));
}

/** Encodes one stream. A state change is sent as the whole task, so the encoder maintains the task. */
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
      const index = this.#indexes.of(artifact.artifactId);
      const chunk = toArtifact(artifact, index, "artifact", losses, FORM, event.artifactUpdate);
      into.push(withJson(frame, JSON.stringify({ taskId, contextId, artifact: chunk, metadata })));
    } else if ("statusUpdate" in event) {
      this.#follow(event, frame);
      if (event.statusUpdate.metadata !== undefined)
        losses.push(toLoss(LOSSES.statusMetadata, "statusUpdate.metadata"));
      into.push(withJson(frame, JSON.stringify({ task: toTask(this.#fold.toTask(), losses, FORM) })));
    } else if ("task" in event) {
      this.#fold = TaskFold.from(event.task, 0);
      this.#indexes.seed(event.task.artifacts);
      into.push(withJson(frame, JSON.stringify({ task: toTask(event.task, losses, FORM) })));
    } else {
      const asked = this.#operation.kind === "stream" ? this.#operation.message : undefined;
      const task = toAnsweredTask(event.message, asked, losses);
      into.push(withJson(frame, JSON.stringify({ task: toTask(task, losses, FORM) })));
    }
    if (losses.length > 0) this.#report(losses);
    return (
      this.#operation.kind === "stream" && "statusUpdate" in event && endsSendStream(event.statusUpdate.status.state)
    );
  };

  /** Events are applied as they occurred, even if the model's rules would refuse them. */
  #follow(event: TaskUpdate, frame: StreamFrame): void {
    const refusal = this.#fold.refusal(event);
    if (refusal !== undefined) {
      const { contextId, taskId } = "statusUpdate" in event ? event.statusUpdate : event.artifactUpdate;
      const known = refusal === "no-task-yet" || refusal === "other-task" ? undefined : this.#fold.toTask();
      this.#fold = TaskFold.from({ ...known, id: taskId, contextId, status: INITIAL_STATUS }, 0);
    }
    // The caller's own messages are in the history but not in any event.
    const received = frame instanceof LogEntry ? frame.received : undefined;
    this.#fold.apply(LogEntry.of(this.#fold.number + 1, event, received));
  }
}

type TaskUpdate = Exclude<TaskEvent, { readonly task: Task }>;

const INITIAL_STATUS: TaskStatus = { state: "TASK_STATE_SUBMITTED" };
