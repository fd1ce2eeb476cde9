import { ProtocolError } from "../model/errors.ts";
import { LogEntry, type TaskArtifactUpdate, type TaskEvent } from "../model/event.ts";
import { FoldError, TaskFold } from "../model/fold.ts";
import { isPlainText, type Part } from "../model/message.ts";
import { artifactSize, partSize } from "../model/size.ts";
import { statusText } from "../model/status-texts.ts";
import { type Artifact, type Task, withParts } from "../model/task.ts";

/** Characters of the artifacts and messages of one task, roughly. */
const MAX_SIZE = 16 * 1024 * 1024;
/** More than any agent that ends needs. */
const MAX_EVENTS = 1_000_000;
/** Newest messages of the agent that are kept: they are its answer if there is no other. */
const KEPT_HISTORY = 1_000;

/** An agent that returns what cannot be used: another attempt would not change that. */
export class UnusableAnswerError extends Error {
  override readonly name = "UnusableAnswerError";
}

export type ArtifactChange = Pick<TaskArtifactUpdate, "artifact" | "append" | "lastChunk">;

/** A task at another agent, as far as that agent has sent it, within bounds. */
export class Collector {
  #fold: TaskFold | undefined;
  #events = 0;
  readonly #sizes = new Map<string, ArtifactExtent>();
  #size = 0;

  /** Events so far. */
  get events(): number {
    return this.#events;
  }

  get task(): Task | undefined {
    return this.#fold?.toTask();
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
    this.#checkSize();
    return "artifactUpdate" in event ? [event.artifactUpdate] : [];
  }

  #checkSize(): void {
    const size = this.#size + (this.#fold?.historySize ?? 0);
    if (size > MAX_SIZE) throw new UnusableAnswerError(statusText("answerTooLong", MAX_SIZE));
  }

  #restart(task: Task): readonly ArtifactChange[] {
    const { artifacts = [] } = task;
    this.#sizes.clear();
    this.#size = 0;
    for (const artifact of artifacts) this.#measure({ artifact });
    this.#fold = TaskFold.from(task, 0, KEPT_HISTORY);
    this.#checkSize();
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
    const before = this.#sizes.get(artifactId) ?? NO_EXTENT;
    const beside = artifactSize(withParts(artifact, []), false);
    const after =
      append === true && before !== NO_EXTENT
        ? { parts: before.parts + sizeOfChunk(parts), beside: Math.max(before.beside, beside) }
        : { parts: sizeOfParts(parts), beside };
    this.#sizes.set(artifactId, after);
    this.#size += after.parts + after.beside - before.parts - before.beside;
    this.#checkSize();
  }
}

function describe({ refusal }: FoldError): string {
  if (refusal === "terminal") return statusText("taskContinued");
  if (refusal === "other-task") return statusText("taskIdChanged");
  return statusText("taskStateWrong");
}

/** Bytes of the parts, and of all beside them: its names and metadata, which a later chunk replaces. */
interface ArtifactExtent {
  readonly parts: number;
  readonly beside: number;
}

const NO_EXTENT: ArtifactExtent = { parts: 0, beside: 0 };

function sizeOfParts(parts: readonly Part[]): number {
  return parts.reduce((size, part) => size + partSize(part), 0);
}

/** Chunks of text become one part, however many they are. */
function sizeOfChunk(parts: readonly Part[]): number {
  return parts.reduce((size, part) => size + (isPlainText(part) ? part.text.length : partSize(part)), 0);
}
