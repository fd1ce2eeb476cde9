import type { StreamFrame } from "../../model/operation.ts";
import { describeDialect } from "../contract-suite.ts";
import { tasksRest } from "./index.ts";

/** A change of state is told by the whole task. */
function ofStream(frames: readonly StreamFrame[]): unknown {
  return frames.map(({ event }) => {
    if ("task" in event) return [event.task.id, event.task.contextId, event.task.status];
    if (!("statusUpdate" in event)) return event;
    const { contextId, status, taskId } = event.statusUpdate;
    return [taskId, contextId, status];
  });
}

describeDialect(tasksRest, {
  exact: false,
  answersByTask: true,
  ofStream,
  comparable: { task: (task) => ({ ...task }) },
});
