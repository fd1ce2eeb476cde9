import type { z } from "zod";
import type { Clock, Log } from "../../../core/model/ports.ts";
import type { Channel, ChannelAbilities, ChannelOptions } from "../../../core/wire/channel.ts";

/** What a network needs of the process that uses it. */
export interface ChannelTools {
  readonly clock: Clock;
  readonly log: Log;
  /** Unique, for networks without ids of their own. */
  readonly uniqueId: () => string;
}

/** A chat network: how it is configured, set up by people, and connected to. */
export interface Network<Settings = unknown> {
  /** Key in a configuration, e.g. `irc`. */
  readonly name: string;
  /** As people write it, e.g. `Discord`. */
  readonly title: string;
  /** Packages that it is used through; optional peers of this package, loaded when a channel is opened. */
  readonly packages: readonly string[];
  readonly settings: z.ZodType<Settings>;
  /** Names the account that they connect with, without secrets: of several nodes one is connected with it. */
  account(settings: Settings): string;
  /** Values of the settings that must not be shown. */
  secrets(settings: Settings): readonly string[];
  /** Rooms that the settings name; undefined: any room that this participant is invited to. */
  rooms(settings: Settings): readonly string[] | undefined;
  /** An id as posts have it, of one that people may write in another way. Absent: there is only one way. */
  toId?(written: string): string;
  /** Whether people write the participant with this account so. Absent: it is written as its id. */
  isOwn?(settings: Settings, written: string): boolean;
  /** The same settings under another name, where anyone may choose one. */
  rename?(settings: Settings, suffix: string): Settings;
  /**
   * A second connection of an account would take the place of the first, or get a share of its posts. Absent: both get
   * all posts.
   */
  readonly exclusive?: boolean;
  /** How to obtain what the settings need, step by step, with the field names of the vendor's console. */
  readonly setup: readonly string[];
  /** As far as they are known before a channel is open: servers may allow more or less. */
  readonly abilities: ChannelAbilities;
  /**
   * Connects once; the caller reconnects. Rejects with a DialError, and with a MissingPackageError if a package is not
   * installed.
   */
  open(settings: Settings, options: ChannelOptions, tools: ChannelTools): Promise<Channel>;
}
