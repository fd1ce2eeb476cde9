/** How far a task was followed, and what is known of it. */

import { type StreamEvent, stateOf, taskIdOf } from "../../model/event.ts";
import type { StreamFrame } from "../../model/operation.ts";
import { isInterrupted, isTerminal, type TaskState } from "../../model/task.ts";

/** Detects new frames. The number of an event is its position in the task's log, the same on every connection. */
export class Cursor {
  /** The peer declares that its ids are log positions. Others use timestamps or per-connection counters. */
  readonly #trusted: boolean;
  #last: number | undefined;
  #first: StreamFrame | undefined;
  #previous: number | undefined;
  #isFirstFrame = true;
  /** This connection restarted at the beginning of the log. */
  #replaying = false;
  #meaningless = false;

  constructor(trusted: boolean, after: number | undefined) {
    this.#trusted = trusted;
    this.#last = after;
  }

  /** The number to resume after; `undefined` if the peer does not number its events. */
  get last(): number | undefined {
    return this.#meaningless ? undefined : this.#last;
  }

  startConnection(): void {
    this.#isFirstFrame = true;
    this.#previous = undefined;
    this.#replaying = false;
  }

  /** The frame, with its number if that is a log position, or `undefined` if it was delivered before. */
  accept(frame: StreamFrame): StreamFrame | undefined {
    const isFirstFrame = this.#isFirstFrame;
    this.#isFirstFrame = false;
    const { number } = frame;
    if (number === undefined) return frame;
    if (this.#meaningless) return withoutNumber(frame);
    const repeatsId = number === this.#previous;
    this.#previous = number;
    // SSE: an id also applies to the following frames without an id of their own.
    if (repeatsId && !this.#trusted) return withoutNumber(frame);
    if (this.#last === undefined || number > this.#last) {
      this.#last = number;
      if (!this.#trusted) this.#first ??= frame;
      return frame;
    }
    if (this.#trusted || this.#replaying) return undefined;
    if (isFirstFrame) {
      // The snapshot of the task at the number we resumed from.
      if (number === this.#last) return undefined;
      this.#replaying = number === this.#first?.number && frame.json === this.#first.json;
      if (this.#replaying) return undefined;
    }
    // Log positions never decrease: these ids are something else, and dropping frames by them would lose events.
    this.#meaningless = true;
    return withoutNumber(frame);
  }
}

function withoutNumber({ event, json }: StreamFrame): StreamFrame {
  return { event, json };
}

/** What the frames of a task say about it. */
export class TaskProgress {
  taskId: string | undefined;
  state: TaskState | undefined;
  /** No more events can follow: the task ended, or the agent replied with a message. */
  ended = false;

  /** Nothing follows by itself: it has ended, or waits for someone. */
  get isSettled(): boolean {
    return this.ended || (this.state !== undefined && isInterrupted(this.state));
  }

  apply(event: StreamEvent): void {
    if ("message" in event) {
      if (this.taskId === undefined) this.ended = true;
      return;
    }
    this.taskId = taskIdOf(event) || this.taskId;
    this.state = stateOf(event) ?? this.state;
    if (this.state !== undefined && isTerminal(this.state)) this.ended = true;
  }
}
