/** Agents that dial us: behind whatever they are, they are reached over the link they opened. */
import type { AgentDefinition } from "../../agents/define.ts";
import { createForwardingAgent, type Peer } from "../../agents/forward.ts";
import type { LinkCaller, LinkTools } from "../../dialects/contract.ts";
import { linkCalling } from "../../dialects/xiaoyi-link/index.ts";
import type { Agent } from "../../engine/agent.ts";
import { ProtocolError } from "../../model/errors.ts";
import type { FrameStream, SendInput } from "../../model/operation.ts";

export interface DialInCredentials {
  /** By which the agent introduces itself. */
  readonly agentId: string;
  readonly ak: string;
  readonly sk: string;
}

export interface DialInAgentOptions extends DialInCredentials, Omit<AgentDefinition, "run"> {}

/** How long an agent may be away before calls to it fail. */
const PATIENCE_MS = 10_000;
/** Whatever the agent takes: only it knows. */
const ANY_INPUT: readonly string[] = ["text/plain", "application/json", "*/*"];

/** An agent's way in, and the way to it once it is there. */
export class DialIn implements Peer {
  readonly credentials: DialInCredentials;
  #caller: LinkCaller | undefined;

  constructor(credentials: DialInCredentials) {
    this.credentials = credentials;
  }

  /** From now on the agent can be waited for. */
  open(tools: Omit<LinkTools, "peerId" | "patienceMs">): LinkCaller {
    const { agentId: peerId } = this.credentials;
    this.#caller = linkCalling.open({ ...tools, peerId, patienceMs: PATIENCE_MS });
    return this.#caller;
  }

  stream(input: SendInput, signal: AbortSignal): Promise<FrameStream> {
    return this.#reached().dispatch({ kind: "stream", ...input }, signal);
  }

  cancel(id: string, signal: AbortSignal): Promise<unknown> {
    return this.#reached().dispatch({ kind: "cancel", id }, signal);
  }

  #reached(): LinkCaller {
    if (this.#caller !== undefined) return this.#caller;
    throw new ProtocolError("UNAVAILABLE", "Agents can dial in only to a server that listens by itself.");
  }
}

interface DialInAgent extends Agent {
  readonly dialIn: DialIn;
}

export function createDialInAgent({ agentId, ak, sk, ...definition }: DialInAgentOptions): DialInAgent {
  const dialIn = new DialIn({ agentId, ak, sk });
  return { ...createForwardingAgent({ inputModes: ANY_INPUT, ...definition, peer: dialIn }), dialIn };
}

/** Throws a TypeError where two agents could not be told apart. */
export function dialInsOf(agents: Readonly<Record<string, Agent>>): ReadonlyMap<string, DialIn> {
  const found = new Map<string, DialIn>();
  const ids = new Set<string>();
  for (const [name, agent] of Object.entries(agents)) {
    if (!isDialInAgent(agent)) continue;
    const { agentId } = agent.dialIn.credentials;
    if (ids.has(agentId)) throw new TypeError(`Two agents would dial in as "${agentId}".`);
    ids.add(agentId);
    found.set(name, agent.dialIn);
  }
  return found;
}

function isDialInAgent(agent: Agent): agent is DialInAgent {
  return "dialIn" in agent && agent.dialIn instanceof DialIn;
}
