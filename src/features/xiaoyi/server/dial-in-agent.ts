/** Agents that dial in: whatever their implementation, they are called over the link they opened. */
import type { AgentDefinition } from "../../../core/agents/define.ts";
import type { Agent } from "../../../core/engine/agent.ts";
import { createPeerAgent } from "../../../core/server/carriers/peer-agent.ts";
import { LINK_AGENT_CAN } from "../runtime/link/call/call-link.ts";

/** Each pair is complete or absent; at least one is present. */
export interface DialInCredentials {
  /** The id with which the agent introduces itself. */
  readonly agentId: string;
  /** Identifies `sk`, with which the agent signs the timestamp. */
  readonly ak?: string;
  readonly sk?: string;
  /** Identifies `apiKey`, which the agent sends unchanged. */
  readonly uid?: string;
  readonly apiKey?: string;
}

interface DialInAgentOptions extends DialInCredentials, Omit<AgentDefinition, "run"> {
  /** How long a running task waits for the agent to reconnect. Real agents take 2 s to 60 s; default: 90 s. */
  readonly patienceMs?: number;
}

export const DIAL_IN_CARRIER = "xiaoyi-dial-in";

const PATIENCE_MS = 90_000;
/** Only the agent knows what it accepts. */
const ANY_INPUT: readonly string[] = ["text/plain", "application/json", "*/*"];

export interface DialIn {
  readonly credentials: DialInCredentials;
  readonly patienceMs: number;
}

const DIAL_IN = Symbol("dial-in");

interface DialInAgent extends Agent {
  readonly [DIAL_IN]: DialIn;
}

export function createDialInAgent(options: DialInAgentOptions): DialInAgent {
  const { agentId, ak, sk, uid, apiKey, patienceMs = PATIENCE_MS, ...definition } = options;
  const credentials = {
    agentId,
    ...(ak !== undefined && sk !== undefined && { ak, sk }),
    ...(uid !== undefined && apiKey !== undefined && { uid, apiKey }),
  };
  const agent = createPeerAgent({
    inputModes: ANY_INPUT,
    ...definition,
    carrier: DIAL_IN_CARRIER,
    peer: agentId,
    can: LINK_AGENT_CAN,
  });
  return { ...agent, [DIAL_IN]: { credentials, patienceMs } };
}

/** Throws a TypeError if two agents have the same id. */
export function dialInsOf(agents: Readonly<Record<string, Agent>>): ReadonlyMap<string, DialIn> {
  const found = new Map<string, DialIn>();
  const ids = new Set<string>();
  for (const [name, agent] of Object.entries(agents)) {
    if (!(DIAL_IN in agent)) continue;
    const dialIn = (agent as DialInAgent)[DIAL_IN];
    const { agentId } = dialIn.credentials;
    if (ids.has(agentId)) throw new TypeError(`Two agents would dial in as "${agentId}".`);
    ids.add(agentId);
    found.set(name, dialIn);
  }
  return found;
}
