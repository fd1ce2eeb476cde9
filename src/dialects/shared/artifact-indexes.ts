import type { Artifact } from "../../model/artifact.ts";

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
