/**
 * A dialect for rooms that people and agents share: a caller per post, an agent per mention, answers as replies that are
 * edited while they grow. A reply to an answer continues or cancels it. Written against the contract alone.
 */
import type { Carrier, CarrierHost, PeerCaller } from "../../src/dialects/carrier.ts";
import type { Dialect, DialectTools } from "../../src/dialects/contract.ts";
import type { BackoffPolicy } from "../../src/model/backoff.ts";
import type { Caller } from "../../src/model/caller.ts";
import { ProtocolError } from "../../src/model/errors.ts";
import type { Message } from "../../src/model/message.ts";
import type { Delivery } from "../../src/model/operation.ts";
import { isInterrupted, isTerminal, type Task } from "../../src/model/task.ts";
import { createDeferred } from "../../src/wire/link.ts";
import type { Channel, Post } from "./channel.ts";
import { RoomCalls } from "./room-calls.ts";
import { type ReplyAddress, RoomReply } from "./room-reply.ts";

export interface RoomSettings {
  readonly room: string;
  /** Id of a participant, and the agent that it is. */
  readonly agents: ReadonlyMap<string, string>;
  /** Participant that asks peers. */
  readonly asker: string;
  readonly policy: BackoffPolicy;
  dial(since: string | undefined, signal: AbortSignal): Promise<Channel>;
}

const NO_OPERATION = { get: false, list: false, subscribe: false, "extended-card": false } as const;
const NO_PUSH = { "push-create": false, "push-get": false, "push-list": false, "push-delete": false } as const;

export function createRoom(tools: DialectTools, settings: RoomSettings): Dialect {
  return {
    name: "room",
    can: {
      streaming: true,
      replay: false,
      operations: { send: true, stream: true, cancel: true, ...NO_OPERATION, ...NO_PUSH },
      parts: { text: true, raw: true, url: true, data: false },
      artifacts: false,
      inputRequired: true,
      metadata: false,
    },
    losses: [],
    serving: { carriers: async (host) => [new RoomCarrier(host, tools, settings).carrier] },
    calling: [],
  };
}

class RoomCarrier {
  readonly carrier: Carrier<Channel>;
  readonly #host: CarrierHost;
  readonly #tools: DialectTools;
  readonly #settings: RoomSettings;
  readonly #calls: RoomCalls;
  /** By the id of the post that shows them. */
  readonly #posted = new Map<string, RoomReply>();
  /** By task and delivery. */
  readonly #replies = new Map<string, RoomReply>();
  readonly #showing = new Set<Promise<unknown>>();
  readonly #seen = new Set<string>();
  #channel: Channel | undefined;
  #connected = createDeferred();
  #last: string | undefined;
  #closed = false;

  constructor(host: CarrierHost, tools: DialectTools, settings: RoomSettings) {
    this.#host = host;
    this.#tools = tools;
    this.#settings = settings;
    this.#calls = new RoomCalls(settings, host.ids, () => this.#reachable());
    const { policy, room } = settings;
    this.carrier = {
      name: `room:${room}`,
      open: [
        {
          label: `the room ${room}`,
          about: { room },
          policy,
          dial: (signal) => settings.dial(this.#last, signal),
          converse: (channel) => this.#converse(channel),
        },
      ],
      deliver: (delivery) => this.#deliver(delivery),
      peer: (id): PeerCaller => this.#calls.peer(id),
      settle: (milliseconds) => this.#settle(milliseconds),
      close: () => {
        this.#closed = true;
      },
    };
  }

  async #converse(channel: Channel) {
    this.#channel = channel;
    this.#connected.resolve();
    for await (const post of channel.posts) {
      // Nothing was seen before the first post: history begins there.
      this.#last = post.id;
      if (this.#seen.has(post.id) || this.#closed) continue;
      this.#seen.add(post.id);
      if (!this.#calls.take(post) && !post.sender.self && post.edits === undefined) void this.#receive(post);
    }
    this.#channel = undefined;
    this.#connected = createDeferred();
    return channel.closed;
  }

  async #reachable(): Promise<Channel> {
    while (this.#channel === undefined) await this.#connected.promise;
    return this.#channel;
  }

  async #receive(post: Post): Promise<void> {
    const answered = post.replyTo === undefined ? undefined : this.#posted.get(post.replyTo);
    if (answered !== undefined) {
      if (/^cancel$/i.test(post.text.trim())) await this.#cancel(post, answered);
      else await this.#answer(post, answered.address.as, answered.address.contextId, answered.waitingTask);
      return;
    }
    const mentioned = [...new Set(post.mentions)].filter((id) => this.#settings.agents.has(id));
    const contextId = `${this.#settings.room}-${post.replyTo ?? post.id}`;
    await Promise.all(mentioned.map((participant) => this.#answer(post, participant, contextId)));
  }

  async #answer(post: Post, participant: string, contextId: string, taskId?: string): Promise<void> {
    const address: ReplyAddress = { room: post.room, replyTo: post.id, as: participant, contextId };
    try {
      const { ids, service } = this.#contextOf(participant, post);
      const message: Message = {
        messageId: ids.message(),
        role: "ROLE_USER",
        parts: [
          ...(post.text === "" ? [] : [{ text: post.text }]),
          ...post.files.map(({ mediaType, name, url }) => ({ url, filename: name, mediaType })),
        ],
        ...(taskId === undefined ? { contextId: `${contextId}-${participant}` } : { taskId }),
      };
      const route = this.carrier.name;
      const replyTo = { id: post.id, route, address: JSON.stringify(address), wants: "events" } as const;
      const configuration = { returnImmediately: true };
      await service.dispatch({ kind: "send", message, configuration, replyTo }, this.#callOf(post));
    } catch (error) {
      await this.#refuse(address, error);
    }
  }

  /** Every event changes the same post, which therefore shows the task as a whole. */
  async #deliver(delivery: Delivery): Promise<void> {
    const { address, cursor: before, id, taskId } = delivery.record;
    const key = JSON.stringify([taskId, id]);
    const reply = this.#replies.get(key) ?? new RoomReply(JSON.parse(address) as ReplyAddress, before > 0);
    this.#replies.set(key, reply);
    let cursor = before;
    while (!delivery.signal.aborted) {
      const entries = await delivery.read(cursor);
      const last = entries?.at(-1)?.number;
      const task = entries === undefined ? undefined : await delivery.task(last);
      if (task === undefined) return void (await delivery.done());
      if (last === undefined) return void (await delivery.release(cursor));
      reply.task = task;
      if (!(await this.#show(reply, task, delivery.signal))) return;
      cursor = last;
      const { state } = task.status;
      if (isTerminal(state) || isInterrupted(state)) {
        this.#replies.delete(key);
        return void (await delivery.done());
      }
      await delivery.hold(cursor);
    }
  }

  /** On the next connection if this one closes; false if the signal was aborted before it was shown. */
  async #show(reply: RoomReply, content: Task | string, signal?: AbortSignal): Promise<boolean> {
    const aborted = new Promise<undefined>((resolve) => signal?.addEventListener("abort", () => resolve(undefined)));
    for (;;) {
      const channel = await Promise.race([this.#reachable(), aborted]);
      if (channel === undefined || signal?.aborted === true) return false;
      try {
        const shown = reply.show(channel, content);
        this.#showing.add(shown);
        this.#posted.set(await shown.finally(() => this.#showing.delete(shown)), reply);
        return true;
      } catch {
        // Nobody knows what arrived: the next connection gets it again, under the same key.
        await channel.closed;
      }
    }
  }

  async #refuse(address: ReplyAddress, error: unknown): Promise<void> {
    await this.#show(new RoomReply(address, false), toText(error));
  }

  async #cancel(post: Post, { address: { as, contextId, room }, task }: RoomReply): Promise<void> {
    try {
      const { service } = this.#contextOf(as, post);
      await service.dispatch({ kind: "cancel", id: task?.id ?? "" }, this.#callOf(post));
    } catch (error) {
      await this.#refuse({ room, replyTo: post.id, as, contextId }, error);
    }
  }

  #contextOf(participant: string, post: Post) {
    return this.#host.context(this.#settings.agents.get(participant) ?? "", callerOf(this.#settings.room, post));
  }

  #callOf(post: Post) {
    return { caller: callerOf(this.#settings.room, post), tenant: "", extensions: [], dialect: "room" };
  }

  async #settle(milliseconds: number): Promise<void> {
    const late = new Promise<void>((resolve) => this.#tools.clock.after(milliseconds, resolve));
    await Promise.race([Promise.allSettled(this.#showing), late]);
  }
}

/** Whoever posted it is the caller: what one asked for is not another's to continue or to cancel. */
function callerOf(room: string, { sender }: Post): Caller {
  return { owner: `room:${room}:${sender.id}`, authenticated: true };
}

function toText(error: unknown): string {
  return ProtocolError.is(error) ? error.message : "Something went wrong.";
}
