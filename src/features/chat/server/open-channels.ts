/** Agents in chat channels. */

import type { Carrier, CarrierHost } from "../../../core/dialects/carrier.ts";
import type { DialectTools } from "../../../core/dialects/contract.ts";
import type { Channel } from "../../../core/wire/channel.ts";
import { MissingPackageError, missingPackages } from "../networks/load-package.ts";
import { createChannelCarrier } from "../runtime/bind-channel.ts";
import { createChannelCalls } from "../runtime/call/calls.ts";
import { DEFAULT_RATE, DEFAULT_TIMEOUT_MS, type OpenableEntry } from "./entries.ts";

interface ChannelsContext {
  readonly tools: DialectTools;
  readonly host: CarrierHost;
  /** The default owner of an agent's tasks on a network. */
  readonly defaultOwner: (network: string, agent: string) => string;
}

/** Creates one carrier per entry. Throws a MissingPackageError. */
export function openChannels(
  entries: readonly OpenableEntry[],
  { defaultOwner, host, tools }: ChannelsContext,
): readonly Carrier<Channel>[] {
  const { clock, ids, log } = tools;
  return entries.map(({ entry, network, route, settings }) => {
    const { agent, allowBots = false, allowPeers = [], owner = defaultOwner(network.name, agent) } = entry;
    const toId = (written: string) => network.toId?.(written) ?? written;
    const { rate = DEFAULT_RATE, timeoutMs = DEFAULT_TIMEOUT_MS } = entry;
    if (missingPackages(network).length > 0) throw new MissingPackageError(network.title, network.packages);
    return createChannelCarrier(
      {
        name: route,
        network: network.name,
        label: network.title,
        agent,
        caller: { owner, authenticated: true },
        allowPeers: allowPeers === "*" ? ["*"] : allowPeers.map(toId),
        toId,
        allowBots,
        rate,
        rooms: network.rooms(settings),
        open: (options) => network.open(settings, options, { clock, log, uniqueId: ids.message }),
        calls: (own) => createChannelCalls(own, { timeoutMs }),
      },
      host,
      tools,
    );
  });
}
