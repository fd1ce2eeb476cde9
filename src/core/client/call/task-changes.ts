import { ProtocolError } from "../../model/errors.ts";
import { type StreamEvent, type TaskEvent, type TaskStatusUpdate, taskIdOf } from "../../model/event.ts";
import { addArtifactUpdate, appendParts, type OpenArtifact } from "../../model/fold.ts";
import { isPlainText, type Message, type Part } from "../../model/message.ts";
import type { StreamFrame } from "../../model/operation.ts";
import { type Artifact, isInterrupted, isTerminal, type Task, type TaskStatus, withParts } from "../../model/task.ts";

/** What an earlier run stored of the task. */
export type StoredTask = Pick<Task, "artifacts" | "history" | "status">;

/**
 * The frames of one task as changes. The first snapshot stays as it is, unless something is stored. Later ones, which
 * polling and reconnecting yield, are reduced to what has changed since, so that nothing is stored twice and a task that
 * is polled for hours does not grow by its own size every second.
 */
export class TaskChanges {
  #taskId: string | undefined;
  #status: TaskStatus | undefined;
  #isSettled = false;
  #isEnded = false;
  /** As the newest snapshot has them, with what was added since: in some dialects every status is a snapshot. */
  readonly #artifacts = new Map<string, OpenArtifact>();
  /** Contents of the agent's messages so far. Ids are of no use: those of the peer are not stored. */
  readonly #messages = new Set<string>();
  readonly #stored: StoredTask | undefined;

  constructor(stored?: StoredTask) {
    this.#stored = stored;
    if (stored !== undefined) this.#noteMessages(stored);
    this.#status = stored?.status;
    for (const artifact of stored?.artifacts ?? []) addArtifactUpdate(this.#artifacts, { artifact });
  }

  get taskId(): string | undefined {
    return this.#taskId;
  }

  /** The task has ended, or waits for someone. */
  get isSettled(): boolean {
    return this.#isSettled;
  }

  /** Throws INVALID_AGENT_RESPONSE for events of another task. Nothing follows the end of a task. */
  apply(frames: readonly StreamFrame[]): readonly StreamFrame[] {
    const changes: StreamFrame[] = [];
    for (const received of frames) {
      const frame = withKnownState(received);
      if ("message" in frame.event) changes.push(frame);
      else if (!this.#isEnded) this.#addChanges(changes, frame, frame.event);
    }
    return changes;
  }

  #addChanges(changes: StreamFrame[], frame: StreamFrame, event: TaskEvent): void {
    const isFirst = this.#taskId === undefined;
    this.#checkTask(event);
    if ("artifactUpdate" in event) {
      addArtifactUpdate(this.#artifacts, event.artifactUpdate);
      changes.push(frame);
      return;
    }
    if ("statusUpdate" in event) {
      this.#noteMessages(event.statusUpdate);
      this.#setStatus(event.statusUpdate.status);
      changes.push(frame);
      return;
    }
    const { artifacts = [], contextId, id: taskId, status } = event.task;
    const isWhole = isFirst && this.#stored === undefined;
    const place = { taskId, contextId };
    const events: TaskEvent[] = [];
    for (const artifact of artifacts) {
      const change = isWhole ? { artifact } : changeOf(this.#artifacts.get(artifact.artifactId), artifact);
      if (change === undefined) continue;
      addArtifactUpdate(this.#artifacts, change);
      events.push({ artifactUpdate: { ...place, ...change } });
    }
    const before = this.#status;
    const missed = isWhole ? [] : this.#missedMessages(event.task);
    this.#noteMessages(event.task);
    this.#setStatus(status);
    if (isWhole) {
      changes.push(frame);
      return;
    }
    const [first] = missed;
    if (first !== undefined) {
      // One message, since it is not known in which steps they came.
      const message = { ...first, parts: missed.flatMap(({ parts }) => parts) };
      events.push({ statusUpdate: { ...place, status: { state: "TASK_STATE_WORKING", message } } });
    }
    // A run that was resumed has written the state itself, without the message.
    const isKnown = isFirst && status.message === undefined && before?.state === status.state;
    if (before === undefined || !(isKnown || isSameStatus(before, status))) {
      events.push({ statusUpdate: { ...place, status } });
    }
    changes.push(...toFrames(events, frame.number));
  }

  /** Messages of the agent after the newest one that is known, without that of the current status. */
  #missedMessages({ history = [], status }: Task): readonly Message[] {
    const known = history.findLastIndex(
      (message) => message.role !== "ROLE_AGENT" || this.#messages.has(JSON.stringify(message.parts)),
    );
    const current = JSON.stringify(status.message?.parts);
    return history.slice(known + 1).filter(({ parts }) => parts.length > 0 && JSON.stringify(parts) !== current);
  }

  #noteMessages({ history = [], status: { message } }: Pick<StoredTask, "history" | "status">): void {
    for (const one of message === undefined ? history : [...history, message]) {
      if (one.role === "ROLE_AGENT") this.#messages.add(JSON.stringify(one.parts));
    }
  }

  #checkTask(event: TaskEvent): void {
    const id = taskIdOf(event);
    this.#taskId ??= id;
    if (id === this.#taskId) return;
    throw new ProtocolError("INVALID_AGENT_RESPONSE", "The answer has events of another task.");
  }

  #setStatus(status: TaskStatus): void {
    this.#isEnded = isTerminal(status.state);
    this.#isSettled = this.#isEnded || isInterrupted(status.state);
    this.#status = status;
  }
}

/** A task here has a state: one whose agent does not say which is at work, as far as anyone knows. */
function withKnownState(frame: StreamFrame): StreamFrame {
  const { event, number } = frame;
  const status = "task" in event ? event.task.status : "statusUpdate" in event ? event.statusUpdate.status : undefined;
  if (status?.state !== "TASK_STATE_UNSPECIFIED") return frame;
  const known: TaskStatus = { ...status, state: "TASK_STATE_WORKING" };
  const changed: StreamEvent =
    "task" in event
      ? { task: { ...event.task, status: known } }
      : { statusUpdate: { ...(event as { statusUpdate: TaskStatusUpdate }).statusUpdate, status: known } };
  return { event: changed, json: JSON.stringify(changed), ...(number === undefined ? undefined : { number }) };
}

function isSameStatus(one: TaskStatus, other: TaskStatus): boolean {
  return one.state === other.state && isSame(one.message?.parts ?? [], other.message?.parts ?? []);
}

/** The number belongs to the last frame: a reader that has received it has received all of them. */
function toFrames(events: readonly TaskEvent[], number: number | undefined): readonly StreamFrame[] {
  return events.map((event, at) => {
    const frame = { event, json: JSON.stringify(event) };
    return number !== undefined && at === events.length - 1 ? { ...frame, number } : frame;
  });
}

type ArtifactChange = { readonly artifact: Artifact; readonly append?: boolean };

function changeOf(before: OpenArtifact | undefined, now: Artifact): ArtifactChange | undefined {
  if (before === undefined) return { artifact: now };
  if (isFragment(before.parts, now.parts)) return undefined;
  if (!isSame(withParts(before.artifact, []), withParts(now, []))) return { artifact: now };
  // Chunks that were joined here may be apart at the peer.
  const added = addedParts(before.parts, now.parts) ?? addedParts(joinTexts(before.parts), joinTexts(now.parts));
  if (added === undefined) return { artifact: now };
  return added.length === 0 ? undefined : { artifact: withParts(now, added), append: true };
}

/** A peer that is behind, or keeps only the last chunk, must not take away what it has sent before. */
function isFragment(known: readonly Part[], now: readonly Part[]): boolean {
  const [whole, part] = [joinTexts(known), joinTexts(now)];
  const [text] = part;
  if (part.length === 1 && text !== undefined && isPlainText(text)) {
    return whole.some((one) => isPlainText(one) && one.text.length > text.text.length && one.text.includes(text.text));
  }
  return (addedParts(part, whole)?.length ?? 0) > 0;
}

function joinTexts(parts: readonly Part[]): readonly Part[] {
  const joined: Part[] = [];
  for (const part of parts) appendParts(joined, [part]);
  return joined;
}

/** Parts that follow those of before; undefined if something else has changed. The last text may have grown. */
function addedParts(before: readonly Part[], now: readonly Part[]): readonly Part[] | undefined {
  const last = before.length - 1;
  if (now.length < before.length) return undefined;
  if (!before.every((part, at) => at === last || isSame(part, now[at]))) return undefined;
  const rest = now.slice(before.length);
  const [was, is] = [before[last], now[last]];
  if (was === undefined || is === undefined || isSame(was, is)) return rest;
  if (!("text" in was && "text" in is) || !is.text.startsWith(was.text)) return undefined;
  if (!isSame({ ...was, text: "" }, { ...is, text: "" })) return undefined;
  return [{ ...is, text: is.text.slice(was.text.length) }, ...rest];
}

function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
