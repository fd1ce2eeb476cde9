/**
 * Decodes the frames of an agent's answer into events of a task with exactly one end, whatever convention the agent
 * follows.
 */

import { deriveId, invalidResponse } from "../../../../core/dialects/shared/responses.ts";
import type { TaskEvent } from "../../../../core/model/event.ts";
import type { Part } from "../../../../core/model/message.ts";
import { type Artifact, isInterrupted, isTerminal, type TaskState } from "../../../../core/model/task.ts";
import { isGenericFailure } from "../phone-texts.ts";
import { type ArtifactChange, ArtifactTracker } from "./decode-artifacts.ts";
import { type AnswerFrame, type ArtifactFrame, progressPart, type StatusFrame } from "./decode-frame.ts";
import { sessionIdOf } from "./encode-message.ts";

export interface AnswerScope {
  readonly taskId: string;
  readonly contextId: string;
}

/**
 * Reasoning is buffered: agents send it word by word, and each piece becomes a message in the history of the task. A piece
 * is at least this long, and as long as all before it, so that even long reasoning is a few messages.
 */
const MIN_REASONING_PIECE = 200;

/** The outcome if the last frame arrives without a status. */
const COMPLETED: Pick<StatusFrame, "state" | "parts"> = { state: "TASK_STATE_COMPLETED", parts: [] };

export class AnswerDecoder {
  #scope: AnswerScope | undefined;
  readonly #artifacts: ArtifactTracker;
  #reasoning = "";
  /** Reasoning that was not passed on yet. */
  #held = "";
  #messages = 0;
  #isWorking = false;
  #progress = "";
  /** A terminal state whose last frame has not arrived yet. */
  #outcome: StatusFrame | undefined;
  #ended = false;
  #asks = false;

  /** Without a scope, the task is identified by its frames. `known`: artifacts that were received before. */
  constructor(scope?: AnswerScope, known?: readonly Artifact[]) {
    this.#scope = scope;
    this.#artifacts = new ArtifactTracker(known);
  }

  /** No more frames belong to the answer: the task has ended or waits for input. */
  get ended(): boolean {
    return this.#ended;
  }

  get endsWithQuestion(): boolean {
    return this.#asks;
  }

  /** The agent sent a terminal state, but not `final`: some agents send more after it, others never send `final`. */
  get isSettling(): boolean {
    return this.#outcome !== undefined && !this.#ended;
  }

  /** Reasoning is buffered: a caller that can wait flushes it after a while. */
  get holdsReasoning(): boolean {
    return this.#held.trim() !== "" && !this.#ended;
  }

  /** Length of the text so far, in characters. */
  get length(): number {
    return this.#artifacts.length;
  }

  namesOtherTask({ taskId }: AnswerFrame): boolean {
    return taskId !== undefined && this.#scope !== undefined && taskId !== this.#scope.taskId;
  }

  /** Throws INVALID_AGENT_RESPONSE if the task cannot be identified. */
  decode(frame: AnswerFrame): TaskEvent[] {
    if (this.#ended) return [];
    this.#scope ??= scopeOf(frame);
    return frame.kind === "artifact" ? this.#artifact(frame) : this.#status(frame);
  }

  /** No more frames are expected. */
  settle(): TaskEvent[] {
    return this.isSettling ? this.#end(undefined) : [];
  }

  flush(): TaskEvent[] {
    const events: TaskEvent[] = [];
    if (!this.#ended) this.#flush(events);
    return events;
  }

  #artifact(frame: ArtifactFrame): TaskEvent[] {
    const { append, failure, final, lastChunk, reasoning = "" } = frame;
    const events = this.#think(reasoning, append);
    const changes = this.#artifacts.put(frame);
    if (changes.length > 0) this.#flush(events);
    const isLast = final || (lastChunk === true && this.#artifacts.usesStableIds);
    for (const change of changes) events.push(this.#toArtifact(change, isLast));
    if (final) events.push(...this.#end(failure));
    return events;
  }

  #status(frame: StatusFrame): TaskEvent[] {
    const { failure, final, parts, state } = frame;
    if (state !== undefined && isInterrupted(state)) return this.#ask(state, parts);
    if (state !== undefined && isTerminal(state)) this.#outcome = frame;
    else if (final) this.#outcome = { ...frame, state: state === undefined ? state : "TASK_STATE_COMPLETED" };
    if (final) return this.#end(failure);
    return state === "TASK_STATE_WORKING" ? this.#work(parts) : [];
  }

  /** Most of these are only signs of life. */
  #work(parts: readonly Part[]): TaskEvent[] {
    const key = JSON.stringify(parts);
    if (this.#isWorking && (parts.length === 0 || key === this.#progress)) return [];
    this.#progress = key;
    return [this.#toStatus("TASK_STATE_WORKING", parts)];
  }

  /** If the status has no question, the text is the question. */
  #ask(state: TaskState, parts: readonly Part[]): TaskEvent[] {
    const events: TaskEvent[] = [];
    this.#flush(events);
    this.#ended = true;
    this.#asks = true;
    const text = this.#artifacts.latestText;
    events.push(this.#toStatus(state, parts.length > 0 || text === "" ? parts : [{ text }]));
    return events;
  }

  #end(failure: string | undefined): TaskEvent[] {
    const events: TaskEvent[] = [];
    this.#flush(events);
    this.#ended = true;
    const { parts, state = "TASK_STATE_FAILED" } = this.#outcome ?? COMPLETED;
    const failed = failure !== undefined && state === "TASK_STATE_COMPLETED";
    // A generic failure text carries no information.
    const isSilent = failure === undefined || isGenericFailure(failure);
    const message = parts.length > 0 || isSilent ? parts : [{ text: failure }];
    events.push(this.#toStatus(failed ? "TASK_STATE_FAILED" : state, message));
    return events;
  }

  /** Sent as progress: immediately if it is new, in longer and longer pieces if it grows. */
  #think(reasoning: string, append: boolean): TaskEvent[] {
    const events: TaskEvent[] = [];
    const before = this.#reasoning;
    const goesOn = before !== "" && (append || reasoning.startsWith(before));
    const added = goesOn && !append ? reasoning.slice(before.length) : reasoning;
    if (added === "") return events;
    this.#reasoning = goesOn ? before + added : reasoning;
    this.#held = goesOn ? this.#held + added : added;
    const sent = this.#reasoning.length - this.#held.length;
    if (!goesOn || this.#held.length >= Math.max(MIN_REASONING_PIECE, sent)) this.#flush(events);
    return events;
  }

  #flush(events: TaskEvent[]): void {
    if (this.#held.trim() !== "") events.push(this.#toStatus("TASK_STATE_WORKING", [progressPart(this.#held)]));
    this.#held = "";
  }

  #toStatus(state: TaskState, parts: readonly Part[]): TaskEvent {
    const scope = this.#scope ?? NO_SCOPE;
    this.#isWorking = true;
    if (parts.length === 0) return { statusUpdate: { ...scope, status: { state } } };
    const messageId = deriveId(scope.taskId, [++this.#messages, parts]);
    const message = { messageId, role: "ROLE_AGENT", ...scope, parts } as const;
    return { statusUpdate: { ...scope, status: { state, message } } };
  }

  #toArtifact({ append, artifactId, parts }: ArtifactChange, lastChunk: boolean): TaskEvent {
    return {
      artifactUpdate: {
        ...(this.#scope ?? NO_SCOPE),
        artifact: { artifactId, parts },
        ...(append ? { append } : undefined),
        ...(lastChunk ? { lastChunk } : undefined),
      },
    };
  }
}

/** Used before the first frame, when there are no events. */
const NO_SCOPE: AnswerScope = { taskId: "", contextId: "" };

function scopeOf({ taskId }: AnswerFrame): AnswerScope {
  if (taskId === undefined) throw invalidResponse("taskId is missing");
  return { taskId, contextId: sessionIdOf(taskId) };
}
