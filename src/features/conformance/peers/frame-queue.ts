import { CarrierError } from "../../../core/wire/exchange.ts";
import { PeerError } from "../check.ts";
import type { CallLimits } from "./peer.ts";

/** The frames of a stream. They are received as fast as they come, and wait here for the check. */
export class FrameQueue<T> {
  readonly #waiting: T[] = [];
  readonly #limits: CallLimits;
  readonly #cancel: () => void;
  #ended = false;
  #failure: Error | undefined;
  #wake: (() => void) | undefined;

  constructor(source: AsyncIterable<T>, limits: CallLimits, cancel: () => void) {
    this.#limits = limits;
    this.#cancel = cancel;
    void this.#receive(source);
  }

  /** The next frame, or undefined when the stream has ended. */
  async next(timeoutMs = this.#limits.timeoutMs): Promise<T | undefined> {
    if (this.#waiting.length === 0 && !this.#ended) await this.#change(timeoutMs);
    const frame = this.#waiting.shift();
    if (frame !== undefined) return frame;
    if (this.#failure !== undefined) throw this.#failure;
    if (!this.#ended) throw new PeerError(`no event and no end of the stream within ${timeoutMs / 1_000} s`);
    return undefined;
  }

  /** Everything to the end. */
  async rest(timeoutMs: number): Promise<T[]> {
    const frames: T[] = [];
    for (let frame = await this.next(timeoutMs); frame !== undefined; frame = await this.next(timeoutMs)) {
      frames.push(frame);
    }
    return frames;
  }

  /** Whether it stays open without a frame for that long. */
  async isQuiet(timeoutMs: number): Promise<boolean> {
    if (this.#waiting.length === 0 && !this.#ended) await this.#change(timeoutMs);
    return this.#waiting.length === 0 && !this.#ended;
  }

  close(): void {
    this.#ended = true;
    this.#cancel();
  }

  async #receive(source: AsyncIterable<T>): Promise<void> {
    try {
      for await (const frame of source) {
        this.#waiting.push(frame);
        this.#wake?.();
      }
    } catch (error) {
      this.#failure = toPeerError(error, this.#limits, "the stream broke: ");
      this.#cancel();
    }
    this.#ended = true;
    this.#wake?.();
  }

  #change(timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, timeoutMs);
      this.#wake = () => {
        clearTimeout(timer);
        this.#wake = undefined;
        resolve();
      };
    });
  }
}

/** The reason for which there is no answer, or no more of it. */
export function toPeerError(error: unknown, { signal, timeoutMs }: CallLimits, where = ""): PeerError {
  if (error instanceof PeerError) return error;
  if (signal.aborted) return new PeerError("the run has ended");
  if (error instanceof CarrierError && error.code === "timeout")
    return new PeerError(`${where}no answer within ${timeoutMs / 1_000} s`);
  return new PeerError(`${where}${rootMessage(error)}`);
}

/** Carriers report that a call failed; the cause of their error is the reason. */
function rootMessage(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause === undefined ? "" : rootMessage(error.cause);
  return cause === "" ? error.message : cause;
}
