import { chunkCharacter } from "../contestants/protocol.ts";
import type { ResponseSink } from "./response-parser.ts";

const completed = Buffer.from("TASK_STATE_COMPLETED");

/** Buffers a whole response. */
export class BodySink implements ResponseSink {
  #pieces: Buffer[] = [];

  body(data: Buffer, start: number, end: number): void {
    this.#pieces.push(data.subarray(start, end));
  }

  end(): void {}

  /** Returns the body of the last response and resets the sink. */
  take(): Buffer {
    const body = this.#pieces.length === 1 ? this.#pieces[0]! : Buffer.concat(this.#pieces);
    this.#pieces = [];
    return body;
  }
}

const chunkByte = chunkCharacter.charCodeAt(0);
const newLine = "\n".charCodeAt(0);
const tailLength = 4096;

/**
 * Measures a stream without parsing it: bytes of text, frames, and whether it ended completed. Text is
 * counted rather than chunks because a server may merge adjacent chunks.
 */
export class StreamSink implements ResponseSink {
  text = 0;
  frames = 0;
  readonly #expected: number;
  #tail: Buffer = Buffer.alloc(0);
  #previous = 0;

  /** @param expected bytes of text that the stream will carry; what follows is buffered, to see how it ended */
  constructor(expected: number) {
    this.#expected = expected;
  }

  body(data: Buffer, start: number, end: number): void {
    let { text, frames } = this;
    let previous = this.#previous;
    for (let at = start; at < end; at++) {
      const byte = data[at]!;
      if (byte === chunkByte) text++;
      else if (byte === newLine && previous === newLine) frames++;
      previous = byte;
    }
    this.text = text;
    this.frames = frames;
    this.#previous = previous;
    if (text < this.#expected) return;
    const piece = data.subarray(Math.max(start, end - tailLength), end);
    this.#tail = this.#tail.length === 0 ? piece : Buffer.concat([this.#tail, piece]);
  }

  end(): void {}

  /** True if exactly the expected text arrived and the task ended completed. */
  isWhole(): boolean {
    return this.text === this.#expected && this.#tail.includes(completed);
  }
}
