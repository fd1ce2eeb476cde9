import type { Output } from "../../../core/cli/output.ts";
import { loadConfig } from "../../../core/server/config/index.ts";
import type { Network } from "../networks/network.ts";
import { channelsOf } from "../server/config.ts";
import { networkOf } from "../server/entries.ts";

/** An entry of `channels` in a configuration. */
export interface ConfiguredChannel {
  /** `channels[0]`. */
  readonly path: string;
  readonly network: Network;
  readonly settings: unknown;
  readonly agent: string;
  readonly allowPeers: readonly string[] | "*";
  /** Undefined: whatever room it is invited to. */
  readonly rooms: readonly string[] | undefined;
}

/** From now on, the output does not show secrets of these entries. Throws a ConfigError. */
export async function configuredChannels(file: string, output: Output): Promise<readonly ConfiguredChannel[]> {
  return channelsOf(await loadConfig(file)).map((entry, index) => {
    const { network, settings } = networkOf(entry);
    for (const secret of network.secrets(settings)) output.addSecret(secret);
    const { agent, allowPeers } = entry;
    const allowed = allowPeers === "*" ? allowPeers : allowPeers.map((id) => network.toId?.(id) ?? id);
    const rooms = network.rooms(settings);
    return { path: `channels[${index}]`, network, settings, agent, allowPeers: allowed, rooms };
  });
}
