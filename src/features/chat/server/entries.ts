/** Entries of `channels`, in a configuration and as options of `serve`. */

import { fieldsOf } from "../../../core/model/json.ts";
import type { Network } from "../networks/network.ts";
import { NETWORKS } from "../networks/networks.ts";

type Names = readonly string[];

/** Written out rather than inferred from the schemas, whose types are not part of the package. */
interface NetworkSettings {
  readonly irc?: {
    readonly host: string;
    readonly port?: number;
    readonly tls?: boolean;
    readonly nick: string;
    readonly channels: readonly (string | { readonly name: string; readonly key: string })[];
    readonly password?: string;
    readonly account?: { readonly name: string; readonly password: string };
  };
  readonly xmpp?: {
    readonly service: string;
    readonly jid: string;
    readonly password: string;
    readonly rooms: Names;
    readonly nick?: string;
  };
  readonly mqtt?: {
    readonly url: string;
    readonly name: string;
    readonly rooms: Names;
    readonly username?: string;
    readonly password?: string;
  };
  readonly matrix?: { readonly homeserver: string; readonly token: string; readonly rooms: Names };
  readonly telegram?: { readonly token: string; readonly apiRoot?: string; readonly rooms?: Names };
  readonly discord?: { readonly token: string; readonly api?: string; readonly rooms?: Names };
  readonly slack?: {
    readonly appToken: string;
    readonly botToken: string;
    readonly apiUrl?: string;
    readonly rooms?: Names;
  };
  readonly feishu?: {
    readonly appId: string;
    readonly appSecret: string;
    readonly domain?: string;
    readonly rooms?: Names;
  };
  readonly dingtalk?: { readonly clientId: string; readonly clientSecret: string; readonly api?: string };
  readonly wecom?: { readonly botId: string; readonly secret: string; readonly url?: string };
  readonly terminal?: { readonly name: string };
}

/** One agent on one chat network, with the settings under its name: `{ irc: { … }, agent: "helper" }`. */
export interface ChannelEntryOptions extends NetworkSettings {
  readonly agent: string;
  /** Ids of those who may give the agent work; `"*"` is everyone. Default: none. */
  readonly allowPeers?: readonly string[] | "*";
  /** Whether other bots count as peers, or only where they address the agent. Default: false. */
  readonly allowBots?: boolean | "mentions";
  /** The owner of its tasks. */
  readonly owner?: string;
  /** How many messages of one peer are handled in this time. Default: 10 in 10 s. */
  readonly rate?: { readonly messages: number; readonly perMs: number };
  /** Maximum duration of a call to a peer in the channel. Default: 10 minutes. */
  readonly timeoutMs?: number;
}

export const DEFAULT_RATE = { messages: 10, perMs: 10_000 };
export const DEFAULT_TIMEOUT_MS = 600_000;

/** The network of an entry, and its settings there with defaults filled in. Throws a TypeError if they are invalid. */
export function networkOf(entry: ChannelEntryOptions): { readonly network: Network; readonly settings: unknown } {
  const given = NETWORKS.filter(({ name }) => fieldsOf(entry)[name] !== undefined);
  const [network] = given;
  if (network === undefined || given.length > 1) {
    throw new TypeError(`channels: the entry of "${entry.agent}" needs exactly one network.`);
  }
  return { network, settings: network.settings.parse(fieldsOf(entry)[network.name]) };
}

/** The same for settings of the same account: whatever they say besides lists, which name rooms. */
export function identityOf(settings: unknown): string {
  const members = Object.entries(fieldsOf(settings)).filter(([, value]) => !Array.isArray(value));
  return JSON.stringify(Object.fromEntries(members.sort(([one], [other]) => (one < other ? -1 : 1))));
}

/** A valid entry. */
export interface OpenableEntry {
  readonly entry: ChannelEntryOptions;
  readonly network: Network;
  readonly settings: unknown;
  /** Name of its carrier, the same in later processes and on other nodes: tasks under way are answered over it. */
  readonly route: string;
}

/** Throws a TypeError for invalid entries. */
export function toOpenable(entries: readonly ChannelEntryOptions[]): readonly OpenableEntry[] {
  const accounts = new Set<string>();
  const counts = new Map<string, number>();
  return entries.map((entry) => {
    const { network, settings } = networkOf(entry);
    const account = `${network.name} ${identityOf(settings)}`;
    if (accounts.has(account)) throw new TypeError(`channels: two entries have the same account of ${network.title}.`);
    accounts.add(account);
    const place = `a2a-lite:${network.name}:${entry.agent}:${network.account(settings)}`;
    const count = (counts.get(place) ?? 0) + 1;
    counts.set(place, count);
    return { entry, network, settings, route: count === 1 ? place : `${place}:${count}` };
  });
}
