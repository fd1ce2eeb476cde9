/** A chat network in memory. It enforces the abilities that it states, and records every post as it was sent. */
import type { Clock } from "../../../../core/model/ports.ts";
import {
  type Channel,
  type ChannelAbilities,
  ChannelError,
  type DraftFile,
  type Post,
  type PostDraft,
} from "../../../../core/wire/channel.ts";
import { ABNORMAL_CLOSURE, type Closure, NORMAL_CLOSURE } from "../../../../core/wire/connection.ts";
import { createDeferred } from "../../../../core/wire/link.ts";

export interface Member {
  readonly id: string;
  readonly name: string;
  readonly bot: boolean;
}

/** As it was sent; an edit is a record of its own. */
export interface RawPost {
  readonly id: string;
  readonly by: string;
  readonly room: string;
  readonly thread?: string;
  readonly text: string;
  readonly mentions: readonly string[];
  readonly replyTo?: string;
  readonly edits?: string;
  readonly files: readonly DraftFile[];
  readonly at: number;
}

interface NetworkOptions {
  /** Posts of one participant that are accepted, in all rooms: so many at once, then as time passes. */
  readonly bucket?: { readonly burst: number; readonly perSecond: number };
  /** Posts that were not acknowledged are delivered again. */
  readonly acknowledgements?: boolean;
  readonly clock: Clock;
  readonly abilities?: Partial<ChannelAbilities>;
  /** Participants get their own posts, too. */
  readonly echo?: boolean;
  /** How many posts every new connection gets again. */
  readonly replays?: number;
  /** The network recognises the key of a draft. */
  readonly keys?: boolean;
  /** The network authenticates senders and tells bots from people. */
  readonly verified?: boolean;
}

const ABILITIES: ChannelAbilities = {
  text: { max: 2_000, unit: "characters" },
  lines: true,
  maxFileBytes: 1_000_000,
  edits: true,
  replies: true,
  seesBots: "all",
  rate: { posts: 1_000, perMs: 1_000 },
  history: true,
};

const ROOM = "lobby";

/** Room of the direct messages of two participants. */
export function directRoom(one: string, other: string): string {
  return `dm:${[one, other].sort().join(",")}`;
}

export class MemoryNetwork {
  readonly abilities: ChannelAbilities;
  readonly posts: RawPost[] = [];
  /** Of the next posts of channels; `lost`: it has arrived, but its sender does not know; `keep`: it does not fail. */
  readonly failures: (Error | "lost" | "keep")[] = [];
  readonly #options: NetworkOptions;
  readonly #connections = new Set<MemoryChannel>();
  readonly #members = new Map<string, Member>();
  readonly #keys = new Map<string, string>();
  readonly #buckets = new Map<string, { readonly tokens: number; readonly at: number }>();
  /** Ids of posts by participant. */
  readonly #unacknowledged = new Map<string, Set<string>>();

  constructor(options: NetworkOptions) {
    this.#options = options;
    this.abilities = { ...ABILITIES, ...options.abilities };
  }

  /** Connects a participant. */
  open(member: Member, cursors: ReadonlyMap<string, string> = new Map()): Channel {
    this.#members.set(member.id, member);
    const channel = new MemoryChannel(this, member, (closed) => this.#connections.delete(closed));
    const unacknowledged = this.unacknowledged(member.id);
    const replayed = this.posts.slice(this.posts.length - (this.#options.replays ?? 0));
    const missed = this.posts.filter(({ id, room }) => {
      const cursor = cursors.get(room);
      return cursor !== undefined && this.abilities.history && Number(id.slice(1)) > Number(cursor.slice(1));
    });
    for (const post of this.posts) {
      if (replayed.includes(post) || missed.includes(post) || unacknowledged.includes(post.id)) {
        this.#deliver(channel, post);
      }
    }
    this.#connections.add(channel);
    return channel;
  }

  /** Breaks the connections of a participant. */
  break(id: string): void {
    for (const channel of this.#connections) if (channel.member.id === id) channel.end(ABNORMAL_CLOSURE);
  }

  /** A participant without a connection posts something. */
  say(
    by: Member,
    text: string,
    more: Partial<Omit<PostDraft, "mentions" | "replyTo">> & Partial<SayOptions> = {},
  ): RawPost {
    this.#members.set(by.id, by);
    const { files = [], mentions = [], room = ROOM, replyTo, thread, edits } = more;
    return this.#add({
      by: by.id,
      room,
      text,
      mentions,
      files,
      ...(replyTo !== undefined && { replyTo }),
      ...(thread !== undefined && { thread }),
      ...(edits !== undefined && { edits }),
    });
  }

  /** Every connection gets this post again. */
  repeat(post: RawPost): void {
    for (const channel of this.#connections) this.#deliver(channel, post);
  }

  /** Ids of the posts that a participant has got and not acknowledged. */
  unacknowledged(id: string): readonly string[] {
    return [...(this.#unacknowledged.get(id) ?? [])];
  }

  acknowledge(member: Member, post: Post): void {
    this.#unacknowledged.get(member.id)?.delete(post.id);
  }

  /** Raw texts of one participant, edits included. */
  textsOf(by: string): readonly string[] {
    return this.posts.filter((post) => post.by === by).map(({ text }) => text);
  }

  accept(member: Member, draft: PostDraft, edits?: string): string {
    const failure = this.failures.shift();
    if (failure instanceof Error) throw failure;
    const known = this.#options.keys === true && draft.key !== undefined ? this.#keys.get(draft.key) : undefined;
    if (known !== undefined && edits === undefined) return known;
    this.#check(member, draft, edits);
    const { files = [], mentions = [], replyTo, room, text, thread } = draft;
    const { id } = this.#add({
      by: member.id,
      room,
      text,
      mentions: mentions.map((mentioned) => mentioned.id),
      files,
      ...(replyTo !== undefined && { replyTo }),
      ...(thread !== undefined && { thread }),
      ...(edits !== undefined && { edits }),
    });
    if (draft.key !== undefined) this.#keys.set(draft.key, id);
    if (failure === "lost") throw new Error("The answer was lost.");
    return id;
  }

  #check(member: Member, { files = [], replyTo, room, text }: PostDraft, edits: string | undefined): void {
    const { lines, maxFileBytes, rate, replies, text: limit } = this.abilities;
    const length = limit.unit === "bytes" ? Buffer.byteLength(text) : text.length;
    if (room === "closed") throw new ChannelError("no-access", "There is no such room.");
    if (length > limit.max) throw new ChannelError("refused", `The text has ${length} of ${limit.max} ${limit.unit}.`);
    if (!lines && text.includes("\n")) throw new ChannelError("refused", "The text has several lines.");
    if (text === "" && files.length === 0) throw new ChannelError("refused", "The post is empty.");
    if (!replies && replyTo !== undefined) throw new ChannelError("refused", "There are no replies.");
    if (files.some(({ bytes }) => bytes.length > maxFileBytes))
      throw new ChannelError("refused", "A file is too large.");
    const original = this.posts.find(({ id }) => id === edits);
    if (edits !== undefined && original?.by !== member.id) throw new ChannelError("refused", "Not your post.");
    const now = this.#options.clock.now();
    this.#take(member, now);
    const recent = this.posts.filter(
      (post) => post.by === member.id && post.room === room && post.at > now - rate.perMs,
    );
    const [first] = recent.slice(-rate.posts);
    if (first === undefined || recent.length < rate.posts) return;
    throw new ChannelError("rate-limited", "Too fast.", { retryAfterMs: first.at + rate.perMs - now });
  }

  /** As Synapse does it. */
  #take({ id }: Member, now: number): void {
    const { bucket } = this.#options;
    if (bucket === undefined) return;
    const { at, tokens: before } = this.#buckets.get(id) ?? { at: now, tokens: bucket.burst };
    const tokens = Math.min(bucket.burst, before + ((now - at) / 1_000) * bucket.perSecond);
    const isTaken = tokens >= 1;
    this.#buckets.set(id, { tokens: isTaken ? tokens - 1 : tokens, at: now });
    const retryAfterMs = Math.ceil(((1 - tokens) / bucket.perSecond) * 1_000);
    if (!isTaken) throw new ChannelError("rate-limited", "M_LIMIT_EXCEEDED", { retryAfterMs });
  }

  #add(post: Omit<RawPost, "id" | "at">): RawPost {
    const added = { ...post, id: `p${this.posts.length + 1}`, at: this.#options.clock.now() };
    this.posts.push(added);
    for (const channel of this.#connections) this.#deliver(channel, added);
    return added;
  }

  #deliver(channel: MemoryChannel, raw: RawPost): void {
    const { member } = channel;
    const sender = this.#members.get(raw.by) ?? { id: raw.by, name: raw.by, bot: false };
    const isOwn = raw.by === member.id;
    const isDirect = raw.room.startsWith("dm:");
    if (isDirect && !raw.room.slice("dm:".length).split(",").includes(member.id)) return;
    if (isOwn && this.#options.echo !== true) return;
    const { seesBots } = this.abilities;
    const isAddressed = isDirect || raw.mentions.includes(member.id);
    if (sender.bot && !isOwn && (seesBots === "none" || (seesBots === "mentions" && !isAddressed))) return;
    if (this.#options.acknowledgements === true) {
      this.#unacknowledged.set(member.id, new Set([...this.unacknowledged(member.id), raw.id]));
    }
    const { by, files, at, ...rest } = raw;
    const verified = this.#options.verified ?? true;
    channel.push({
      ...rest,
      at,
      direct: isDirect,
      sender: { id: by, name: sender.name, bot: sender.bot && verified, self: isOwn, verified },
      files: files.map(({ bytes, mediaType, name }) => ({
        name,
        mediaType,
        size: bytes.length,
        read: async (maxBytes) => {
          if (bytes.length > maxBytes) throw new ChannelError("refused", "The file is too large.");
          return bytes;
        },
      })),
      ...(this.abilities.history && { cursor: raw.id }),
    });
  }
}

interface SayOptions {
  readonly mentions: readonly string[];
  readonly replyTo: string | undefined;
  readonly edits: string;
}

class MemoryChannel implements Channel {
  readonly abilities: ChannelAbilities;
  readonly self: { readonly id: string; readonly name: string };
  readonly closed: Promise<Closure>;
  readonly member: Member;
  readonly edit?: NonNullable<Channel["edit"]>;
  readonly #network: MemoryNetwork;
  readonly #unread: Post[] = [];
  readonly #onEnd: (channel: MemoryChannel) => void;
  #arrival = createDeferred();
  #closure: Closure | undefined;
  #resolveClosed: (closure: Closure) => void = () => {};

  constructor(network: MemoryNetwork, member: Member, onEnd: (channel: MemoryChannel) => void) {
    this.#network = network;
    this.#onEnd = onEnd;
    this.member = member;
    this.abilities = network.abilities;
    this.self = { id: member.id, name: member.name };
    this.closed = new Promise((resolve) => {
      this.#resolveClosed = resolve;
    });
    if (network.abilities.edits) {
      this.edit = async (id, draft) => {
        this.#checkOpen();
        network.accept(member, draft, id);
      };
    }
  }

  get posts(): AsyncIterable<Post> {
    return { [Symbol.asyncIterator]: () => this.#read() };
  }

  async post(draft: PostDraft): Promise<{ readonly id: string }> {
    this.#checkOpen();
    return { id: this.#network.accept(this.member, draft) };
  }

  acknowledge(post: Post): void {
    this.#network.acknowledge(this.member, post);
  }

  push(post: Post): void {
    this.#unread.push(post);
    this.#arrival.resolve();
  }

  close(code = NORMAL_CLOSURE): void {
    this.end(code);
  }

  end(code: number): void {
    if (this.#closure !== undefined) return;
    this.#closure = { code, reason: "" };
    this.#resolveClosed(this.#closure);
    this.#arrival.resolve();
    this.#onEnd(this);
  }

  #checkOpen(): void {
    if (this.#closure !== undefined) throw new ChannelError("closed", "The channel has closed.");
  }

  async *#read(): AsyncGenerator<Post, void, undefined> {
    for (;;) {
      for (let post = this.#unread.shift(); post !== undefined; post = this.#unread.shift()) yield post;
      if (this.#closure !== undefined) return;
      this.#arrival = createDeferred();
      await this.#arrival.promise;
    }
  }
}
