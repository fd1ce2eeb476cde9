/** One link to one server of the platform, for as long as it holds. */

import { createHash } from "node:crypto";
import type { Clock } from "../../model/ports.ts";
import { type Link, LinkError } from "../../wire/link.ts";
import { BoundedMap } from "../xiaoyi/bounded-map.ts";
import type { RenderedFrame } from "../xiaoyi/frames.ts";

export interface OutgoingFrame<R> {
  readonly text: string;
  /** The answer it belongs to, where it must not get lost. */
  readonly reply?: R;
  /** It should not be said twice. */
  readonly once?: boolean;
}

/** Whoever has something to send. It is asked for one frame at a time, so that nobody waits for another's thousands. */
export interface FrameSource<R> {
  /** What is to be sent next; undefined while nothing is. */
  peek(): OutgoingFrame<R> | undefined;
  /** What `peek` gave has left. */
  sent(): void;
}

/** Something of which not all that was sent is known to have arrived. */
export interface Unconfirmed {
  /** The platform is asked whether it has got what was sent so far. */
  pingSent(): void;
  /** It has; `all` unless more was sent since it was asked. */
  confirmed(all: boolean): void;
}

/** How soon after a frame the platform is asked whether it has got it; after one that should not be said twice, at once. */
const PING_AFTER_MS = 1_000;
/** Between the platform's answer and the next question: a line on which much ends is not to be full of pings. */
const PING_AGAIN_MS = 10;

export class Connection<R extends Unconfirmed> {
  readonly #link: Link;
  readonly #clock: Clock;
  readonly #ready = new Set<FrameSource<R>>();
  /** With the number of the last frame that was sent of each. */
  readonly #unconfirmed = new Map<R, number>();
  #sent = 0;
  #full = false;
  #sendsSoon = false;
  #mustPing = false;
  #pinging = false;
  #pingAt = Number.POSITIVE_INFINITY;
  #cancelPing = (): void => {};

  constructor(link: Link, clock: Clock) {
    this.#link = link;
    this.#clock = clock;
  }

  /** Somebody has something to send. It is asked once for all that it is woken for at one time. */
  wake(talker: FrameSource<R>): void {
    this.#ready.add(talker);
    if (this.#full || this.#sendsSoon) return;
    this.#sendsSoon = true;
    queueMicrotask(() => {
      this.#sendsSoon = false;
      if (!this.#full) this.#sendAll();
    });
  }

  /** Ahead of all that waits. */
  sendNow(text: string): void {
    try {
      void this.#link.send(text);
    } catch (error) {
      if (!(error instanceof LinkError)) throw error;
    }
  }

  /** The link is gone. Returns those of which it is not known whether all has arrived. */
  end(): readonly R[] {
    this.#cancelPing();
    this.#ready.clear();
    return [...this.#unconfirmed.keys()];
  }

  #sendAll(): void {
    this.#pump();
    if (this.#mustPing) void this.#ping();
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

  #noteSent({ once, reply }: OutgoingFrame<R>): void {
    this.#sent++;
    if (reply === undefined) return;
    this.#unconfirmed.set(reply, this.#sent);
    if (once === true) this.#mustPing = true;
    else this.#pingAfter(PING_AFTER_MS);
  }

  #pingAfter(milliseconds: number): void {
    const at = this.#clock.now() + milliseconds;
    if (this.#pinging || at >= this.#pingAt) return;
    this.#cancelPing();
    this.#pingAt = at;
    this.#cancelPing = this.#clock.after(milliseconds, () => void this.#ping());
  }

  async #ping(): Promise<void> {
    if (this.#pinging) return;
    this.#pinging = true;
    this.#mustPing = false;
    this.#cancelPing();
    this.#pingAt = Number.POSITIVE_INFINITY;
    const asked = this.#sent;
    for (const doubtful of this.#unconfirmed.keys()) doubtful.pingSent();
    const received = await this.#link.received();
    this.#pinging = false;
    if (!received) return;
    for (const [doubtful, number] of this.#unconfirmed) {
      const all = number <= asked;
      if (all) this.#unconfirmed.delete(doubtful);
      doubtful.confirmed(all);
    }
    if (this.#unconfirmed.size > 0) this.#pingAfter(PING_AGAIN_MS);
  }
}

/**
 * What of an answer must not be said twice, and is known to have arrived. An answer that is told anew is told without it:
 * text replaces what was told before, but cards would show twice and commands be done twice.
 */
export class DeliveredItems {
  readonly #delivered = new Map<string, number>();
  #sent: string[] = [];
  /** Sent before the question that is under way. */
  #pinged: string[] = [];
  #toSkip = new Map<string, number>();

  sent(frame: RenderedFrame): void {
    if (frame.once === true) this.#sent.push(keyOf(frame));
  }

  pingSent(): void {
    this.#pinged.push(...this.#sent.splice(0));
  }

  /** What was sent before `asked` has arrived. */
  confirmed(): void {
    for (const key of this.#pinged.splice(0)) this.#delivered.set(key, (this.#delivered.get(key) ?? 0) + 1);
  }

  /** Everything is told anew, until `toldAnew`. */
  beginResend(): void {
    this.#sent = [];
    this.#pinged = [];
    this.#toSkip = new Map(this.#delivered);
  }

  /** What comes from here on is new, also if it is the same once more. */
  endResend(): void {
    this.#toSkip.clear();
  }

  /** Those of the frames that are still to be sent. */
  withoutDelivered(frames: readonly RenderedFrame[]): readonly RenderedFrame[] {
    return this.#toSkip.size === 0 ? frames : frames.filter((frame) => !this.#skips(frame));
  }

  #skips(frame: RenderedFrame): boolean {
    if (frame.once !== true) return false;
    const key = keyOf(frame);
    const times = this.#toSkip.get(key) ?? 0;
    if (times > 0) this.#toSkip.set(key, times - 1);
    return times > 0;
  }
}

function keyOf({ result }: RenderedFrame): string {
  const parts = result.kind === "artifact-update" ? result.artifact.parts : [];
  return createHash("sha256").update(JSON.stringify(parts)).digest("base64url");
}

/** Frames that came before: two servers may both deliver one, and one may deliver it twice. */

const MAX_REMEMBERED_FRAMES = 10_000;

interface Expiry {
  /** Undefined while it is being answered. */
  until: number | undefined;
}

/**
 * A frame is known by its ids and its content, while it is being answered and for a while after: what else it says may
 * differ from server to server. Ids alone say nothing: the answer to an agent's question comes under the ids of the
 * message that led to the question.
 */
export class DuplicateFilter {
  readonly #seen = new BoundedMap<string, Expiry>(MAX_REMEMBERED_FRAMES);
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Takes note of a frame. Undefined: it was seen before. */
  add(content: unknown): ReceivedFrame | undefined {
    const key = createHash("sha256").update(JSON.stringify(content)).digest("base64url");
    const before = this.#seen.get(key);
    const isKnown = before !== undefined && (before.until === undefined || before.until > this.#clock.now());
    return isKnown ? undefined : this.restore(key);
  }

  /** A frame that is being answered, whichever process took note of it. */
  restore(key: string): ReceivedFrame {
    const expiry: Expiry = { until: undefined };
    this.#seen.set(key, expiry);
    return {
      key,
      expireIn: (keepMs) => {
        expiry.until = this.#clock.now() + keepMs;
      },
      forget: () => {
        if (this.#seen.get(key) === expiry) this.#seen.delete(key);
      },
    };
  }
}

export interface ReceivedFrame {
  /** By which it is known, also to another process. */
  readonly key: string;
  /** From now on it is known only for `keepMs`. */
  expireIn(keepMs: number): void;
  /** What comes under the same ids now is something new. */
  forget(): void;
}
