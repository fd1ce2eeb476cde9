import { createSseParser } from "../../wire/sse.ts";
import { PeerError } from "../check.ts";
import type { HttpClient, HttpResponse } from "./http-client.ts";
import type { Frame, OpenStream } from "./peer.ts";

/** The events of an answer as frames. An event that cannot be read ends the stream for its reader with that fault. */
export function openEvents(
  client: HttpClient,
  answer: HttpResponse,
  read: (data: string, event: string) => Frame,
): OpenStream {
  const { body, contentType, exchange } = answer;
  const frames = new FrameQueue<Frame>(client.timeoutMs, () => body.destroy());
  const parser = createSseParser(({ data, event }) => frames.push(read(data, event)));
  body.on("data", (chunk: Uint8Array) => {
    client.log.appendBody(exchange, Buffer.from(chunk).toString("utf8"));
    try {
      parser.push(chunk);
    } catch (error) {
      frames.end(error instanceof Error ? error : new PeerError(String(error)));
      body.destroy();
    }
  });
  body.on("end", () => frames.end());
  body.on("error", (error) => frames.end(new PeerError(`the stream broke: ${error.message}`)));
  body.on("close", () => frames.end());
  return { ok: "stream", frames, contentType };
}

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
    if (!this.#ended) throw new PeerError(`no event and no end of the stream within ${timeoutMs / 1_000} s`);
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
