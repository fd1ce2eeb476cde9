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
import type { Channel, Post } from "../../src/wire/channel.ts";
import { createDeferred } from "../../src/wire/link.ts";
import { RoomCalls } from "./room-calls.ts";
import { RoomReply } from "./room-reply.ts";

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
  readonly #replies = new Map<string, RoomReply>();
  readonly #open = new Set<RoomReply>();
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
      peer: (id): PeerCaller => this.#calls.peer(id),
      settle: (milliseconds) => this.#settle(milliseconds),
      close: () => {
        this.#closed = true;
        for (const reply of this.#open) reply.abandon();
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
    const answered = post.replyTo === undefined ? undefined : this.#replies.get(post.replyTo);
    if (answered !== undefined) {
      if (/^cancel$/i.test(post.text.trim())) await this.#cancel(post, answered);
      else await this.#answer(post, answered.participant, answered.contextId, answered.waitingTask);
      return;
    }
    const mentioned = [...new Set(post.mentions)].filter((id) => this.#settings.agents.has(id));
    const contextId = `${this.#settings.room}-${post.replyTo ?? post.id}`;
    await Promise.all(mentioned.map((participant) => this.#answer(post, participant, contextId)));
  }

  async #answer(post: Post, participant: string, contextId: string, taskId?: string): Promise<void> {
    const reply = this.#createReply(post, participant, contextId);
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
      const call = { caller: callerOf(this.#settings.room, post), tenant: "", extensions: [], dialect: "room" };
      await reply.follow(await service.dispatch({ kind: "stream", message }, call));
    } catch (error) {
      await reply.fail(toText(error));
    } finally {
      this.#open.delete(reply);
    }
  }

  async #cancel(post: Post, { participant, taskId }: RoomReply): Promise<void> {
    try {
      const { service } = this.#contextOf(participant, post);
      const call = { caller: callerOf(this.#settings.room, post), tenant: "", extensions: [], dialect: "room" };
      await service.dispatch({ kind: "cancel", id: taskId ?? "" }, call);
    } catch (error) {
      const reply = this.#createReply(post, participant, "");
      await reply.fail(toText(error));
      this.#open.delete(reply);
    }
  }

  #contextOf(participant: string, post: Post) {
    return this.#host.context(this.#settings.agents.get(participant) ?? "", callerOf(this.#settings.room, post));
  }

  #createReply(post: Post, participant: string, contextId: string): RoomReply {
    const reply = new RoomReply(
      { room: post.room, as: participant, replyTo: post.id, key: `${post.id}/${participant}` },
      contextId,
      () => this.#reachable(),
      (id) => this.#replies.set(id, reply),
    );
    this.#open.add(reply);
    return reply;
  }

  async #settle(milliseconds: number): Promise<void> {
    const late = new Promise<void>((resolve) => this.#tools.clock.after(milliseconds, resolve));
    await Promise.race([Promise.all([...this.#open].map((reply) => reply.shown)), late]);
  }
}

/** Whoever posted it is the caller: what one asked for is not another's to continue or to cancel. */
function callerOf(room: string, { sender }: Post): Caller {
  return { owner: `room:${room}:${sender.id}`, authenticated: true };
}

function toText(error: unknown): string {
  return ProtocolError.is(error) ? error.message : "Something went wrong.";
}
