/** Encodes outcomes as 1.0 JSON. Tasks are already stored in that form, so this is mostly `JSON.stringify`. */

import type { AnswersByKind, OperationKind, OperationOf, TaskPage } from "../../model/operation.ts";
import type { Task } from "../../model/task.ts";
import type { PushEncoding } from "../contract.ts";
import { toWireCard } from "./card.ts";
import { writeWire } from "./proto/schema.ts";

/** One stream response per event, as in a stream, whichever binding the task was created over. */
export const push: PushEncoding = {
  wholeTask: false,
  async encode({ json }) {
    return { contentType: "application/a2a+json", body: json };
  },
};

export type Answer = AnswersByKind[OperationKind];
type UnaryKind = Exclude<OperationKind, "stream" | "subscribe">;

const ENCODERS: { readonly [Kind in UnaryKind]: (answer: AnswersByKind[Kind]) => string } = {
  send: ({ outcome }) => JSON.stringify("task" in outcome ? { task: withoutEmptyLists(outcome.task) } : outcome),
  get: ({ outcome }) => JSON.stringify(withoutEmptyLists(outcome)),
  cancel: ({ outcome }) => JSON.stringify(withoutEmptyLists(outcome)),
  list: ({ operation, outcome }) => JSON.stringify(toListResponse(operation, outcome)),
  "push-create": ({ outcome }) => JSON.stringify(writeWire("TaskPushNotificationConfig", outcome)),
  "push-get": ({ outcome }) => JSON.stringify(writeWire("TaskPushNotificationConfig", outcome)),
  "push-list": ({ outcome }) => JSON.stringify(writeWire("ListTaskPushNotificationConfigsResponse", outcome)),
  "push-delete": () => "null",
  "extended-card": ({ outcome }) => toWireCard(outcome),
};

export function encodeAnswer<Kind extends UnaryKind>(answer: AnswersByKind[Kind]): string {
  return ENCODERS[answer.kind](answer);
}

export function toListResponse(operation: OperationOf<"list">, page: TaskPage): TaskPage {
  const { tasks, nextPageToken, pageSize, totalSize } = page;
  const shown = tasks.map(operation.includeArtifacts === true ? withArtifacts : withoutArtifacts);
  return { tasks: shown, nextPageToken, pageSize, totalSize };
}

/** Empty lists are not written. */
function withoutEmptyLists(task: Task): Task {
  const noArtifacts = task.artifacts?.length === 0;
  const noHistory = task.history?.length === 0;
  if (!noArtifacts && !noHistory) return task;
  const { artifacts, history, ...rest } = task;
  return {
    ...rest,
    artifacts: noArtifacts ? undefined : artifacts,
    history: noHistory ? undefined : history,
  };
}

/** If artifacts are requested, the member is present even when there are none (§3.1.4). */
function withArtifacts(task: Task): Task {
  return task.artifacts === undefined ? { ...withoutEmptyLists(task), artifacts: [] } : withoutEmptyLists(task);
}

function withoutArtifacts(task: Task): Task {
  if (task.artifacts === undefined) return withoutEmptyLists(task);
  const { artifacts: _artifacts, ...rest } = task;
  return withoutEmptyLists(rest);
}
