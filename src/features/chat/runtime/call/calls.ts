/** Peers of a channel that are called: finds the call that a message is about. */

import type { PeerCaller } from "../../../../core/dialects/carrier.ts";
import { type ChatAddress, parseChatAddress } from "../../a2a-lite/address.ts";
import type { Received } from "../../a2a-lite/message.ts";
import type { CallsTools, ChannelCalls } from "../options.ts";
import { answeredTask, ParticipantCaller, TASK_ID } from "./participant-caller.ts";
import { Revival } from "./revival.ts";
import { createTaskRecords } from "./task-records.ts";
import { type CallLimits, type CallTools, type DropReason, toCallTimes } from "./tools.ts";

const MAX_PEERS = 1_000;

/** The calling side of one channel. */
export function createChannelCalls(tools: CallsTools, limits: CallLimits = {}): ChannelCalls {
  const { entry } = tools;
  const peers = new Map<string, ParticipantCaller>();
  const records = createTaskRecords(tools);
  const { report } = tools.host;
  const own: CallTools = { ...tools, report, times: toCallTimes(limits), drop: createDropper(tools) };

  function findPeer(given: ChatAddress | undefined): ParticipantCaller | undefined {
    if (given === undefined || given.network !== entry.network) return undefined;
    if (entry.rooms !== undefined && !entry.rooms.includes(given.room)) return undefined;
    const address = { ...given, participant: entry.toId?.(given.participant) ?? given.participant };
    const key = keyOf(address.room, address.participant);
    const known = peers.get(key);
    if (known !== undefined || peers.size >= MAX_PEERS) return known;
    const peer = new ParticipantCaller({ address, tools: own, records });
    peers.set(key, peer);
    return peer;
  }

  const revival = new Revival({ drop: own.drop, network: entry.network, records, findPeer });

  /** A peer may answer in a direct message what it was asked in a room. */
  const ofSender = (id: string) => [...peers.values()].filter(({ address }) => address.participant === id);

  function take(received: Received): boolean {
    const { parsed, post } = received;
    const { id: sender } = post.sender;
    const task = answeredTask(parsed);
    if (task !== undefined) {
      const asked = [...peers.values()].find((peer) => peer.findTask(task));
      if (asked?.address.participant === sender) return asked.take(received);
      if (asked !== undefined) own.drop(sender, "not-the-peer");
      else if (TASK_ID.test(task)) revival.receive(task, received);
      return asked !== undefined || TASK_ID.test(task);
    }
    const peer = peers.get(keyOf(post.room, sender)) ?? (post.direct ? ofSender(sender)[0] : undefined);
    if (peer?.take(received) === true) return true;
    if (parsed.kind === "chat" && post.replyTo !== undefined) revival.receiveReply(post.replyTo, received);
    return false;
  }

  return {
    take,
    stored: async () => {
      await revival.done();
      await records.written();
    },
    peer: (address): PeerCaller | undefined => findPeer(parseChatAddress(address)),
    close: () => {
      for (const peer of peers.values()) peer.close();
    },
  };
}

const keyOf = (room: string, peer: string) => JSON.stringify([room, peer]);

/** Counts every one, and logs the first for each reason. */
function createDropper({ entry, log, meter }: CallsTools): CallTools["drop"] {
  const logged = new Set<DropReason>();
  return (peer, why) => {
    meter.count("channel_answers_dropped");
    if (logged.has(why)) return;
    logged.add(why);
    const message = "An answer of an agent in a chat channel was dropped; others for the same reason are not logged.";
    log.warn({ channel: entry.name, peer, why }, message);
  };
}
