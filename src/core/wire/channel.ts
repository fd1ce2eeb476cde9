import type { Connection } from "./connection.ts";

/** A connection of one participant to a chat network: rooms that people and agents share, and direct messages. */
export interface Channel extends Connection {
  readonly abilities: ChannelAbilities;
  readonly self: Participant;
  /** For one reader. Ends when the channel closes. After a reconnect, posts may repeat. */
  readonly posts: AsyncIterable<Post>;
  /**
   * Present where the network delivers a post again that no one has acknowledged. To be called with every post, when it
   * has been handled; other posts may wait until then, for a while.
   */
  acknowledge?(post: Post): void;
  /**
   * Resolves with the id that the network gave the post. Rejects with a `ChannelError`, and with any other error only
   * if it is not known whether the post has arrived.
   */
  post(draft: PostDraft): Promise<{ readonly id: string }>;
  /** Present where `abilities.edits` is true. Rejects like `post`. */
  edit?(id: string, draft: PostDraft): Promise<void>;
  /** Present where a participant can delete its own posts. Rejects like `post`. */
  delete?(id: string, room: string): Promise<void>;
}

export interface ChannelAbilities {
  /** Maximum length of a post: UTF-8 bytes or UTF-16 code units. */
  readonly text: {
    readonly max: number;
    readonly unit: "bytes" | "characters";
    /** Of a post with files, if less fits beside them. */
    readonly maxWithFiles?: number;
  };
  /** A post may have several lines. */
  readonly lines: boolean;
  /** Maximum size of a file in bytes; 0: files cannot be sent. */
  readonly maxFileBytes: number;
  /** Other bots do not get files that are posted in a room. */
  readonly hidesFilesFromBots?: boolean;
  readonly edits: boolean;
  /** Posts can reply to a post, and replies name it. */
  readonly replies: boolean;
  /** A thread can begin at any post, and its posts name that one. */
  readonly threads?: boolean;
  /** Which posts of other bots the network delivers. */
  readonly seesBots: "all" | "mentions" | "none";
  /** Posts per room that the network accepts in this time. Edits count. */
  readonly rate: { readonly posts: number; readonly perMs: number };
  /** After a reconnect the network delivers what was posted meanwhile. */
  readonly history: boolean;
}

export interface Participant {
  /** As the network authenticates it; a name that anyone may take is not `verified`. */
  readonly id: string;
  readonly name: string;
}

export interface Post {
  /** Unique within the room. */
  readonly id: string;
  readonly room: string;
  /** Conversation within the room, where the network has them. */
  readonly thread?: string;
  /** A direct message: the room has no other participant. */
  readonly direct: boolean;
  readonly sender: PostSender;
  /** As a person reads it, without the escapes of the network; mentions in the network's own form. */
  readonly text: string;
  /** Ids of the participants that the post addresses. */
  readonly mentions: readonly string[];
  readonly replyTo?: string;
  /** Id of the post that this one replaces. */
  readonly edits?: string;
  readonly files: readonly PostFile[];
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** Where reading continues after it; given to the next connection. */
  readonly cursor?: string;
}

export interface PostSender extends Participant {
  readonly bot: boolean;
  /** Sent by this participant, over this connection or another one. */
  readonly self: boolean;
  /** The network has authenticated the sender: no one else can take the id. */
  readonly verified: boolean;
}

export interface PostFile {
  readonly name: string;
  readonly mediaType: string;
  /** In bytes, as far as the network says so. */
  readonly size?: number;
  /** Rejects if the file is larger than `maxBytes`. */
  read(maxBytes: number, signal?: AbortSignal): Promise<Uint8Array>;
}

export interface PostDraft {
  readonly room: string;
  readonly thread?: string;
  readonly text: string;
  /** A draft that is posted again under the same key is the same post, where the network can recognise it. */
  readonly key?: string;
  /** Participants that must be notified; the channel adds what the network needs for that. */
  readonly mentions?: readonly Participant[];
  readonly replyTo?: string;
  readonly files?: readonly DraftFile[];
}

export interface DraftFile {
  readonly name: string;
  readonly mediaType: string;
  readonly bytes: Uint8Array;
}

/** How a channel of a network is opened. */
export interface ChannelOptions {
  /** Newest cursor of each room, from an earlier connection. */
  readonly cursors: ReadonlyMap<string, string>;
  readonly signal: AbortSignal;
  /** For a short time, beside a server that may be connected with the same account: it must stay connected. */
  readonly temporary?: boolean;
}

type ChannelErrorCode =
  /** The channel has closed. */
  | "closed"
  /** The network limits the rate; see `retryAfterMs`. */
  | "rate-limited"
  /** The network refuses this post; repeating it does not help. */
  | "refused"
  /** The room does not exist, or this participant may not post there. */
  | "no-access";

/** The post has not been accepted. */
export class ChannelError extends Error {
  override readonly name = "ChannelError";
  readonly code: ChannelErrorCode;
  readonly retryAfterMs: number | undefined;

  constructor(code: ChannelErrorCode, message: string, options: ErrorOptions & { retryAfterMs?: number } = {}) {
    super(message, options);
    this.code = code;
    this.retryAfterMs = options.retryAfterMs;
  }
}
