import { createHash } from "node:crypto";
import type { Rendered } from "../xiaoyi/rendered.ts";

/**
 * What of an answer must not be said twice, and is known to have arrived. An answer that is told anew is told without it:
 * text replaces what was told before, but cards would show twice and commands be done twice.
 */
export class ArrivedThings {
  readonly #arrived = new Map<string, number>();
  #sent: string[] = [];
  /** Sent before the question that is under way. */
  #askedAbout: string[] = [];
  #toSkip = new Map<string, number>();

  sent(frame: Rendered): void {
    if (frame.once === true) this.#sent.push(keyOf(frame));
  }

  asked(): void {
    this.#askedAbout.push(...this.#sent.splice(0));
  }

  /** What was sent before `asked` has arrived. */
  confirmed(): void {
    for (const key of this.#askedAbout.splice(0)) this.#arrived.set(key, (this.#arrived.get(key) ?? 0) + 1);
  }

  /** Everything is told anew, until `toldAnew`. */
  restate(): void {
    this.#sent = [];
    this.#askedAbout = [];
    this.#toSkip = new Map(this.#arrived);
  }

  /** What comes from here on is new, also if it is the same once more. */
  toldAnew(): void {
    this.#toSkip.clear();
  }

  /** Those of the frames that are still to be sent. */
  missing(frames: readonly Rendered[]): readonly Rendered[] {
    return this.#toSkip.size === 0 ? frames : frames.filter((frame) => !this.#skips(frame));
  }

  #skips(frame: Rendered): boolean {
    if (frame.once !== true) return false;
    const key = keyOf(frame);
    const times = this.#toSkip.get(key) ?? 0;
    if (times > 0) this.#toSkip.set(key, times - 1);
    return times > 0;
  }
}

function keyOf({ result }: Rendered): string {
  const parts = result.kind === "artifact-update" ? result.artifact.parts : [];
  return createHash("sha256").update(JSON.stringify(parts)).digest("base64url");
}
