/** Outcomes as the JSON of this dialect: whole answers here, streams frame by frame below. */
import { LogEntry, type TaskEvent } from "../../model/event.ts";
import { TaskFold } from "../../model/fold.ts";
import { type Loss, lossBy } from "../../model/loss.ts";
import type { AnswersByKind, StreamFrame } from "../../model/operation.ts";
import type { Task, TaskStatus } from "../../model/task.ts";
import { ArtifactIndexes } from "../shared/artifact-indexes.ts";
import { endsAnswer } from "../shared/early-states.ts";
import { saidFrame } from "../shared/mapped-frames.ts";
import type { SpokenOperation } from "./decode.ts";
import { LOSSES } from "./losses.ts";
import { taskOfMessage, toArtifact, toTask } from "./said.ts";

type Answers = AnswersByKind<SpokenOperation>;
export type Answer = Answers[SpokenOperation["kind"]];
type WholeAnswer = Exclude<Answer, { readonly kind: "stream" | "subscribe" }>;

export function encodeAnswer(answer: WholeAnswer, losses: Loss[]): string {
  if (answer.kind !== "send") return JSON.stringify(toTask(answer.outcome, losses));
  const { operation, outcome } = answer;
  const task = "task" in outcome ? outcome.task : taskOfMessage(outcome.message, operation.message, losses);
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
      into.push(saidFrame(frame, JSON.stringify({ taskId, contextId, artifact: said, metadata })));
    } else if ("statusUpdate" in event) {
      this.#follow(event, frame);
      if (event.statusUpdate.metadata !== undefined)
        losses.push(lossBy(LOSSES.statusMetadata, "statusUpdate.metadata"));
      into.push(saidFrame(frame, JSON.stringify({ task: toTask(this.#fold.toTask(), losses) })));
    } else if ("task" in event) {
      this.#fold = TaskFold.from(event.task, 0);
      this.#indexes.seed(event.task.artifacts);
      into.push(saidFrame(frame, JSON.stringify({ task: toTask(event.task, losses) })));
    } else {
      const asked = this.#operation.kind === "stream" ? this.#operation.message : undefined;
      into.push(
        saidFrame(frame, JSON.stringify({ task: toTask(taskOfMessage(event.message, asked, losses), losses) })),
      );
    }
    if (losses.length > 0) this.#report(losses);
    return this.#operation.kind === "stream" && "statusUpdate" in event && endsAnswer(event.statusUpdate.status.state);
  };

  /** What is told is shown as it was told, also where the model's rules would not have it so. */
  #follow(event: TaskUpdate, frame: StreamFrame): void {
    const refusal = this.#fold.refusal(event);
    if (refusal !== undefined) {
      const { contextId, taskId } = "statusUpdate" in event ? event.statusUpdate : event.artifactUpdate;
      const known = refusal === "no-task-yet" || refusal === "other-task" ? undefined : this.#fold.toTask();
      this.#fold = TaskFold.from({ ...known, id: taskId, contextId, status: ANYTHING_MAY_FOLLOW }, 0);
    }
    // The caller's own messages are in the history, but no event shows them.
    const received = frame instanceof LogEntry ? frame.received : undefined;
    this.#fold.apply(LogEntry.of(this.#fold.number + 1, event, received));
  }
}

type TaskUpdate = Exclude<TaskEvent, { readonly task: Task }>;

const ANYTHING_MAY_FOLLOW: TaskStatus = { state: "TASK_STATE_SUBMITTED" };
