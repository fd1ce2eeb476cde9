/** Agents that are participants of chat rooms. */

import { describeUpstream } from "../../../core/agents/describe-upstream.ts";
import type { Agent } from "../../../core/engine/agent.ts";
import { EXTENSIONS } from "../../../core/model/extensions.ts";
import { createPeerAgent } from "../../../core/server/carriers/peer-agent.ts";
import type { AgentOverrides } from "../../../core/server/config/config.ts";
import { PARTICIPANT_CAN } from "../a2a-lite/can.ts";

const UNVERIFIED = {
  uri: EXTENSIONS.unverified,
  description: "Artifacts with this mark were taken for the result of a participant that does not support A2A-Lite.",
};

/** What the configuration says takes precedence over the card that the participant sends. */
export function createChatPeerAgent(name: string, address: string, { timeoutMs, ...overrides }: AgentOverrides): Agent {
  const describe = (card?: Parameters<typeof describeUpstream>[2]) => {
    const described = describeUpstream(name, address, card);
    return { ...described, extensions: [...(described.extensions ?? []), UNVERIFIED], ...overrides };
  };
  const timeout = timeoutMs === undefined ? undefined : { timeout: timeoutMs };
  return createPeerAgent({ ...describe(), ...timeout, peer: address, can: PARTICIPANT_CAN, describe });
}
