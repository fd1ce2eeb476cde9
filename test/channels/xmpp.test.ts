import { afterAll, describe } from "vitest";
import type { ChannelOptions } from "../../src/core/wire/channel.ts";
import {
  type ChannelStage,
  describeChannel,
  SUITE_TOOLS,
} from "../../src/features/chat/networks/suite/channel-suite.ts";
import { xmpp } from "../../src/features/chat/networks/xmpp.ts";
import { hasServer, type Prosody, startProsody } from "./servers.ts";

const PASSWORD = "account-password-1";
const WRONG_PASSWORD = "wrong-password-2";

/** It takes a while to start: tests share it, each with a room of its own, until one stops it. */
let shared: Prosody | undefined;
let rooms = 0;

async function closeShared(): Promise<void> {
  const server = shared;
  shared = undefined;
  await server?.close();
}

async function openStage(): Promise<ChannelStage> {
  shared ??= await startProsody({ alice: PASSWORD, bob: PASSWORD });
  const server = shared;
  const room = `agents-${++rooms}@${server.muc}`;
  const join = (name: string, password: string, options: ChannelOptions) =>
    xmpp.open(
      xmpp.settings.parse({
        service: `xmpp://127.0.0.1:${server.port}`,
        jid: `${name}@localhost`,
        password,
        rooms: [room],
      }),
      options,
      SUITE_TOOLS,
    );
  return {
    room,
    join: (options) => join("alice", PASSWORD, options),
    joinPeer: () => join("bob", PASSWORD, { cursors: new Map(), signal: new AbortController().signal }),
    directRoom: (_, to) => to.id,
    foreignRoom: `nowhere@${server.muc}`,
    intruder: { secret: WRONG_PASSWORD, join: (options) => join("alice", WRONG_PASSWORD, options) },
    stop: closeShared,
    close: async () => {},
  };
}

describe.runIf(hasServer("prosody"))("XMPP with prosody", () => {
  afterAll(closeShared);

  describeChannel("xmpp", {
    abilities: { edits: true, files: true, history: true, lines: true, replies: true, seesBots: "all" },
    has: { credentials: true, direct: true, foreignRoom: true, rateLimit: false, keys: true },
    stage: openStage,
  });
});
