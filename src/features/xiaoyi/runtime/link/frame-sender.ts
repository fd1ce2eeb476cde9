/** Sends the frames of all conversations over one link, in turn, and learns which of them were delivered. */

import { createHash } from "node:crypto";
import type { Clock } from "../../../../core/model/ports.ts";
import { type Link, LinkError } from "../../../../core/wire/link.ts";
import type { RenderedFrame } from "../../codec/frames.ts";
import { BoundedMap } from "../bounded-map.ts";

export interface OutgoingFrame {
  readonly text: string;
  /** The answer it belongs to, if delivery must be confirmed. */
  readonly reply?: Unconfirmed;
  /** Must not be sent twice. */
  readonly once?: boolean;
}

/** A source of frames. It is polled for one frame at a time, so that sources share the link fairly. */
export interface FrameSource {
  /** The next frame to send; undefined if there is none at present. */
  peek(): OutgoingFrame | undefined;
  sent(): void;
}

/** Something whose frames are not all confirmed as delivered. */
export interface Unconfirmed {
  /** A ping was sent, which will confirm the frames sent so far. */
  pingSent(): void;
  /** The ping was answered; `all` unless more was sent after it. */
  confirmed(all: boolean): void;
  /** The link has closed: it is unknown how much was delivered. */
  resend(): void;
}

/**
 * Delay between a frame and the ping that confirms it; a frame that must not be sent twice is followed by a ping
 * immediately.
 */
const PING_AFTER_MS = 1_000;
/** Delay between a pong and the next ping: a link on which many answers end must not be flooded with pings. */
const PING_AGAIN_MS = 10;

export class FrameSender {
  readonly #link: Link;
  readonly #clock: Clock;
  readonly #ready = new Set<FrameSource>();
  /** Each with the number of its last frame. */
  readonly #unconfirmed = new Map<Unconfirmed, number>();
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

  /** A source has frames to send. It is polled once for all wake-ups of the same moment. */
  wake(source: FrameSource): void {
    this.#ready.add(source);
    if (this.#full || this.#sendsSoon) return;
    this.#sendsSoon = true;
    queueMicrotask(() => {
      this.#sendsSoon = false;
      if (!this.#full) this.#sendAll();
    });
  }

  /** Sends ahead of all queued frames. */
  sendNow(text: string): void {
    try {
      void this.#link.send(text);
    } catch (error) {
      if (!(error instanceof LinkError)) throw error;
    }
  }

  /** The link has closed. Without a pong, the platform may have read everything or nothing. */
  end(): void {
    this.#cancelPing();
    this.#ready.clear();
    for (const reply of this.#unconfirmed.keys()) reply.resend();
  }

  #sendAll(): void {
    this.#pump();
    if (this.#mustPing) void this.#ping();
  }

  #pump(): void {
    for (const source of this.#ready) {
      this.#ready.delete(source);
      const outgoing = source.peek();
      if (outgoing === undefined) continue;
      let wait: void | Promise<void>;
      try {
        wait = this.#link.send(outgoing.text);
      } catch (error) {
        if (!(error instanceof LinkError)) throw error;
        return;
      }
      // Moves it to the end: a set is iterated in insertion order, including entries added during iteration.
      this.#ready.add(source);
      this.#noteSent(outgoing);
      source.sent();
      if (wait === undefined) continue;
      this.#full = true;
      void wait.then(() => {
        this.#full = false;
        this.#sendAll();
      });
      return;
    }
  }

  #noteSent({ once, reply }: OutgoingFrame): void {
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
    const sentBefore = this.#sent;
    for (const reply of this.#unconfirmed.keys()) reply.pingSent();
    const received = await this.#link.received();
    this.#pinging = false;
    if (!received) return;
    for (const [reply, number] of this.#unconfirmed) {
      const all = number <= sentBefore;
      if (all) this.#unconfirmed.delete(reply);
      reply.confirmed(all);
    }
    if (this.#unconfirmed.size > 0) this.#pingAfter(PING_AGAIN_MS);
  }
}

/**
 * Items of an answer that must not be sent twice and are known to be delivered. An answer is resent without them: text
 * replaces earlier text, but cards would be shown twice and commands executed twice.
 */
export class DeliveredItems {
  readonly #delivered = new Map<string, number>();
  #sent: string[] = [];
  /** Sent before the pending ping. */
  #pinged: string[] = [];
  #toSkip = new Map<string, number>();

  sent(frame: RenderedFrame): void {
    if (frame.once === true) this.#sent.push(keyOf(frame));
  }

  pingSent(): void {
    this.#pinged.push(...this.#sent.splice(0));
  }

  /** Everything sent before the pending ping has been delivered. */
  confirmed(): void {
    for (const key of this.#pinged.splice(0)) this.#delivered.set(key, (this.#delivered.get(key) ?? 0) + 1);
  }

  beginResend(): void {
    this.#sent = [];
    this.#pinged = [];
    this.#toSkip = new Map(this.#delivered);
  }

  /** What follows is new, even if it equals an earlier item. */
  endResend(): void {
    this.#toSkip.clear();
  }

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

const MAX_REMEMBERED_FRAMES = 10_000;

/**
 * Two servers may deliver the same frame, and one server may deliver it twice. A frame is identified by its ids and its content, while it is being answered and for a while after: other fields may
 * differ between servers. Ids alone are not sufficient: the answer to an agent's question has the ids of the message
 * that led to the question.
 */
export class DuplicateFilter {
  /** When each frame is forgotten; never while it is being answered. */
  readonly #seen = new BoundedMap<string, { until: number }>(MAX_REMEMBERED_FRAMES);
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Records a frame. Returns undefined for a duplicate. */
  add(content: unknown): ReceivedFrame | undefined {
    const key = createHash("sha256").update(JSON.stringify(content)).digest("base64url");
    const before = this.#seen.get(key);
    return before !== undefined && before.until > this.#clock.now() ? undefined : this.restore(key);
  }

  /** Records a frame that is being answered, possibly received by an earlier process. */
  restore(key: string): ReceivedFrame {
    const expiry = { until: Number.POSITIVE_INFINITY };
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
  /** Identifies the frame, also across processes. */
  readonly key: string;
  expireIn(keepMs: number): void;
  /** Later frames with the same ids and content are new. */
  forget(): void;
}
