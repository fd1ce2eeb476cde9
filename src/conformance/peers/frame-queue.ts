import { PeerFault } from "../outcome.ts";

/** What a stream brought so far; the reader waits, the source never does. */
export class FrameQueue<T> {
  readonly #waiting: T[] = [];
  readonly #onClose: () => void;
  readonly #timeoutMs: number;
  #ended = false;
  #failure: Error | undefined;
  #wake: (() => void) | undefined;

  constructor(timeoutMs: number, onClose: () => void) {
    this.#timeoutMs = timeoutMs;
    this.#onClose = onClose;
  }

  push(frame: T): void {
    this.#waiting.push(frame);
    this.#wake?.();
  }

  end(failure?: Error): void {
    this.#ended = true;
    this.#failure ??= failure;
    this.#wake?.();
  }

  /** The next frame, or undefined when the stream has ended. */
  async next(timeoutMs = this.#timeoutMs): Promise<T | undefined> {
    if (this.#waiting.length === 0 && !this.#ended) await this.#change(timeoutMs);
    const frame = this.#waiting.shift();
    if (frame !== undefined) return frame;
    if (this.#failure !== undefined) throw this.#failure;
    if (!this.#ended) throw new PeerFault(`no event and no end of the stream within ${timeoutMs / 1_000} s`);
    return undefined;
  }

  /** Everything to the end. */
  async rest(timeoutMs = this.#timeoutMs): Promise<T[]> {
    const frames: T[] = [];
    for (let frame = await this.next(timeoutMs); frame !== undefined; frame = await this.next(timeoutMs)) {
      frames.push(frame);
    }
    return frames;
  }

  /** Whether it stays open, with nothing said, for that long. */
  async isQuiet(timeoutMs: number): Promise<boolean> {
    if (this.#waiting.length === 0 && !this.#ended) await this.#change(timeoutMs);
    return this.#waiting.length === 0 && !this.#ended;
  }

  close(): void {
    this.#ended = true;
    this.#onClose();
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
