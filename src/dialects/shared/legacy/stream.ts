/** Streams of dialects older than 0.2: artifacts by their index, and an end where the task asks something. */

import { type Artifact, isTerminal, type TaskState } from "../../../model/task.ts";

/** Which artifact of a task is which, by the order in which they first appeared. That order never changes. */
export class ArtifactIndexes {
  readonly #indexes = new Map<string, number>();

  /** Those a task has already, in their order. */
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

/** Whether a stream that answers a send ends with this state. What is sent as input-required ends it like that does. */
export function endsSendStream(state: TaskState): boolean {
  return isTerminal(state) || state === "TASK_STATE_INPUT_REQUIRED" || state === "TASK_STATE_AUTH_REQUIRED";
}
