/** Frames that came before: two servers may both deliver one, and one may deliver it twice. */
import { createHash } from "node:crypto";
import type { Clock } from "../../model/ports.ts";
import { BoundedMap } from "../xiaoyi/bounded-map.ts";

const MOST_KEPT = 10_000;

interface Seen {
  /** Of the frame as it came, byte for byte. */
  readonly bytes: string;
  /** Undefined while it is being answered. */
  until: number | undefined;
}

/**
 * A frame is known by its ids and its content while it is being answered, and for a while after by its bytes. Ids alone
 * say nothing: the answer to an agent's question comes under the ids of the message that led to the question.
 */
export class SeenFrames {
  readonly #seen = new BoundedMap<string, Seen>(MOST_KEPT);
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Takes note of a frame. Undefined: it was seen before. */
  note(content: unknown, text: string): SeenFrame | undefined {
    const key = digestOf(JSON.stringify(content));
    const bytes = digestOf(text);
    const before = this.#seen.get(key);
    if (before !== undefined) {
      if (before.until === undefined) return undefined;
      if (before.bytes === bytes && before.until > this.#clock.now()) return undefined;
    }
    const seen: Seen = { bytes, until: undefined };
    this.#seen.set(key, seen);
    return {
      answered: (keepMs) => {
        seen.until = this.#clock.now() + keepMs;
      },
      forget: () => {
        if (this.#seen.get(key) === seen) this.#seen.delete(key);
      },
    };
  }
}

export interface SeenFrame {
  /** From now on only the same bytes are the same frame, for `keepMs`. */
  answered(keepMs: number): void;
  /** What comes under the same ids now is something new. */
  forget(): void;
}

function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("base64url");
}
