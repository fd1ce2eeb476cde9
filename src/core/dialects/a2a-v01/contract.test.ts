import { textOf } from "../../model/message.ts";
import type { StreamFrame } from "../../model/operation.ts";
import { describeDialect } from "../contract-suite.ts";
import { ArtifactIndexes } from "../shared/legacy/encode.ts";
import { comparableMessage, comparableTask } from "./fixtures/serving.ts";
import { a2aV01 } from "./index.ts";

/** A task is told by its status, and artifacts by their place in it. */
function ofStream(frames: readonly StreamFrame[]): unknown {
  const indexes = new ArtifactIndexes();
  return frames.map(({ event }) => {
    if ("task" in event) indexes.seed(event.task.artifacts);
    if ("task" in event) return [event.task.id, event.task.status.state];
    if ("statusUpdate" in event) return [event.statusUpdate.taskId, event.statusUpdate.status.state];
    if ("message" in event) return textOf(event.message.parts);
    const { append, artifact, taskId } = event.artifactUpdate;
    const heard = /^artifact-(\d+)$/.exec(artifact.artifactId)?.[1];
    const index = heard === undefined ? indexes.of(artifact.artifactId) : Number(heard);
    return [taskId, index, append, artifact.parts];
  });
}

describeDialect(a2aV01, {
  exact: false,
  answersByTask: true,
  ofStream,
  comparable: { message: comparableMessage, task: comparableTask },
});
