/** Agents that are peers on a carrier: called over any connection they have. */

import type { AgentDefinition } from "../../agents/define.ts";
import { createForwardingAgent } from "../../agents/forward.ts";
import type { Carrier, PeerCaller } from "../../dialects/carrier.ts";
import type { Agent } from "../../engine/agent.ts";
import { ProtocolError } from "../../model/errors.ts";
import type { CallContext, Operation, OutcomeOf } from "../../model/operation.ts";

interface PeerAgentOptions extends Omit<AgentDefinition, "run"> {
  /** Name of the carrier. */
  readonly carrier: string;
  /** Id of the peer on it. */
  readonly peer: string;
}

const PEER = Symbol("carrier peer");

interface PeerAgent extends Agent {
  readonly [PEER]: CarrierPeer;
}

export function createPeerAgent({ carrier, peer: id, ...definition }: PeerAgentOptions): PeerAgent {
  const peer = new CarrierPeer(carrier, id);
  return Object.assign(createForwardingAgent({ ...definition, peer }), { [PEER]: peer });
}

/** Makes these agents callable. */
export function bindPeers(agents: Readonly<Record<string, Agent>>, carriers: readonly Carrier[]): void {
  for (const agent of Object.values(agents)) {
    if (PEER in agent) (agent as PeerAgent)[PEER].bind(carriers);
  }
}

class CarrierPeer implements PeerCaller {
  readonly #carrier: string;
  readonly #id: string;
  #caller: PeerCaller | undefined;

  constructor(carrier: string, id: string) {
    this.#carrier = carrier;
    this.#id = id;
  }

  bind(carriers: readonly Carrier[]): void {
    this.#caller = carriers.find(({ name }) => name === this.#carrier)?.peer?.(this.#id);
  }

  get can(): PeerCaller["can"] {
    return this.#caller?.can;
  }

  async dispatch<O extends Operation>(operation: O, call: Pick<CallContext, "signal">): Promise<OutcomeOf<O>> {
    if (this.#caller !== undefined) return this.#caller.dispatch(operation, call);
    throw new ProtocolError("UNAVAILABLE", `The agent cannot be reached: this server has no carrier ${this.#carrier}.`);
  }
}
