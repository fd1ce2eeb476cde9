/** Agents that are peers on a carrier: called over any connection they have. */

import { type AgentDefinition, defineAgent } from "../../agents/define.ts";
import { createForwardingAgent } from "../../agents/forward.ts";
import type { Carrier, PeerCaller } from "../../dialects/carrier.ts";
import type { Agent } from "../../engine/agent.ts";
import { sleep } from "../../model/backoff.ts";
import type { AgentCard } from "../../model/card.ts";
import { ProtocolError } from "../../model/errors.ts";
import { createDeferred } from "../../wire/link.ts";
import { systemClock } from "../clock-and-ids.ts";

interface PeerAgentOptions extends Omit<AgentDefinition, "run"> {
  /** Name of the carrier; default: the first one that reaches the peer. */
  readonly carrier?: string;
  /** Id of the peer on it. */
  readonly peer: string;
  /** Where it is known before the carriers are open: tasks of an earlier process are then continued. */
  readonly can?: PeerCaller["can"];
  /** Where peers send cards: what of a card the agent is described by, in place of the definition. */
  readonly describe?: (card: AgentCard) => Partial<Omit<AgentDefinition, "run">>;
}

const BIND = Symbol("bind carrier peer");

interface PeerAgent extends Agent {
  readonly [BIND]: (carriers: readonly BoundCarrier[]) => void;
}

interface BoundCarrier {
  readonly carrier: Carrier;
  /** Whether this node has its connections. */
  readonly isHeld: boolean;
}

/** Not callable until the server has opened its carriers. */
export function createPeerAgent({ can, carrier, describe, peer: id, ...definition }: PeerAgentOptions): PeerAgent {
  const bound = createDeferred();
  let asked: PeerCaller | undefined;
  let found: { readonly bound: BoundCarrier; readonly caller: PeerCaller } | undefined;
  const peer: PeerCaller = {
    get can() {
      return found?.caller.can ?? can;
    },
    async dispatch(operation, call) {
      // A task of an earlier process is continued as soon as the engine has started.
      if (found === undefined && can !== undefined) await bound.promise;
      if (found !== undefined) return found.caller.dispatch(operation, call);
      const missing = carrier === undefined ? `connection that reaches ${id}` : `carrier ${carrier}`;
      throw new ProtocolError("UNAVAILABLE", `The agent cannot be reached: this server has no ${missing}.`);
    },
  };
  const agent = Object.assign(createForwardingAgent({ ...definition, peer }), {
    isAvailable: () => found?.bound.isHeld === true && found.caller.connected !== false,
    [BIND]: (carriers: readonly BoundCarrier[]) => {
      const candidates = carriers.filter(({ carrier: { name } }) => carrier === undefined || name === carrier);
      found = candidates.flatMap((bound) => {
        const caller = bound.carrier.peer?.(id);
        return caller === undefined ? [] : [{ bound, caller }];
      })[0];
      bound.resolve();
      if (describe === undefined || found?.bound.isHeld !== true || found.caller === asked) return;
      asked = found.caller;
      void askForCard(asked);
    },
  });
  return describe === undefined ? agent : withDescription(agent, definition, () => found?.caller.card, describe);
}

/** Pauses before a peer that sent no card is asked again: it may have joined later. */
const CARD_PAUSES_MS = [5_000, 60_000, 600_000];

async function askForCard(peer: PeerCaller): Promise<void> {
  for (const pause of [0, ...CARD_PAUSES_MS]) {
    await sleep(systemClock, pause);
    if (peer.card !== undefined) return;
    try {
      await peer.dispatch({ kind: "extended-card" }, {});
      return;
    } catch (error) {
      if (!ProtocolError.is(error)) return;
    }
  }
}

/** The profile is the same object until the card changes. */
function withDescription(
  agent: PeerAgent,
  definition: Omit<AgentDefinition, "run">,
  findCard: () => AgentCard | undefined,
  describe: NonNullable<PeerAgentOptions["describe"]>,
): PeerAgent {
  let shown: { readonly card: AgentCard | undefined; readonly profile: Agent["profile"] } = {
    card: undefined,
    profile: agent.profile,
  };
  return Object.defineProperty(agent, "profile", {
    enumerable: true,
    get() {
      const card = findCard();
      if (card !== undefined && card !== shown.card) {
        const described = defineAgent({ ...definition, ...describe(card), run: () => undefined });
        shown = { card, profile: described.profile };
      }
      return shown.profile;
    },
  });
}

/** Makes these agents callable. */
export function bindPeers(agents: Readonly<Record<string, Agent>>, carriers: readonly BoundCarrier[]): void {
  for (const agent of Object.values(agents)) if (BIND in agent) (agent as PeerAgent)[BIND](carriers);
}
