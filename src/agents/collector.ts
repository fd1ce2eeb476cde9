import { ProtocolError } from "../model/errors.ts";
import { LogEntry, type TaskArtifactUpdate, type TaskEvent } from "../model/event.ts";
import { FoldError, TaskFold } from "../model/fold.ts";
import { isPlainText, jsonSize, type Part } from "../model/message.ts";
import { statusText } from "../model/status-texts.ts";
import type { Artifact, Task } from "../model/task.ts";

/** Characters of the artifacts of one task, roughly. */
const MAX_SIZE = 16 * 1024 * 1024;
/** More than any agent that ends needs. */
const MAX_EVENTS = 1_000_000;
/** Newest messages of the agent that are kept: none of them is used but the one of the status. */
const KEPT_HISTORY = 1;

/** An agent that returns what cannot be used: another attempt would not change that. */
export class UnusableAnswerError extends Error {
  override readonly name = "UnusableAnswerError";
}

export type ArtifactChange = Pick<TaskArtifactUpdate, "artifact" | "append" | "lastChunk">;

/** A task at another agent, as far as that agent has sent it, within bounds. */
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
    if (++this.#events > MAX_EVENTS) throw new UnusableAnswerError(statusText("answerTooManyEvents", MAX_EVENTS));
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
    if (this.#size > MAX_SIZE) throw new UnusableAnswerError(statusText("answerTooLong", MAX_SIZE));
  }
}

function describe({ refusal }: FoldError): string {
  if (refusal === "terminal") return statusText("taskContinued");
  if (refusal === "other-task") return statusText("taskIdChanged");
  return statusText("taskStateWrong");
}

const PART_SIZE = 64;
const ARTIFACT_SIZE = 256;

/** Empty parts count too, so that a bound on the size is one on the number. */
export function sizeOfParts(parts: readonly Part[]): number {
  return parts.reduce((size, part) => size + PART_SIZE + sizeOfPart(part), ARTIFACT_SIZE);
}

/** Chunks of text become one part, however many they are. */
function sizeOfChunk(parts: readonly Part[]): number {
  return parts.reduce((size, part) => size + (isPlainText(part) ? 0 : PART_SIZE) + sizeOfPart(part), 0);
}

function sizeOfPart(part: Part): number {
  const beside = part.metadata === undefined ? 0 : jsonSize(part.metadata);
  if ("text" in part) return beside + part.text.length;
  if ("raw" in part) return beside + part.raw.length;
  return beside + ("url" in part ? part.url.length : jsonSize(part.data));
}
