/** Agents that are peers on a carrier: called over any connection they have. */

import type { AgentDefinition } from "../../agents/define.ts";
import { createForwardingAgent } from "../../agents/forward.ts";
import type { Carrier, PeerCaller } from "../../dialects/carrier.ts";
import type { Agent } from "../../engine/agent.ts";
import { ProtocolError } from "../../model/errors.ts";

interface PeerAgentOptions extends Omit<AgentDefinition, "run"> {
  /** Name of the carrier. */
  readonly carrier: string;
  /** Id of the peer on it. */
  readonly peer: string;
}

const BIND = Symbol("bind carrier peer");

interface PeerAgent extends Agent {
  readonly [BIND]: (carriers: readonly Carrier[]) => void;
}

/** Not callable until the server has opened its carriers. */
export function createPeerAgent({ carrier, peer: id, ...definition }: PeerAgentOptions): PeerAgent {
  let caller: PeerCaller | undefined;
  const peer: PeerCaller = {
    get can() {
      return caller?.can;
    },
    async dispatch(operation, call) {
      if (caller !== undefined) return caller.dispatch(operation, call);
      throw new ProtocolError("UNAVAILABLE", `The agent cannot be reached: this server has no carrier ${carrier}.`);
    },
  };
  return Object.assign(createForwardingAgent({ ...definition, peer }), {
    [BIND]: (carriers: readonly Carrier[]) => {
      caller = carriers.find(({ name }) => name === carrier)?.peer?.(id);
    },
  });
}

/** Makes these agents callable. */
export function bindPeers(agents: Readonly<Record<string, Agent>>, carriers: readonly Carrier[]): void {
  for (const agent of Object.values(agents)) if (BIND in agent) (agent as PeerAgent)[BIND](carriers);
}
