/** One link to one server of the platform, for as long as it holds. */
import type { Clock } from "../../model/ports.ts";
import { type Link, LinkError } from "../../wire/link.ts";

export interface Outgoing<R> {
  readonly text: string;
  /** The answer it belongs to, where it must not get lost. */
  readonly reply?: R;
  /** It should not be said twice. */
  readonly once?: boolean;
}

/** Whoever has something to send. It is asked for one frame at a time, so that nobody waits for another's thousands. */
export interface Talker<R> {
  /** What is to be sent next; undefined while nothing is. */
  peek(): Outgoing<R> | undefined;
  /** What `peek` gave has left. */
  sent(): void;
}

/** Something of which not all that was sent is known to have arrived. */
export interface Doubtful {
  /** The platform is asked whether it has got what was sent so far. */
  asked(): void;
  /** It has; `all` unless more was sent since it was asked. */
  confirmed(all: boolean): void;
}

/** How soon after a frame the platform is asked whether it has got it; after one that should not be said twice, at once. */
const ASK_AFTER_MS = 1_000;
/** Between the platform's answer and the next question: a line on which much ends is not to be full of pings. */
const ASK_AGAIN_MS = 10;

export class Line<R extends Doubtful> {
  readonly #link: Link;
  readonly #clock: Clock;
  readonly #ready = new Set<Talker<R>>();
  /** With the number of the last frame that was sent of each. */
  readonly #doubts = new Map<R, number>();
  #sent = 0;
  #full = false;
  #sendsSoon = false;
  #mustAsk = false;
  #asking = false;
  #askAt = Number.POSITIVE_INFINITY;
  #cancelAsk = (): void => {};

  constructor(link: Link, clock: Clock) {
    this.#link = link;
    this.#clock = clock;
  }

  /** Somebody has something to send. It is asked once for all that it is woken for at one time. */
  wake(talker: Talker<R>): void {
    this.#ready.add(talker);
    if (this.#full || this.#sendsSoon) return;
    this.#sendsSoon = true;
    queueMicrotask(() => {
      this.#sendsSoon = false;
      if (!this.#full) this.#sendAll();
    });
  }

  /** Ahead of all that waits. */
  say(text: string): void {
    try {
      void this.#link.send(text);
    } catch (error) {
      if (!(error instanceof LinkError)) throw error;
    }
  }

  /** The link is gone. Returns those of which it is not known whether all has arrived. */
  end(): readonly R[] {
    this.#cancelAsk();
    this.#ready.clear();
    return [...this.#doubts.keys()];
  }

  #sendAll(): void {
    this.#pump();
    if (this.#mustAsk) void this.#ask();
  }

  #pump(): void {
    for (const talker of this.#ready) {
      this.#ready.delete(talker);
      const outgoing = talker.peek();
      if (outgoing === undefined) continue;
      let wait: void | Promise<void>;
      try {
        wait = this.#link.send(outgoing.text);
      } catch (error) {
        if (!(error instanceof LinkError)) throw error;
        return;
      }
      // Last in line again: a set is walked in the order things were added, also while it is walked.
      this.#ready.add(talker);
      this.#noteSent(outgoing);
      talker.sent();
      if (wait === undefined) continue;
      this.#full = true;
      void wait.then(() => {
        this.#full = false;
        this.#sendAll();
      });
      return;
    }
  }

  #noteSent({ once, reply }: Outgoing<R>): void {
    this.#sent++;
    if (reply === undefined) return;
    this.#doubts.set(reply, this.#sent);
    if (once === true) this.#mustAsk = true;
    else this.#askAfter(ASK_AFTER_MS);
  }

  #askAfter(milliseconds: number): void {
    const at = this.#clock.now() + milliseconds;
    if (this.#asking || at >= this.#askAt) return;
    this.#cancelAsk();
    this.#askAt = at;
    this.#cancelAsk = this.#clock.after(milliseconds, () => void this.#ask());
  }

  async #ask(): Promise<void> {
    if (this.#asking) return;
    this.#asking = true;
    this.#mustAsk = false;
    this.#cancelAsk();
    this.#askAt = Number.POSITIVE_INFINITY;
    const asked = this.#sent;
    for (const doubtful of this.#doubts.keys()) doubtful.asked();
    const received = await this.#link.received();
    this.#asking = false;
    if (!received) return;
    for (const [doubtful, number] of this.#doubts) {
      const all = number <= asked;
      if (all) this.#doubts.delete(doubtful);
      doubtful.confirmed(all);
    }
    if (this.#doubts.size > 0) this.#askAfter(ASK_AGAIN_MS);
  }
}
