import type { Extension } from "../../core/extension/contract.ts";
import { parseChatAddress } from "./a2a-lite/address.ts";
import { declareChannels } from "./cli/declare-channel-commands.ts";
import type { ChannelServeOptions } from "./server/channel-dialect.ts";

/** The section as an option of `serve`. */
export interface ChatSection {
  /** Chat channels that agents take part in. */
  readonly channels?: ChannelServeOptions["channels"];
}

export const chat: Extension = {
  name: "chat",
  commands: declareChannels,
  config: async () => {
    const { channelsSection } = await import("./server/config.ts");
    return { sections: { channels: channelsSection } };
  },
  calling: {
    addresses: {
      "a2a-lite:": {
        form: "a2a-lite:<network>/<room>#<peer>",
        isValid: (address) => parseChatAddress(address) !== undefined,
        async connect(address, options) {
          const { connectPeer } = await import("./client/connect-peer.ts");
          return connectPeer(address, options);
        },
        async build(address, { name, overrides }) {
          const { createChatPeerAgent } = await import("./server/chat-peer-agent.ts");
          return createChatPeerAgent(name, address, overrides);
        },
      },
    },
  },
  serving: async () => {
    const { createChannelDialect } = await import("./server/channel-dialect.ts");
    return { dialects: (tools, options) => [createChannelDialect(tools, options as ChannelServeOptions)] };
  },
  doctor: async () => (await import("./cli/doctor.ts")).doctorParts,
  session: async () => (await import("./cli/chat-peer.ts")).sessionParts,
};
