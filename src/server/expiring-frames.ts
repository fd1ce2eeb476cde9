import type { FrameStream, StreamFrame } from "../model/operation.ts";
import type { Clock } from "../model/ports.ts";

/** Timers cannot be set further ahead; a stream that is older ends then and can be resumed. */
const LONGEST_TIMER = 2_147_483_647;

/** A stream that lasts no longer than what its caller has shown; whoever has something newer resumes where it ended. */
export class ExpiringFrames implements FrameStream, AsyncIterator<readonly StreamFrame[], undefined> {
  readonly #frames: AsyncIterator<readonly StreamFrame[]>;
  readonly #stopTimer: () => void;

  constructor(frames: FrameStream, clock: Clock, expires: number) {
    this.#frames = frames[Symbol.asyncIterator]();
    const left = Math.min(Math.max(expires - clock.now(), 0), LONGEST_TIMER);
    this.#stopTimer = clock.after(left, () => void this.#frames.return?.());
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<readonly StreamFrame[], undefined>> {
    const step = await this.#frames.next();
    if (step.done === true) this.#stopTimer();
    return step;
  }

  async return(): Promise<IteratorReturnResult<undefined>> {
    this.#stopTimer();
    await this.#frames.return?.();
    return { done: true, value: undefined };
  }
}
