/** What a carrier of one configured channel is made of. */

import type { CarrierHost, PeerCaller } from "../../../core/dialects/carrier.ts";
import type { DialectTools } from "../../../core/dialects/contract.ts";
import type { BackoffPolicy } from "../../../core/model/backoff.ts";
import type { Caller } from "../../../core/model/caller.ts";
import type { Channel, ChannelOptions, Participant } from "../../../core/wire/channel.ts";
import type { Received } from "../a2a-lite/message.ts";
import type { ChannelOutbox } from "./outbox.ts";

/** One agent on one chat network. */
export interface ChannelEntry {
  /** Unique on a server; the route of its deliveries. */
  readonly name: string;
  /** Name of the network, e.g. `irc`. */
  readonly network: string;
  /** What is dialled, for the log: `IRC as dragoman`. */
  readonly label: string;
  /** Name of the served agent. */
  readonly agent: string;
  /** Owner of the tasks that come over it. */
  readonly caller: Caller;
  /** Ids or names of participants that may give the agent work; `*` is everyone. */
  readonly allowPeers: readonly string[];
  /** Whether posts of bots are read: `mentions` only those that address the agent. */
  readonly allowBots: boolean | "mentions";
  /** Messages of one peer that are served within this time. Absent: 10 in 10 s. */
  readonly rate?: { readonly messages: number; readonly perMs: number };
  /** An id as posts have it, of one that people may write in another way. Absent: there is only one way. */
  readonly toId?: (written: string) => string;
  /** Rooms that are served, besides direct messages. Absent: all that the participant is in. */
  readonly rooms?: readonly string[] | undefined;
  /** Absent: `DEFAULT_POLICY`. */
  readonly policy?: BackoffPolicy;
  /** Rejects with a DialError. */
  open(options: ChannelOptions): Promise<Channel>;
  /** Absent: peers are not called over it. */
  readonly calls?: (tools: CallsTools) => ChannelCalls;
}

/** Delays before a closed channel is opened again. */
export const DEFAULT_POLICY: BackoffPolicy = { baseMs: 1_000, capMs: 60_000, resetAfterMs: 10_000 };

export interface CallsTools extends DialectTools {
  readonly host: CarrierHost;
  readonly entry: ChannelEntry;
  readonly outbox: Pick<ChannelOutbox, "abilities" | "send">;
  /** The participant that calls; undefined before the first connection. */
  self(): Participant | undefined;
}

/** The calling side of a channel. It outlives connections. */
export interface ChannelCalls {
  /**
   * Whether the message belongs to a call: it is not served then. Called with every message of others once, edits of
   * posts included (`post.edits`), in the order of arrival. Must not throw.
   */
  take(received: Received): boolean;
  /** Resolves when everything of the messages so far that must outlast this process is stored. Never rejects. */
  stored(): Promise<void>;
  peer(id: string): PeerCaller | undefined;
  /** Calls that are under way are left as they are: the next process continues them. */
  close(): void;
}
