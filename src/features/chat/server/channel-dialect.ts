import type { CarrierHost } from "../../../core/dialects/carrier.ts";
import type { Dialect, DialectTools } from "../../../core/dialects/contract.ts";
import { defaultOwner } from "../../../core/server/access/default-owner.ts";
import type { ServeOptions } from "../../../core/server/options.ts";
import { a2aLite } from "../a2a-lite/index.ts";
import { type ChannelEntryOptions, toOpenable } from "./entries.ts";

export interface ChannelServeOptions extends Pick<ServeOptions, "agents" | "auth" | "authenticate"> {
  readonly channels?: readonly ChannelEntryOptions[];
}

/** The dialect of chat channels, with a carrier for each entry. Throws a TypeError for invalid options. */
export function createChannelDialect(tools: DialectTools, options: ChannelServeOptions): Dialect {
  const { agents, channels = [] } = options;
  const entries = toOpenable(channels);
  for (const { entry } of entries) {
    if (!Object.hasOwn(agents, entry.agent)) throw new TypeError(`channels: there is no agent "${entry.agent}".`);
  }
  // The code for serving and calling in channels is loaded only if it is used.
  async function carriers(host: CarrierHost) {
    if (entries.length === 0) return [];
    const { openChannels } = await import("./open-channels.ts");
    const ownerOf = (network: string, agent: string) => defaultOwner(options, network)(agent);
    return openChannels(entries, { tools, host, defaultOwner: ownerOf });
  }
  return { ...a2aLite, serving: { carriers } };
}
