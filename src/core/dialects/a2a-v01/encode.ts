/** Encodes outcomes as 0.1 JSON: unary responses first, streams frame by frame below. */

import type { Loss } from "../../model/loss.ts";
import type { AnswersByKind, StreamFrame } from "../../model/operation.ts";
import { isTerminal, type Task, type TaskState } from "../../model/task.ts";
import type { PushEncoding } from "../contract.ts";
import { withJson } from "../shared/http/map-frames.ts";
import {
  ArtifactIndexes,
  endsSendStream,
  type LegacyForm,
  toArtifact,
  toCompletedTask,
  toPushConfig,
  toStatus,
  toTask,
} from "../shared/legacy/encode.ts";
import type { SupportedOperation } from "./decode.ts";

export const FORM: LegacyForm = {
  context: "sessionId",
  hasIds: false,
  acceptsData: (data) => typeof data === "object" && data !== null,
};

/** 0.1 does not define the body; the task itself is what its clients can decode. */
export const push: PushEncoding = {
  wholeTask: true,
  async encode(_, task, report) {
    const losses: Loss[] = [];
    const body = JSON.stringify(toTask(await task(), losses, FORM));
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
      return JSON.stringify(toTask(taskOf(answer, losses), losses, FORM));
    case "get":
    case "cancel":
      return JSON.stringify(toTask(answer.outcome, losses, FORM));
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
  const { chosenId: id = "", message } = operation;
  return toCompletedTask(outcome.message, { id, contextId: message.contextId }, losses);
}

/** Encodes one stream. 0.1 identifies artifacts by index, so the encoder tracks those it has seen. */
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
      const index = this.#indexes.of(artifact.artifactId);
      const chunk = toArtifact(artifact, index, "artifact", losses, FORM, event.artifactUpdate);
      into.push(withJson(frame, JSON.stringify({ id: taskId, artifact: chunk, metadata })));
    } else if ("statusUpdate" in event) {
      const { metadata, status, taskId } = event.statusUpdate;
      const final = this.#endsAt(status.state);
      const encoded = toStatus(status, "status", losses, FORM);
      into.push(withJson(frame, JSON.stringify({ id: taskId, status: encoded, final, metadata })));
    } else if ("task" in event) {
      this.#encodeTask(event.task, frame, into, losses);
    } else {
      const task = toCompletedTask(event.message, { id: this.#chosenId, contextId: undefined }, losses);
      this.#encodeTask(task, frame, into, losses);
    }
    if (losses.length > 0) this.#report(losses);
    // The engine ends its streams itself, except at a state that is sent here as one that ends the stream.
    return "statusUpdate" in event && this.#endsAt(event.statusUpdate.status.state);
  };

  /**
   * Streams of 0.1 have no tasks: a task is sent as its status. A caller that reconnects first gets the artifacts that
   * it may have missed: before a status that may be final, and without a number, since the caller has received that
   * number only after the last of these frames.
   */
  #encodeTask(task: Task, frame: StreamFrame, into: StreamFrame[], losses: Loss[]): void {
    const { artifacts = [], id, status } = task;
    this.#indexes.seed(artifacts);
    if (this.#mayHaveMissed(frame.number)) {
      artifacts.forEach((artifact, index) => {
        const encoded = toArtifact(artifact, index, `task.artifacts[${index}]`, losses, FORM);
        into.push({ event: frame.event, json: JSON.stringify({ id, artifact: encoded }) });
      });
    }
    const final = this.#endsAt(status.state);
    into.push(withJson(frame, JSON.stringify({ id, status: toStatus(status, "status", losses, FORM), final })));
  }

  /** Only a send can return a message. */
  get #chosenId(): string {
    const operation = this.#operation;
    return (operation.kind === "stream" ? operation.chosenId : operation.id) ?? "";
  }

  #mayHaveMissed(number: number | undefined): boolean {
    const operation = this.#operation;
    return operation.kind === "subscribe" && (operation.after === undefined || operation.after !== number);
  }

  /** The stream of a send closes when the task requires input; a subscription continues. */
  #endsAt(state: TaskState): boolean {
    return this.#operation.kind === "stream" ? endsSendStream(state) : isTerminal(state);
  }
}
