/**
 * Messages on their way to a channel, at the pace of the network. Each room has a queue in which answers come before the
 * rest of long ones, participants take turns, and statuses wait until nothing else does.
 */

import type { Clock, Log } from "../../../core/model/ports.ts";
import { type Channel, type ChannelAbilities, ChannelError, type PostDraft } from "../../../core/wire/channel.ts";
import { createDeferred } from "../../../core/wire/link.ts";
import { toDrafts } from "../a2a-lite/drafts.ts";
import type { Outgoing } from "../a2a-lite/message.ts";

/** Messages that wait in one room. */
const MAX_WAITING = 200;
const MAX_ROOMS = 1_000;
/** How often a post is attempted of which it is not known whether it has arrived. */
const MAX_UNSURE_ATTEMPTS = 4;
const RETRY_MS = 1_000;
const MIN_RETRY_MS = 50;
const MAX_RETRY_MS = 10 * 60_000;

/** How long a room counts as slow after the network has refused a post for its rate. */
const SLOW_MS = 60_000;
/** The rest of a long message that has waited for so long comes before shorter ones. */
const MAX_WAIT_MS = 30_000;

interface Waiting {
  outgoing: Outgoing;
  signal: AbortSignal | undefined;
  readonly sent: PromiseWithResolvers<{ readonly id: string }>;
  /** Made with the abilities of the connection that posts the first one. */
  drafts: readonly PostDraft[];
  /** How many of them have been posted, and when the last one was. */
  posted: number;
  at: number;
  /** Attempts of which it is not known whether they have arrived. */
  unsure: number;
}

interface RoomQueue {
  readonly waiting: Waiting[];
  /** The one that is being posted. */
  current: Waiting | undefined;
  /** When the newest posts were sent, as many as the rate counts. */
  times: number[];
  /** When something was posted for a participant, by its id. */
  readonly served: Map<string, number>;
  running: boolean;
  /** As the network refuses posts: none before `notBefore`, then one in `everyMs`, and until `slowUntil` no status that others would wait for. */
  notBefore: number;
  everyMs: number;
  slowUntil: number;
}

interface OutboxTools {
  readonly clock: Clock;
  readonly log: Log;
  /** Unique, for messages without a key. */
  readonly uniqueId: () => string;
}

export class ChannelOutbox {
  readonly #tools: OutboxTools;
  readonly #rooms = new Map<string, RoomQueue>();
  readonly #closing = new AbortController();
  #channel: Channel | undefined;
  #attached = createDeferred();
  #idle = createDeferred();

  constructor(tools: OutboxTools) {
    this.#tools = tools;
  }

  /** Of the newest connection, also after it has closed; undefined before the first. */
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

  /** Resolves with the id of the last post once the network has accepted all of them. Waits for a connection. */
  send(outgoing: Outgoing, signal?: AbortSignal): Promise<{ readonly id: string }> {
    if (this.#closing.signal.aborted || signal?.aborted === true) return Promise.reject(closedError());
    const room = this.#room(outgoing.to.room);
    const older = room.waiting.find((one) => one !== room.current && isReplacedBy(one.outgoing, outgoing));
    if (older !== undefined) {
      Object.assign(older, { outgoing, signal, drafts: [], posted: 0, unsure: 0 });
      withdrawOnAbort(room, older, signal);
      return older.sent.promise;
    }
    // Where nothing else waits, one status delays nothing, and an agent that says nothing would seem to do nothing.
    if (isProgress(outgoing) && room.waiting.length > 0 && this.isSlow(outgoing.to.room))
      return Promise.reject(slowError());
    if (room.waiting.length >= MAX_WAITING && !dropStatus(room)) {
      return Promise.reject(new ChannelError("rate-limited", "Too many messages wait to be posted in this room."));
    }
    const at = this.#tools.clock.now();
    const one = {
      outgoing,
      signal,
      sent: withResolvers<{ readonly id: string }>(),
      drafts: [],
      posted: 0,
      at,
      unsure: 0,
    };
    room.waiting.push(one);
    withdrawOnAbort(room, one, signal);
    if (!room.running) void this.#run(room);
    return one.sent.promise;
  }

  /** Whether posts in this room have to wait for the network, so that only what matters should be sent. */
  isSlow(name: string): boolean {
    const room = this.#rooms.get(name);
    if (room === undefined) return false;
    const now = this.#tools.clock.now();
    return room.slowUntil > now || room.waiting.some((one) => !isProgress(one.outgoing) && now - one.at > RETRY_MS);
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

  /** Rejects all messages that wait. */
  close(): void {
    this.#closing.abort();
  }

  #room(name: string): RoomQueue {
    const known = this.#rooms.get(name);
    if (known !== undefined) return known;
    if (this.#rooms.size >= MAX_ROOMS) {
      for (const [other, { running }] of this.#rooms) if (!running) this.#rooms.delete(other);
    }
    const never = Number.NEGATIVE_INFINITY;
    const pace = { times: [], notBefore: never, everyMs: 0, slowUntil: never };
    const room: RoomQueue = { waiting: [], current: undefined, served: new Map(), running: false, ...pace };
    this.#rooms.set(name, room);
    return room;
  }

  async #run(room: RoomQueue): Promise<void> {
    room.running = true;
    try {
      while (room.waiting.length > 0) await this.#postNext(room);
    } catch (error) {
      // The process stops.
      for (const { sent } of room.waiting.splice(0)) sent.reject(error);
    }
    room.running = false;
    room.served.clear();
    this.#idle.resolve();
    this.#idle = createDeferred();
  }

  /** What is posted next is decided when the network accepts a post, and not before. */
  async #postNext(room: RoomQueue): Promise<void> {
    const { clock } = this.#tools;
    const channel = await this.#connected();
    await this.#pace(room, channel.abilities.rate);
    if (channel !== this.#channel) return;
    const one = this.#choose(room);
    if (one === undefined) return;
    room.current = one;
    try {
      const { edits, key = this.#tools.uniqueId() } = one.outgoing;
      if (one.drafts.length === 0) one.drafts = toDrafts(one.outgoing, channel.abilities, key);
      const draft = one.drafts[one.posted];
      if (draft === undefined) return withdraw(room, one);
      room.times.push(clock.now());
      const id = await sendDraft(channel, draft, one.drafts.length === 1 ? edits : undefined);
      const now = clock.now();
      one.posted++;
      one.unsure = 0;
      one.at = now;
      room.served.set(one.outgoing.to.peer.id, now);
      if (room.slowUntil > now) room.notBefore = now + room.everyMs;
      if (one.posted === one.drafts.length) {
        one.sent.resolve({ id });
        remove(room, one);
      } else if (one.signal?.aborted === true) withdraw(room, one);
    } catch (error) {
      await this.#handle(error, room, one, channel);
    } finally {
      room.current = undefined;
    }
  }

  /** A post that the network has not accepted is posted again, over as many connections as that takes. */
  async #handle(error: unknown, room: RoomQueue, one: Waiting, channel: Channel): Promise<void> {
    const { clock, log } = this.#tools;
    if (one.signal?.aborted === true) return withdraw(room, one);
    if (error instanceof ChannelError && error.code === "rate-limited") {
      const now = clock.now();
      const wait = Math.min(Math.max(error.retryAfterMs ?? RETRY_MS, MIN_RETRY_MS), MAX_RETRY_MS);
      // The first refusal may have other causes; the next one says how often a post is accepted.
      room.everyMs = room.slowUntil > now ? Math.max(room.everyMs, wait) : 0;
      room.notBefore = now + wait;
      room.slowUntil = now + wait + SLOW_MS;
      for (const other of room.waiting.filter((waiting) => isProgress(waiting.outgoing))) {
        other.sent.reject(slowError());
        remove(room, other);
      }
    } else if (error instanceof ChannelError && error.code === "closed") {
      // The host closes and detaches it, and opens the next one.
      await this.#race(channel.closed);
      this.detach(channel);
    } else if (error instanceof ChannelError || error instanceof RangeError || ++one.unsure === MAX_UNSURE_ATTEMPTS) {
      if (error instanceof ChannelError) {
        log.warn({ code: error.code, reason: error.message, room: one.outgoing.to.room }, "A post was refused.");
      }
      one.sent.reject(error);
      remove(room, one);
    } else await this.#pause(RETRY_MS * one.unsure);
  }

  #choose(room: RoomQueue): Waiting | undefined {
    const now = this.#tools.clock.now();
    const rankOf = (one: Waiting): number => {
      if (isProgress(one.outgoing)) return 3;
      if (one.posted > 0) return now - one.at > MAX_WAIT_MS ? 0 : 2;
      return typeof one.outgoing.content !== "string" && one.outgoing.content.type === "ack" ? 1 : 0;
    };
    const servedAt = ({ outgoing }: Waiting) => room.served.get(outgoing.to.peer.id) ?? Number.NEGATIVE_INFINITY;
    let best: Waiting | undefined;
    for (const one of room.waiting) {
      const isBetter =
        best === undefined ||
        rankOf(one) < rankOf(best) ||
        (rankOf(one) === rankOf(best) && servedAt(one) < servedAt(best));
      if (isBetter) best = one;
    }
    return best;
  }

  async #connected(): Promise<Channel> {
    for (;;) {
      if (this.#channel !== undefined && !this.#closing.signal.aborted) return this.#channel;
      await this.#race(this.#attached.promise);
    }
  }

  /** Waits until the network accepts one more post in the room. */
  async #pace(room: RoomQueue, { perMs, posts }: ChannelAbilities["rate"]): Promise<void> {
    const { clock } = this.#tools;
    for (;;) {
      room.times = room.times.filter((at) => at > clock.now() - perMs).slice(-posts);
      const [first] = room.times;
      const isFull = first !== undefined && room.times.length >= posts;
      const until = Math.max(room.notBefore, isFull ? first + perMs : Number.NEGATIVE_INFINITY);
      if (until <= clock.now()) return;
      await this.#pause(until - clock.now());
    }
  }

  async #pause(milliseconds: number): Promise<void> {
    const over = createDeferred();
    const cancel = this.#tools.clock.after(milliseconds, over.resolve);
    await this.#race(over.promise).finally(cancel);
  }

  /** Rejects if the outbox is closed before. */
  async #race(promise: Promise<unknown>): Promise<void> {
    const { signal } = this.#closing;
    if (signal.aborted) throw closedError();
    const stopped = withResolvers<never>();
    const reject = (): void => stopped.reject(closedError());
    signal.addEventListener("abort", reject, { once: true });
    try {
      await Promise.race([promise, stopped.promise]);
    } finally {
      signal.removeEventListener("abort", reject);
    }
  }
}

async function sendDraft(channel: Channel, draft: PostDraft, edits: string | undefined): Promise<string> {
  if (edits === undefined || channel.edit === undefined) return (await channel.post(draft)).id;
  await channel.edit(edits, draft);
  return edits;
}

function remove(room: RoomQueue, one: Waiting): void {
  const at = room.waiting.indexOf(one);
  if (at !== -1) room.waiting.splice(at, 1);
}

function withdraw(room: RoomQueue, one: Waiting): void {
  one.sent.reject(closedError());
  remove(room, one);
}

/** Withdraws a message when its sender gives it up; one that is being posted, after that. */
function withdrawOnAbort(room: RoomQueue, one: Waiting, signal: AbortSignal | undefined): void {
  if (signal === undefined) return;
  const leave = (): void => {
    if (one.signal === signal && one !== room.current) withdraw(room, one);
  };
  const forget = (): void => signal.removeEventListener("abort", leave);
  signal.addEventListener("abort", leave);
  one.sent.promise.then(forget, forget);
}

/** Shows how far a task is, which the next status or the result will show as well. */
function isProgress({ content, progress = false }: Outgoing): boolean {
  if (typeof content === "string" || content.type !== "status") return progress;
  return content.state === "accepted" || content.state === "working";
}

/** A newer status, or the result, says all that an older status or `ack` says; what must be answered stays. */
function isReplacedBy(older: Outgoing, newer: Outgoing): boolean {
  const { content: before, to } = older;
  const { content } = newer;
  if (typeof before === "string" || typeof content === "string") return false;
  if (content.type !== "result" && (content.type !== "status" || (before.type === "ack" && isProgress(newer))))
    return false;
  if (before.type !== "ack" && !isProgress(older)) return false;
  const isSame = "task" in before && before.task === content.task;
  return isSame && to.peer.id === newer.to.peer.id && to.thread === newer.to.thread;
}

function dropStatus({ current, waiting }: RoomQueue): boolean {
  const at = waiting.findIndex((one) => one !== current && isProgress(one.outgoing));
  if (at === -1) return false;
  const [dropped] = waiting.splice(at, 1);
  dropped?.sent.reject(slowError());
  return true;
}

function slowError(): ChannelError {
  return new ChannelError("rate-limited", "Other messages took the place of this status.");
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
