/** Streams of dialects older than 0.2: artifacts by index, and an end when the task requires input. */

import { type Artifact, isTerminal, type TaskState } from "../../../model/task.ts";

/** Indexes of a task's artifacts, in the order of their first appearance. That order never changes. */
export class ArtifactIndexes {
  readonly #indexes = new Map<string, number>();

  /** Adds the existing artifacts of a task, in order. */
  seed(artifacts: readonly Artifact[] | undefined): void {
    for (const { artifactId } of artifacts ?? []) this.of(artifactId);
  }

  of(artifactId: string): number {
    let index = this.#indexes.get(artifactId);
    if (index === undefined) {
      index = this.#indexes.size;
      this.#indexes.set(artifactId, index);
    }
    return index;
  }
}

/** Whether the stream of a send ends at this state: terminal, or sent as input-required. */
export function endsSendStream(state: TaskState): boolean {
  return isTerminal(state) || state === "TASK_STATE_INPUT_REQUIRED" || state === "TASK_STATE_AUTH_REQUIRED";
}
