import { type Check, failed, ok, warning } from "../../../core/cli/doctor/checks.ts";
import type { DoctorParts } from "../../../core/extension/contract.ts";
import { missingPackages } from "../networks/load-package.ts";
import { type ChannelsConfig, channelsOf } from "../server/config.ts";
import { networkOf } from "../server/entries.ts";

/** Whether the channels of a configuration can be opened, and whether anyone can use them. Connects to nothing. */
export function checkChannels(channels: ChannelsConfig): readonly Check[] {
  return channels.flatMap((entry, index) => {
    const path = `channels[${index}]`;
    const { network } = networkOf(entry);
    const missing = missingPackages(network);
    if (missing.length > 0) {
      return [failed(path, `${network.title} needs ${missing.join(" and ")}: npm install ${missing.join(" ")}`)];
    }
    const { allowBots, allowPeers } = entry;
    if (allowPeers.length === 0) return [warning(`${path}.allowPeers`, "no one may give the agent work")];
    if (allowPeers === "*" && allowBots === true) {
      return [
        warning(`${path}.allowBots`, "with allowPeers: *, every bot that can post there may give the agent work"),
      ];
    }
    return [ok(path, `${entry.agent} on ${network.title}; dragoman channels test ${index} tries it`)];
  });
}

export const doctorParts: DoctorParts = { checks: (config) => checkChannels(channelsOf(config)) };
