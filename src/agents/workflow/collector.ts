import { ProtocolError } from "../../model/errors.ts";
import { LogEntry, type TaskArtifactUpdate, type TaskEvent } from "../../model/event.ts";
import { FoldError, TaskFold } from "../../model/fold.ts";
import type { Artifact, Task } from "../../model/task.ts";
import { MAX_STEP_SIZE, sizeOfChunk, sizeOfParts } from "./results.ts";

/** Events of one task of a step; more than any agent that ends needs. */
const MAX_EVENTS = 1_000_000;
/** Newest messages of the agent that are kept: none of them is used but the one of the status. */
const KEPT_HISTORY = 1;

/** An agent that returns what cannot be used: another attempt would not change that. */
export class UnusableAnswerError extends Error {
  override readonly name = "UnusableAnswerError";
}

export type ArtifactChange = Pick<TaskArtifactUpdate, "artifact" | "append" | "lastChunk">;

/** The task of a step, as far as its agent has sent it, within bounds. */
export class Collector {
  #fold: TaskFold | undefined;
  #events = 0;
  readonly #sizes = new Map<string, number>();
  #size = 0;

  /** Events so far. */
  get events(): number {
    return this.#events;
  }

  get task(): Task | undefined {
    return this.#fold?.toTask({ historyLength: 0 });
  }

  /** Returns what the event changed of the artifacts. Throws for events that no task can have. */
  apply(event: TaskEvent): readonly ArtifactChange[] {
    if (++this.#events > MAX_EVENTS) throw new UnusableAnswerError(`The agent sent more than ${MAX_EVENTS} events.`);
    if ("task" in event) return this.#restart(event.task);
    const fold = this.#fold ?? this.#begin(event);
    // Agents without conversations make up a context for each event.
    const { contextId } = fold;
    const placed: TaskEvent =
      "statusUpdate" in event
        ? { statusUpdate: { ...event.statusUpdate, contextId } }
        : { artifactUpdate: { ...event.artifactUpdate, contextId } };
    if ("artifactUpdate" in event) this.#measure(event.artifactUpdate);
    try {
      fold.apply(LogEntry.of(fold.number + 1, placed));
    } catch (error) {
      if (!(error instanceof FoldError)) throw error;
      throw new ProtocolError("INVALID_AGENT_RESPONSE", describe(error));
    }
    return "artifactUpdate" in event ? [event.artifactUpdate] : [];
  }

  #restart(task: Task): readonly ArtifactChange[] {
    const { artifacts = [], history: _, ...rest } = task;
    this.#sizes.clear();
    this.#size = 0;
    for (const artifact of artifacts) this.#measure({ artifact });
    this.#fold = TaskFold.from({ ...rest, artifacts }, 0, KEPT_HISTORY);
    return artifacts.map((artifact) => ({ artifact }));
  }

  /** An agent may begin with any event. */
  #begin(event: Exclude<TaskEvent, { task: Task }>): TaskFold {
    const { contextId, taskId } = "statusUpdate" in event ? event.statusUpdate : event.artifactUpdate;
    const task: Task = { id: taskId, contextId, status: { state: "TASK_STATE_SUBMITTED" } };
    this.#fold = TaskFold.from(task, 0, KEPT_HISTORY);
    return this.#fold;
  }

  #measure({ artifact, append }: { readonly artifact: Artifact; readonly append?: boolean }): void {
    const { artifactId, parts } = artifact;
    const before = this.#sizes.get(artifactId) ?? 0;
    const after = append === true && before > 0 ? before + sizeOfChunk(parts) : sizeOfParts(parts);
    this.#sizes.set(artifactId, after);
    this.#size += after - before;
    if (this.#size > MAX_STEP_SIZE) {
      throw new UnusableAnswerError(`The agent returned more than ${MAX_STEP_SIZE} characters.`);
    }
  }
}

function describe({ refusal }: FoldError): string {
  if (refusal === "terminal") return "The agent continued a task that had ended.";
  if (refusal === "other-task") return "The agent changed the id of its task.";
  return "The agent sent a state that cannot follow the one before.";
}
