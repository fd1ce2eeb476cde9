/** Which frames are new. The number of an event is its place in the task's log, the same on every connection. */
import type { StreamFrame } from "../model/operation.ts";
import type { ClientEvent } from "./options.ts";

export class Cursor {
  /** The peer says that its ids are such numbers. Others put clocks or counters of a connection there. */
  readonly #trusted: boolean;
  #last: number | undefined;
  #first: { readonly number: number; readonly json: string } | undefined;
  #previous: number | undefined;
  #isFirstFrame = true;
  /** This connection began from the start of the log again. */
  #replaying = false;
  #meaningless = false;

  constructor(trusted: boolean, after: number | undefined) {
    this.#trusted = trusted;
    this.#last = after;
  }

  /** What to resume after; `undefined` when the peer does not number its events. */
  get last(): number | undefined {
    return this.#meaningless ? undefined : this.#last;
  }

  startConnection(): void {
    this.#isFirstFrame = true;
    this.#previous = undefined;
    this.#replaying = false;
  }

  /** The frame as an event, or `undefined` if it was handed over before. */
  accept(frame: StreamFrame): ClientEvent | undefined {
    const isFirstFrame = this.#isFirstFrame;
    this.#isFirstFrame = false;
    const { event, number } = frame;
    if (number === undefined || this.#meaningless) return { event };
    const repeatsId = number === this.#previous;
    this.#previous = number;
    // An id holds for the frames after it that have none of their own.
    if (repeatsId && !this.#trusted) return { event };
    if (this.#last === undefined || number > this.#last) {
      this.#last = number;
      this.#first ??= { number, json: frame.json };
      return { number, event };
    }
    if (this.#trusted || this.#replaying) return undefined;
    if (isFirstFrame) {
      // The task as it stood at the number we resumed from.
      if (number === this.#last) return undefined;
      this.#replaying = number === this.#first?.number && frame.json === this.#first.json;
      if (this.#replaying) return undefined;
    }
    // Numbers of one log never run backwards: these are something else, and dropping by them would lose events.
    this.#meaningless = true;
    return { event };
  }
}
