/** Buffers frames of one answer between a connection and their reader. */

import { ProtocolError } from "../../model/errors.ts";
import type { TaskEvent } from "../../model/event.ts";
import type { FrameStream, StreamFrame } from "../../model/operation.ts";
import { createDeferred, type Deferred } from "../../wire/link.ts";
import { createFrame } from "./responses.ts";

/** Maximum buffered characters. A reader that does not read must not block other answers on the connection. */
const MAX_QUEUED_CHARACTERS = 16 * 1024 * 1024;

type Step = IteratorResult<readonly StreamFrame[], undefined>;

/** Has a single reader. */
export class FrameQueue implements FrameStream, AsyncIterator<readonly StreamFrame[], undefined> {
  readonly #onReturn: () => void;
  #waiting: StreamFrame[] = [];
  #size = 0;
  #ended = false;
  #error: ProtocolError | undefined;
  #wakeUp: Deferred | undefined;

  /** `onLeft`: called when the reader stops reading. */
  constructor(onLeft: () => void) {
    this.#onReturn = onLeft;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** `size` is the size of the events on the wire. Returns false if the queue is full, which also ends it. */
  put(events: readonly TaskEvent[], size: number): boolean {
    if (this.#ended || events.length === 0) return true;
    this.#size += size;
    if (this.#size > MAX_QUEUED_CHARACTERS) {
      this.fail(new ProtocolError("RESOURCE_EXHAUSTED", "The agent spoke faster than it was listened to."));
      return false;
    }
    for (const event of events) this.#waiting.push(createFrame(event, undefined));
    this.#wake();
    return true;
  }

  /** Queued frames can still be read. */
  end(): void {
    this.#ended = true;
    this.#wake();
  }

  fail(error: ProtocolError): void {
    if (!this.#ended) this.#error = error;
    this.end();
  }

  async next(): Promise<Step> {
    while (this.#waiting.length === 0 && !this.#ended) {
      this.#wakeUp ??= createDeferred();
      await this.#wakeUp.promise;
    }
    if (this.#waiting.length > 0) {
      const value = this.#waiting;
      this.#waiting = [];
      this.#size = 0;
      return { done: false, value };
    }
    const error = this.#error;
    this.#error = undefined;
    if (error !== undefined) throw error;
    return { done: true, value: undefined };
  }

  async return(): Promise<Step> {
    this.#waiting = [];
    this.#error = undefined;
    this.end();
    this.#onReturn();
    return { done: true, value: undefined };
  }

  #wake(): void {
    this.#wakeUp?.resolve();
    this.#wakeUp = undefined;
  }
}
