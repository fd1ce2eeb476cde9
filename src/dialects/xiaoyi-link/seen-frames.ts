/** Frames that came before: two servers may both deliver one, and one may deliver it twice. */
import { createHash } from "node:crypto";
import type { Clock } from "../../model/ports.ts";
import { BoundedMap } from "../xiaoyi/bounded-map.ts";

const MOST_KEPT = 10_000;

interface Seen {
  /** Undefined while it is being answered. */
  until: number | undefined;
}

/**
 * A frame is known by its ids and its content, while it is being answered and for a while after: what else it says may
 * differ from server to server. Ids alone say nothing: the answer to an agent's question comes under the ids of the
 * message that led to the question.
 */
export class SeenFrames {
  readonly #seen = new BoundedMap<string, Seen>(MOST_KEPT);
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Takes note of a frame. Undefined: it was seen before. */
  note(content: unknown): SeenFrame | undefined {
    const key = createHash("sha256").update(JSON.stringify(content)).digest("base64url");
    const before = this.#seen.get(key);
    const isKnown = before !== undefined && (before.until === undefined || before.until > this.#clock.now());
    return isKnown ? undefined : this.recall(key);
  }

  /** A frame that is being answered, whichever process took note of it. */
  recall(key: string): SeenFrame {
    const seen: Seen = { until: undefined };
    this.#seen.set(key, seen);
    return {
      key,
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
  /** By which it is known, also to another process. */
  readonly key: string;
  /** From now on it is known only for `keepMs`. */
  answered(keepMs: number): void;
  /** What comes under the same ids now is something new. */
  forget(): void;
}
