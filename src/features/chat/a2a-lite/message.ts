/** Messages of A2A-Lite: what a post with a marker means. */

import type { DraftFile, Post, PostFile } from "../../../core/wire/channel.ts";

export const TERMINAL_STATES = ["completed", "failed", "cancelled", "rejected"] as const;
export const STATES = ["accepted", "working", "input-required", ...TERMINAL_STATES] as const;

export type LiteState = (typeof STATES)[number];
export type TerminalLiteState = (typeof TERMINAL_STATES)[number];

/** `accept=` of a task whose sender reads data beside text. */
export const ACCEPTS_DATA = "json";

interface MessageFields {
  /** Natural language, without the marker and the announcements of attachments. */
  readonly body: string;
  /** Names of files that the body announces. */
  readonly attachments: readonly string[];
  /** Addressee and sender, where several agents share a room. */
  readonly to?: string;
  readonly from?: string;
  /** How many agents the work has passed through. */
  readonly hops?: number;
  /** Parameters that this version does not know. */
  readonly others: Readonly<Record<string, string>>;
}

export type LiteMessage = MessageFields &
  (
    | { readonly type: "discover" }
    | { readonly type: "card" }
    | {
        readonly type: "task";
        readonly id: string;
        readonly skill?: string;
        readonly priority?: string;
        readonly accept?: string;
      }
    | {
        readonly type: "status";
        readonly task: string;
        readonly state: LiteState;
        readonly progress?: string;
        readonly eta?: string;
      }
    | {
        readonly type: "result";
        readonly task: string;
        readonly state: TerminalLiteState;
        readonly artifacts: readonly string[];
      }
    | { readonly type: "cancel"; readonly task: string; readonly reason?: string }
    | { readonly type: "ack"; readonly task: string }
  );

export type LiteType = LiteMessage["type"];

/** One of several posts that are a message together; the bodies are joined in order. */
export interface Piece {
  /** The same for all pieces of a message. */
  readonly mid: string;
  /** Number of the piece, from 1. */
  readonly part: number;
  readonly of: number;
}

export type ParsedPost =
  | { readonly kind: "message"; readonly message: LiteMessage; readonly piece?: Piece }
  /** `problem`: it has something that looks like a marker and is not one. */
  | { readonly kind: "chat"; readonly text: string; readonly problem?: string }
  /** A marker of a known type that cannot be used; `task` is the id that it names, and `to` who it is for, if any. */
  | {
      readonly kind: "invalid";
      readonly type: LiteType;
      readonly task?: string;
      readonly to?: string;
      readonly problem: string;
    };

/** A whole message as it arrived, its pieces joined. */
export interface Received {
  /** The last post of the message. */
  readonly post: Post;
  readonly parsed: ParsedPost;
  /** Files of all its posts. */
  readonly files: readonly PostFile[];
}

/** Where a message goes. */
export interface Address {
  readonly room: string;
  readonly thread?: string;
  /** The room has no other participant. */
  readonly direct?: boolean;
  /** The participant that it is for. */
  readonly peer: {
    readonly id: string;
    readonly name: string;
    /** As far as the network says so. */
    readonly bot?: boolean;
  };
  /** The post that it answers. */
  readonly replyTo?: string;
}

export interface Outgoing {
  readonly to: Address;
  /** A string is plain chat. */
  readonly content: LiteMessage | string;
  readonly files?: readonly DraftFile[];
  /** The same key is the same message: for when it is not known whether it arrived. */
  readonly key?: string;
  /** Id of the post that this message replaces, where the channel can edit; else it is a new post. */
  readonly edits?: string;
  /** It shows how far a task is: it is not posted if there is more to post than the network accepts. */
  readonly progress?: boolean;
  /** Number of the page of a long text, from 0. */
  readonly page?: number;
}
