/** Outcomes as the JSON of 0.1: whole answers here, streams frame by frame below. */
import type { Loss } from "../../model/loss.ts";
import type { AnswersByKind, StreamFrame } from "../../model/operation.ts";
import { isTerminal, type TaskState } from "../../model/state.ts";
import type { Task } from "../../model/task.ts";
import { ArtifactIndexes } from "../shared/artifact-indexes.ts";
import { endsAnswer } from "../shared/early-states.ts";
import { saidFrame } from "../shared/mapped-frames.ts";
import type { SpokenOperation } from "./decode.ts";
import { taskOfMessage, toArtifact, toPushConfig, toStatus, toTask } from "./said.ts";

type Answers = AnswersByKind<SpokenOperation>;
export type Answer = Answers[SpokenOperation["kind"]];
type WholeAnswer = Exclude<Answer, { readonly kind: "stream" | "subscribe" }>;

export function encodeAnswer(answer: WholeAnswer, losses: Loss[]): string {
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
  return taskOfMessage(outcome.message, operation.chosenId ?? "", operation.message.contextId, losses);
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
      into.push(saidFrame(frame, JSON.stringify({ id: taskId, artifact: said, metadata })));
    } else if ("statusUpdate" in event) {
      const { metadata, status, taskId } = event.statusUpdate;
      const final = this.#endsAt(status.state);
      const said = toStatus(status, "status", losses);
      into.push(saidFrame(frame, JSON.stringify({ id: taskId, status: said, final, metadata })));
    } else if ("task" in event) {
      this.#encodeTask(event.task, frame, into, losses);
    } else {
      this.#encodeTask(taskOfMessage(event.message, this.#chosenId, undefined, losses), frame, into, losses);
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
    into.push(saidFrame(frame, JSON.stringify({ id, status: toStatus(status, "status", losses), final })));
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
    return this.#operation.kind === "stream" ? endsAnswer(state) : isTerminal(state);
  }
}
