/** Outcomes as 1.0 JSON. Tasks are stored in that form already, so this is mostly `JSON.stringify`. */
import type { AnswersByKind, OperationKind, OperationOf, TaskPage } from "../../model/operation.ts";
import type { Task } from "../../model/task.ts";
import { toWireCard } from "./card.ts";
import { writeWire } from "./schema.ts";

export type Answer = AnswersByKind[OperationKind];
export type PlainAnswer = AnswersByKind[PlainKind];
type PlainKind = Exclude<OperationKind, "stream" | "subscribe">;

const ENCODERS: { readonly [Kind in PlainKind]: (answer: AnswersByKind[Kind]) => string } = {
  send: ({ outcome }) => JSON.stringify("task" in outcome ? { task: lean(outcome.task) } : outcome),
  get: ({ outcome }) => JSON.stringify(lean(outcome)),
  cancel: ({ outcome }) => JSON.stringify(lean(outcome)),
  list: ({ operation, outcome }) => JSON.stringify(presentedPage(operation, outcome)),
  "push-create": ({ outcome }) => JSON.stringify(writeWire("TaskPushNotificationConfig", outcome)),
  "push-get": ({ outcome }) => JSON.stringify(writeWire("TaskPushNotificationConfig", outcome)),
  "push-list": ({ outcome }) => JSON.stringify(writeWire("ListTaskPushNotificationConfigsResponse", outcome)),
  "push-delete": () => "null",
  "extended-card": ({ outcome }) => toWireCard(outcome),
};

export function encodeAnswer<Kind extends PlainKind>(answer: AnswersByKind[Kind]): string {
  return ENCODERS[answer.kind](answer);
}

export function presentedPage(operation: OperationOf<"list">, page: TaskPage): TaskPage {
  const { tasks, nextPageToken, pageSize, totalSize } = page;
  const shown = tasks.map(operation.includeArtifacts === true ? withArtifacts : withoutArtifacts);
  return { tasks: shown, nextPageToken, pageSize, totalSize };
}

/** Empty lists are not written. */
function lean(task: Task): Task {
  const noArtifacts = task.artifacts?.length === 0;
  const noHistory = task.history?.length === 0;
  if (!noArtifacts && !noHistory) return task;
  const { artifacts, history, ...rest } = task;
  return {
    ...rest,
    ...(artifacts !== undefined && !noArtifacts && { artifacts }),
    ...(history !== undefined && !noHistory && { history }),
  };
}

/** Asked for, artifacts are shown also where there are none (§3.1.4). */
function withArtifacts(task: Task): Task {
  return task.artifacts === undefined ? { ...lean(task), artifacts: [] } : lean(task);
}

function withoutArtifacts(task: Task): Task {
  if (task.artifacts === undefined) return lean(task);
  const { artifacts: _artifacts, ...rest } = task;
  return lean(rest);
}
