/** The carrier of one configured channel: its connections, and what becomes of the posts that arrive over them. */

import type { Carrier, CarrierHost } from "../../../core/dialects/carrier.ts";
import type { DialectTools } from "../../../core/dialects/contract.ts";
import type { Channel, Post } from "../../../core/wire/channel.ts";
import type { Closure } from "../../../core/wire/connection.ts";
import type { Received } from "../a2a-lite/message.ts";
import { parsePost } from "../a2a-lite/parse.ts";
import { Admission } from "./admission.ts";
import { ChatTasks } from "./chat-tasks.ts";
import { type ChannelCalls, type ChannelEntry, DEFAULT_POLICY } from "./options.ts";
import { ChannelOutbox } from "./outbox.ts";
import { PieceJoiner } from "./piece-joiner.ts";
import { Replies } from "./reply.ts";
import { ChannelServer } from "./serve.ts";

/** The agent must be one of the host's. */
export function createChannelCarrier(entry: ChannelEntry, host: CarrierHost, tools: DialectTools): Carrier<Channel> {
  const bound = new BoundChannel(entry, host, tools);
  const { label, name, network, policy = DEFAULT_POLICY } = entry;
  return {
    name,
    open: [
      {
        label,
        about: { channel: name, network, agent: entry.agent },
        policy,
        dial: async (signal) => entry.open({ cursors: await bound.cursors(), signal }),
        converse: (channel) => bound.converse(channel),
      },
    ],
    deliver: (delivery) => bound.replies.deliver(delivery),
    peer: (id) => bound.calls?.peer(id),
    settle: (milliseconds) => bound.outbox.settle(milliseconds),
    close: () => bound.close(),
    renew: () => createChannelCarrier(entry, host, tools),
  };
}

class BoundChannel {
  readonly outbox: ChannelOutbox;
  readonly calls: ChannelCalls | undefined;
  readonly replies: Replies;
  readonly #entry: ChannelEntry;
  readonly #tools: DialectTools;
  readonly #tasks: ChatTasks;
  readonly #joiner: PieceJoiner;
  readonly #server: ChannelServer;
  /** By room: resolves when all posts so far are served. */
  readonly #served = new Map<string, Promise<void>>();
  #channel: Channel | undefined;
  #closed = false;

  constructor(entry: ChannelEntry, host: CarrierHost, tools: DialectTools) {
    const { clock, ids, log } = tools;
    this.#entry = entry;
    this.#tools = tools;
    this.#tasks = new ChatTasks(host.records, entry.name);
    this.#joiner = new PieceJoiner(clock);
    this.outbox = new ChannelOutbox({ clock, log, uniqueId: ids.message });
    const self = () => this.#channel?.self;
    this.calls = entry.calls?.({ ...tools, host, entry, outbox: this.outbox, self });
    const admission = new Admission({ ...entry, clock });
    const shared = { entry, host, tools, outbox: this.outbox, tasks: this.#tasks, admission };
    this.replies = new Replies(shared);
    this.#server = new ChannelServer({ ...shared, replies: this.replies });
  }

  cursors(): Promise<ReadonlyMap<string, string>> {
    return this.#tasks.cursors();
  }

  async converse(channel: Channel): Promise<Closure> {
    this.#channel = channel;
    this.outbox.attach(channel);
    try {
      for await (const post of channel.posts) {
        if (!this.#closed) void this.#receive(post, channel).then(() => channel.acknowledge?.(post));
      }
    } finally {
      this.outbox.detach(channel);
    }
    return channel.closed;
  }

  close(): void {
    this.#closed = true;
    this.calls?.close();
    this.replies.close();
    this.outbox.close();
  }

  /** Resolves when the network need not deliver it again. Pieces are not kept until the last one has arrived. */
  #receive(post: Post, { abilities, self }: Channel): Promise<void> {
    const { room, sender } = post;
    if (sender.self || sender.id === self.id || !this.#isServedRoom(post)) return Promise.resolve();
    if (this.#tasks.isRepeated(post)) return this.#served.get(room) ?? Promise.resolve();
    const received = this.#join(post, !abilities.lines);
    const served = received === undefined ? Promise.resolve() : this.#hand(received, self);
    this.#moveCursor(post, served);
    return served;
  }

  /** Undefined while pieces are missing. */
  #join(post: Post, singleLine: boolean): Received | undefined {
    const parsed = parsePost(post.text, { singleLine });
    if (parsed.kind !== "message" || parsed.piece === undefined) return { post, parsed, files: post.files };
    const joined = this.#joiner.add(post, parsed.message, parsed.piece);
    if (joined.kind === "whole") {
      return { post, parsed: { kind: "message", message: joined.message }, files: joined.files };
    }
    // One refusal for the whole message.
    if (joined.kind === "incomplete" || !joined.isFirst) return undefined;
    const { message } = parsed;
    const task = "task" in message ? message.task : "id" in message ? message.id : undefined;
    return {
      post,
      parsed: { kind: "invalid", type: message.type, problem: joined.problem, task, to: message.to },
      files: [],
    };
  }

  async #hand(received: Received, self: Channel["self"]): Promise<void> {
    if (this.calls?.take(received) === true) return this.calls.stored();
    if (received.post.edits !== undefined) return;
    await this.#server.serve(received, self);
  }

  #isServedRoom({ direct, room }: Post): boolean {
    const { rooms } = this.#entry;
    return direct || rooms === undefined || rooms.includes(room);
  }

  /**
   * When this post and all before it are served: others are read again after a restart. A post that follows at once
   * stores its own.
   */
  #moveCursor({ cursor, room }: Post, served: Promise<void>): void {
    const before = this.#served.get(room) ?? Promise.resolve();
    const moved = Promise.all([before, served])
      .then(async () => {
        if (this.#served.get(room) !== moved) return;
        if (cursor !== undefined && !this.#closed) await this.#tasks.putCursor(room, cursor);
      })
      .catch((error: unknown) => {
        this.#tools.log.warn({ err: error, channel: this.#entry.name }, "A cursor could not be stored.");
      })
      .then(() => {
        if (this.#served.get(room) === moved) this.#served.delete(room);
      });
    this.#served.set(room, moved);
  }
}
