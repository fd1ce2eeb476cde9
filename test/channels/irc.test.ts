import { describe } from "vitest";
import type { ChannelOptions } from "../../src/core/wire/channel.ts";
import { irc } from "../../src/features/chat/networks/irc.ts";
import {
  type ChannelStage,
  describeChannel,
  SUITE_TOOLS,
} from "../../src/features/chat/networks/suite/channel-suite.ts";
import { hasServer, startNgircd } from "./servers.ts";

const PASSWORD = "server-password-1";
const WRONG_PASSWORD = "wrong-password-2";
const ROOM = "#Agents";

async function openStage(): Promise<ChannelStage> {
  const server = await startNgircd({ password: PASSWORD });
  const join = (nick: string, password: string, options: ChannelOptions) =>
    irc.open(
      irc.settings.parse({ host: "127.0.0.1", port: server.port, nick, channels: [ROOM], password }),
      options,
      SUITE_TOOLS,
    );
  return {
    room: ROOM,
    join: (options) => join("Alice", PASSWORD, options),
    async joinPeer() {
      const peer = await join("bob", PASSWORD, { cursors: new Map(), signal: new AbortController().signal });
      return peer;
    },
    directRoom: (_, to) => to.name,
    foreignRoom: "#elsewhere",
    intruder: { secret: WRONG_PASSWORD, join: (options) => join("Alice", WRONG_PASSWORD, options) },
    stop: () => server.stop(),
    close: () => server.close(),
  };
}

describe.runIf(hasServer("ngircd"))("IRC with ngircd", () => {
  describeChannel("irc", {
    abilities: { edits: false, files: false, history: false, lines: false, replies: false, seesBots: "all" },
    has: { credentials: true, direct: true, foreignRoom: true, rateLimit: false },
    stage: openStage,
  });
});
