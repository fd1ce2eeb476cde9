/** Messages on their way to a channel: one queue per room, in order, at the pace of the network. */

import type { Clock, Log } from "../../model/ports.ts";
import { type Channel, type ChannelAbilities, ChannelError, type PostDraft } from "../../wire/channel.ts";
import { createDeferred } from "../../wire/link.ts";
import { toDrafts } from "./drafts.ts";
import type { Outbox, Outgoing } from "./message.ts";

/** Messages that wait in one room. */
const MAX_WAITING = 200;
const MAX_ROOMS = 1_000;
/** How often a post is attempted of which it is not known whether it has arrived. */
const MAX_UNSURE_ATTEMPTS = 4;
const RETRY_MS = 1_000;
const MIN_RETRY_MS = 50;
const MAX_RETRY_MS = 10 * 60_000;

interface Waiting {
  outgoing: Outgoing;
  signal: AbortSignal | undefined;
  readonly sent: PromiseWithResolvers<{ readonly id: string }>;
}

interface RoomQueue {
  readonly waiting: Waiting[];
  /** When the newest posts were sent, as many as the rate counts. */
  times: number[];
  running: boolean;
}

interface OutboxTools {
  readonly clock: Clock;
  readonly log: Log;
  /** Unique, for messages without a key. */
  readonly uniqueId: () => string;
}

export class ChannelOutbox implements Outbox {
  readonly #tools: OutboxTools;
  readonly #rooms = new Map<string, RoomQueue>();
  readonly #closing = new AbortController();
  #channel: Channel | undefined;
  #attached = createDeferred();
  #idle = createDeferred();

  constructor(tools: OutboxTools) {
    this.#tools = tools;
  }

  /** Of the newest connection, also after it has closed. */
  abilities: ChannelAbilities | undefined;

  /** Uses the channel until it is detached. */
  attach(channel: Channel): void {
    this.#channel = channel;
    this.abilities = channel.abilities;
    this.#attached.resolve();
  }

  detach(channel: Channel): void {
    if (this.#channel !== channel) return;
    this.#channel = undefined;
    this.#attached = createDeferred();
  }

  send(outgoing: Outgoing, signal?: AbortSignal): Promise<{ readonly id: string }> {
    if (this.#closing.signal.aborted) return Promise.reject(closedError());
    const room = this.#room(outgoing.to.room);
    const older = room.waiting.find((one, at) => (at > 0 || !room.running) && isReplacedBy(one.outgoing, outgoing));
    if (older !== undefined) {
      older.outgoing = outgoing;
      older.signal = signal;
      return older.sent.promise;
    }
    if (room.waiting.length >= MAX_WAITING && !dropStatus(room)) {
      return Promise.reject(new ChannelError("rate-limited", "Too many messages wait to be posted in this room."));
    }
    const one = { outgoing, signal, sent: withResolvers<{ readonly id: string }>() };
    room.waiting.push(one);
    if (!room.running) void this.#run(room);
    return one.sent.promise;
  }

  /** Resolves when nothing waits, or after this time. */
  async settle(milliseconds: number): Promise<void> {
    const { clock } = this.#tools;
    const late = withResolvers<void>();
    const cancel = clock.after(milliseconds, late.resolve);
    let isLate = false;
    void late.promise.then(() => {
      isLate = true;
    });
    while (!isLate && [...this.#rooms.values()].some(({ running }) => running)) {
      await Promise.race([this.#idle.promise, late.promise]);
    }
    cancel();
  }

  /** What waits is rejected. */
  close(): void {
    this.#closing.abort();
  }

  #room(name: string): RoomQueue {
    const known = this.#rooms.get(name);
    if (known !== undefined) return known;
    if (this.#rooms.size >= MAX_ROOMS) {
      for (const [other, { running }] of this.#rooms) if (!running) this.#rooms.delete(other);
    }
    const room: RoomQueue = { waiting: [], times: [], running: false };
    this.#rooms.set(name, room);
    return room;
  }

  async #run(room: RoomQueue): Promise<void> {
    room.running = true;
    for (let one = room.waiting[0]; one !== undefined; one = room.waiting[0]) {
      try {
        const id = await this.#sendOne(room, one);
        one.sent.resolve({ id });
      } catch (error) {
        one.sent.reject(error);
      }
      room.waiting.shift();
    }
    room.running = false;
    this.#idle.resolve();
    this.#idle = createDeferred();
  }

  async #sendOne(room: RoomQueue, { outgoing, signal }: Waiting): Promise<string> {
    const stop = signal === undefined ? this.#closing.signal : AbortSignal.any([signal, this.#closing.signal]);
    const { abilities } = await this.#connected(stop);
    const { edits, key = this.#tools.uniqueId() } = outgoing;
    const drafts = toDrafts(outgoing, abilities, key);
    let id = "";
    for (const draft of drafts) {
      id = await this.#post(room, draft, drafts.length === 1 ? edits : undefined, stop);
    }
    return id;
  }

  /** Until the network has accepted it, over as many connections as that takes. */
  async #post(room: RoomQueue, draft: PostDraft, edits: string | undefined, stop: AbortSignal): Promise<string> {
    for (let unsure = 0; ; ) {
      const channel = await this.#connected(stop);
      await this.#pace(room, channel.abilities.rate, stop);
      if (channel !== this.#channel) continue;
      room.times.push(this.#tools.clock.now());
      try {
        if (edits === undefined || channel.edit === undefined) return (await channel.post(draft)).id;
        await channel.edit(edits, draft);
        return edits;
      } catch (error) {
        if (!(error instanceof ChannelError)) {
          if (++unsure === MAX_UNSURE_ATTEMPTS) throw error;
          await this.#pause(RETRY_MS * unsure, stop);
        } else if (error.code === "rate-limited") {
          const wait = error.retryAfterMs ?? RETRY_MS;
          await this.#pause(Math.min(Math.max(wait, MIN_RETRY_MS), MAX_RETRY_MS), stop);
        } else if (error.code === "closed") {
          // The host closes and detaches it, and opens the next one.
          await this.#race(channel.closed, stop);
          this.detach(channel);
        } else {
          this.#tools.log.warn({ code: error.code, reason: error.message, room: draft.room }, "A post was refused.");
          throw error;
        }
      }
    }
  }

  async #connected(stop: AbortSignal): Promise<Channel> {
    for (;;) {
      if (this.#channel !== undefined && !stop.aborted) return this.#channel;
      await this.#race(this.#attached.promise, stop);
    }
  }

  /** Waits until the network accepts one more post in the room. */
  async #pace(room: RoomQueue, { perMs, posts }: ChannelAbilities["rate"], stop: AbortSignal): Promise<void> {
    const { clock } = this.#tools;
    for (;;) {
      room.times = room.times.filter((at) => at > clock.now() - perMs).slice(-posts);
      const [first] = room.times;
      if (first === undefined || room.times.length < posts) return;
      await this.#pause(first + perMs - clock.now(), stop);
    }
  }

  async #pause(milliseconds: number, stop: AbortSignal): Promise<void> {
    const over = createDeferred();
    const cancel = this.#tools.clock.after(milliseconds, over.resolve);
    await this.#race(over.promise, stop).finally(cancel);
  }

  /** Rejects if it is stopped before. */
  async #race(promise: Promise<unknown>, stop: AbortSignal): Promise<void> {
    if (stop.aborted) throw closedError();
    const stopped = withResolvers<never>();
    const reject = (): void => stopped.reject(closedError());
    stop.addEventListener("abort", reject, { once: true });
    try {
      await Promise.race([promise, stopped.promise]);
    } finally {
      stop.removeEventListener("abort", reject);
    }
  }
}

/** A newer status, or the result, says all that an older status says; what must be answered stays. */
function isReplacedBy({ content: older, to: before }: Outgoing, { content: newer, to }: Outgoing): boolean {
  if (typeof older === "string" || typeof newer === "string" || older.type !== "status") return false;
  if (newer.type !== "status" && newer.type !== "result") return false;
  if (older.state === "input-required" || older.state === "rejected") return false;
  return older.task === newer.task && before.peer.id === to.peer.id && before.thread === to.thread;
}

function dropStatus({ running, waiting }: RoomQueue): boolean {
  const at = waiting.findIndex(
    ({ outgoing: { content } }, index) =>
      (index > 0 || !running) &&
      typeof content !== "string" &&
      content.type === "status" &&
      content.state !== "input-required",
  );
  if (at === -1) return false;
  const [dropped] = waiting.splice(at, 1);
  dropped?.sent.reject(new ChannelError("rate-limited", "Newer messages took the place of this status."));
  return true;
}

function closedError(): ChannelError {
  return new ChannelError("closed", "The message was not sent: its sender has stopped.");
}

interface PromiseWithResolvers<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (reason: unknown) => void;
}

function withResolvers<T>(): PromiseWithResolvers<T> {
  let resolve: (value: T) => void = () => {};
  let reject: (reason: unknown) => void = () => {};
  const promise = new Promise<T>((onResolve, onReject) => {
    resolve = onResolve;
    reject = onReject;
  });
  return { promise, resolve, reject };
}
