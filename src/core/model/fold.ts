import type { LogEntry, TaskArtifactUpdate, TaskEvent, TaskStatusUpdate } from "./event.ts";
import { EXTENSIONS } from "./extensions.ts";
import type { JsonObject } from "./json.ts";
import { isPlainText, type Message, type Part } from "./message.ts";
import { messageSize } from "./size.ts";
import { type Artifact, isTerminal, isTransitionAllowed, type Task, type TaskStatus, withParts } from "./task.ts";

type FoldRefusal = "no-task-yet" | "second-task" | "terminal" | "illegal-transition" | "other-task" | "gap";

/** Thrown by `TaskFold.apply` for an event that cannot follow; the fold is then unchanged. */
export class FoldError extends Error {
  readonly refusal: FoldRefusal;
  constructor(refusal: FoldRefusal) {
    super(`event refused: ${refusal}`);
    this.name = "FoldError";
    this.refusal = refusal;
  }
}

/** An artifact that is still written. */
export interface OpenArtifact {
  artifact: Omit<Artifact, "parts">;
  parts: Part[];
}

/** Adds a chunk, or what replaces the artifact. */
export function addArtifactUpdate(
  artifacts: Map<string, OpenArtifact>,
  { append, artifact }: Pick<TaskArtifactUpdate, "append" | "artifact">,
): void {
  const open = append === true ? artifacts.get(artifact.artifactId) : undefined;
  if (open === undefined) {
    artifacts.set(artifact.artifactId, { artifact, parts: artifact.parts.slice() });
    return;
  }
  appendParts(open.parts, artifact.parts);
  const described = mergeDescription(open.artifact, artifact);
  if (described !== undefined) open.artifact = described;
}

/** The metadata of a task after a status update: all of an update's metadata but its usage is about the update alone. */
export function updateMetadata(before: JsonObject | undefined, update: JsonObject): JsonObject | undefined {
  const usage = update[EXTENSIONS.usage];
  return usage === undefined ? before : { ...before, [EXTENSIONS.usage]: usage };
}

/**
 * A task under construction from its log. Each event costs the same however long the log already is: history and
 * parts are appended in place, and `toTask` copies only references.
 *
 * Adjacent plain-text chunks of one artifact become one part, so a task that was streamed in ten thousand pieces reads
 * the same as one that was written at once, before and after its log is compacted.
 */
export class TaskFold {
  #number = 0;
  #id = "";
  #contextId = "";
  #status: TaskStatus | undefined;
  #metadata: JsonObject | undefined;
  readonly #history: Message[] = [];
  #historySize = 0;
  #artifacts: Map<string, OpenArtifact> | undefined;
  readonly #historyLimit: number;

  /** With a `historyLimit` at least that many of the newest messages are kept and the rest may be forgotten. */
  constructor(historyLimit: number = Number.POSITIVE_INFINITY) {
    this.#historyLimit = historyLimit;
  }

  /** Begin from a task as it stood at `number`. */
  static from(task: Task, number: number, historyLimit?: number): TaskFold {
    const fold = new TaskFold(historyLimit);
    fold.#begin(task);
    fold.#number = number;
    return fold;
  }

  get number(): number {
    return this.#number;
  }
  get id(): string {
    return this.#id;
  }
  get contextId(): string {
    return this.#contextId;
  }
  get status(): TaskStatus {
    if (this.#status === undefined) throw new FoldError("no-task-yet");
    return this.#status;
  }
  get metadata(): JsonObject | undefined {
    return this.#metadata;
  }
  get history(): readonly Message[] {
    return this.#history;
  }
  /** Bytes that the messages kept here take up, roughly. */
  get historySize(): number {
    return this.#historySize;
  }
  hasArtifact(artifactId: string): boolean {
    return this.#artifacts?.has(artifactId) === true;
  }

  /** Why this event cannot come next, or undefined if it can. */
  refusal(event: TaskEvent): FoldRefusal | undefined {
    if ("task" in event) return this.#status === undefined ? undefined : "second-task";
    if (this.#status === undefined) return "no-task-yet";
    if (isTerminal(this.#status.state)) return "terminal";
    const update = "statusUpdate" in event ? event.statusUpdate : event.artifactUpdate;
    if (update.taskId !== this.#id || update.contextId !== this.#contextId) return "other-task";
    if ("statusUpdate" in event && !isTransitionAllowed(this.#status.state, event.statusUpdate.status.state)) {
      return "illegal-transition";
    }
    return undefined;
  }

  /** `event`: that of the entry, from a caller that still has it when the entry may have only its text. */
  apply(entry: LogEntry, event: TaskEvent = entry.event): void {
    if (entry.number !== this.#number + 1) throw new FoldError("gap");
    const refusal = this.refusal(event);
    if (refusal !== undefined) throw new FoldError(refusal);
    this.#number = entry.number;
    if ("task" in event) this.#begin(event.task);
    else if ("statusUpdate" in event) this.#applyStatus(event.statusUpdate, entry.received);
    else this.#addArtifact(event.artifactUpdate);
  }

  toTask(options: { historyLength?: number | undefined; artifacts?: boolean } = {}): Task {
    const { historyLength, artifacts = true } = options;
    const history = takeLast(this.#history, historyLength);
    return {
      id: this.#id,
      contextId: this.#contextId,
      status: this.status,
      artifacts: artifacts && this.#artifacts !== undefined ? toArtifacts(this.#artifacts) : undefined,
      history: history.length > 0 ? history : undefined,
      metadata: this.#metadata,
    };
  }

  #begin(task: Task): void {
    this.#id = task.id;
    this.#contextId = task.contextId;
    this.#status = task.status;
    this.#metadata = task.metadata;
    for (const message of task.history ?? []) this.#remember(message);
    for (const artifact of task.artifacts ?? []) this.#addArtifact({ artifact });
  }

  #applyStatus({ metadata, status }: TaskStatusUpdate, received: Message | undefined): void {
    const message = this.#status?.message;
    if (message !== undefined) this.#remember(message);
    if (received !== undefined) this.#remember(received);
    this.#status = status;
    if (metadata !== undefined) this.#metadata = updateMetadata(this.#metadata, metadata);
  }

  #remember(message: Message): void {
    this.#history.push(message);
    this.#historySize += messageSize(message);
    // Trimming at twice the limit keeps the cost per message constant.
    if (this.#history.length <= 2 * this.#historyLimit) return;
    const forgotten = this.#history.splice(0, this.#history.length - this.#historyLimit);
    for (const old of forgotten) this.#historySize -= messageSize(old);
  }

  #addArtifact(update: Pick<TaskArtifactUpdate, "append" | "artifact">): void {
    this.#artifacts ??= new Map();
    addArtifactUpdate(this.#artifacts, update);
  }
}

/** Fold a whole log, or the rest of one onto what an earlier part of it gave. */
export function fold(entries: Iterable<LogEntry>, from: TaskFold = new TaskFold()): TaskFold {
  for (const entry of entries) from.apply(entry);
  return from;
}

function toArtifacts(artifacts: ReadonlyMap<string, OpenArtifact>): Artifact[] {
  const all: Artifact[] = [];
  for (const { artifact, parts } of artifacts.values()) all.push(withParts(artifact, parts.slice()));
  return all;
}

/** Adjacent plain texts become one part. */
export function appendParts(parts: Part[], added: readonly Part[]): void {
  let start = 0;
  const last = parts.at(-1);
  const first = added[0];
  if (last !== undefined && first !== undefined && isPlainText(last) && isPlainText(first)) {
    parts[parts.length - 1] = { text: last.text + first.text };
    start = 1;
  }
  for (let index = start; index < added.length; index++) parts.push(added[index] as Part);
}

/** A later chunk may name or describe the artifact; what it does not mention stays. */
function mergeDescription(known: OpenArtifact["artifact"], chunk: Artifact): OpenArtifact["artifact"] | undefined {
  const { name, description, metadata, extensions } = chunk;
  const renamed = name !== undefined && name !== known.name;
  if (!renamed && description === undefined && metadata === undefined && extensions === undefined) return undefined;
  return {
    ...known,
    name: name ?? known.name,
    description: description ?? known.description,
    metadata: metadata ?? known.metadata,
    extensions: extensions ?? known.extensions,
  };
}

function takeLast<T>(items: readonly T[], count: number | undefined): readonly T[] {
  if (count === undefined || count >= items.length) return items.slice();
  return count === 0 ? [] : items.slice(-count);
}
