import { describe } from "vitest";
import type { ChannelOptions } from "../../src/core/wire/channel.ts";
import { mqtt } from "../../src/features/chat/networks/mqtt.ts";
import {
  type ChannelStage,
  describeChannel,
  SUITE_TOOLS,
} from "../../src/features/chat/networks/suite/channel-suite.ts";
import { hasServer, startMosquitto } from "./servers.ts";

const PASSWORD = "broker-password-1";
const WRONG_PASSWORD = "wrong-password-2";
const ROOM = "agents/market";

async function openStage(): Promise<ChannelStage> {
  const server = await startMosquitto({ users: { alice: PASSWORD, bob: PASSWORD } });
  const url = `mqtt://127.0.0.1:${server.port}`;
  const join = (name: string, password: string, options: ChannelOptions) =>
    mqtt.open(mqtt.settings.parse({ url, name, rooms: [ROOM], username: name, password }), options, SUITE_TOOLS);
  return {
    room: ROOM,
    join: (options) => join("alice", PASSWORD, options),
    joinPeer: () => join("bob", PASSWORD, { cursors: new Map(), signal: new AbortController().signal }),
    foreignRoom: "agents/elsewhere",
    intruder: { secret: WRONG_PASSWORD, join: (options) => join("alice", WRONG_PASSWORD, options) },
    stop: () => server.stop(),
    close: () => server.close(),
  };
}

describe.runIf(hasServer("mosquitto"))("MQTT with mosquitto", () => {
  describeChannel("mqtt", {
    abilities: { edits: false, files: false, history: true, lines: true, replies: false, seesBots: "all" },
    has: { credentials: true, direct: false, foreignRoom: true, rateLimit: false, acknowledgements: true, keys: true },
    stage: openStage,
  });
});
