import type { Connection } from "../../src/wire/connection.ts";

/** A connection to rooms that people and agents share: everyone sees every post, one's own included. */
export interface Channel extends Connection {
  readonly abilities: ChannelAbilities;
  /** For one reader. Ends when the channel closes. After a reconnect, posts may repeat. */
  readonly posts: AsyncIterable<Post>;
  /** Resolves with the id that the room gave the post. Rejects when the channel has closed or the room refuses. */
  post(draft: PostDraft): Promise<{ readonly id: string }>;
  /** Present where `abilities.edits` is true. */
  edit?(id: string, draft: PostDraft): Promise<void>;
}

interface ChannelAbilities {
  /** Characters of one post. */
  readonly maxText: number;
  readonly edits: boolean;
  readonly files: boolean;
  /** Posts can name the post they reply to. */
  readonly threads: boolean;
}

export interface Post {
  /** Unique within the room. */
  readonly id: string;
  readonly room: string;
  readonly sender: PostSender;
  readonly text: string;
  /** Ids of the participants that the post addresses. */
  readonly mentions: readonly string[];
  readonly replyTo?: string;
  /** Id of the post that this one replaces. */
  readonly edits?: string;
  readonly files: readonly PostFile[];
  /** Milliseconds since the epoch. */
  readonly at: number;
}

interface PostSender {
  readonly id: string;
  readonly name: string;
  readonly bot: boolean;
  /** Sent over this very channel. */
  readonly self: boolean;
}

interface PostFile {
  readonly name: string;
  readonly mediaType: string;
  readonly url: string;
}

export interface PostDraft {
  readonly room: string;
  readonly text: string;
  /** A draft that is posted again under the same key is the same post: for when it is not known whether it arrived. */
  readonly key?: string;
  /** Participant on whose behalf the post is sent, where one connection has several. */
  readonly as?: string;
  readonly mentions?: readonly string[];
  readonly replyTo?: string;
  readonly files?: readonly { readonly name: string; readonly mediaType: string; readonly bytes: Uint8Array }[];
}
