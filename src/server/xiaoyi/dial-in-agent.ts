/** Agents that dial us: behind whatever they are, they are reached over the link they opened. */
import type { AgentDefinition } from "../../agents/define.ts";
import { createForwardingAgent, type Peer } from "../../agents/forward.ts";
import type { LinkCaller, LinkTools } from "../../dialects/contract.ts";
import { linkCalling } from "../../dialects/xiaoyi-link/index.ts";
import type { Agent } from "../../engine/agent.ts";
import { ProtocolError } from "../../model/errors.ts";
import type { FrameStream, SendInput } from "../../model/operation.ts";

/** Each pair is complete or absent; at least one is there. */
export interface DialInCredentials {
  /** By which the agent introduces itself. */
  readonly agentId: string;
  /** Names `sk`, with which the agent signs the time. */
  readonly ak?: string;
  readonly sk?: string;
  /** Names `apiKey`, which the agent sends as it is. */
  readonly uid?: string;
  readonly apiKey?: string;
}

interface DialInAgentOptions extends DialInCredentials, Omit<AgentDefinition, "run"> {
  /** How long a task under way waits for the agent to come back. Real ones take 2 s to 60 s; default: 90 s. */
  readonly patienceMs?: number;
}

/** How long a new message waits for an agent that is not connected. */
const CONNECT_MS = 10_000;
const PATIENCE_MS = 90_000;
/** Whatever the agent takes: only it knows. */
const ANY_INPUT: readonly string[] = ["text/plain", "application/json", "*/*"];

/** What is the same for all agents that dial in. */
export type DialInTools = Omit<LinkTools, "peerId" | "connectMs" | "patienceMs">;

/** An agent's way in, and the way to it once it is there. */
export class DialIn implements Peer {
  readonly credentials: DialInCredentials;
  readonly #patienceMs: number;
  readonly takesMetadata = false;
  #caller: LinkCaller | undefined;

  constructor(credentials: DialInCredentials, patienceMs = PATIENCE_MS) {
    this.credentials = credentials;
    this.#patienceMs = patienceMs;
  }

  /** From now on the agent can be waited for. */
  open(tools: DialInTools): LinkCaller {
    const { agentId: peerId } = this.credentials;
    this.#caller = linkCalling.open({ ...tools, peerId, connectMs: CONNECT_MS, patienceMs: this.#patienceMs });
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

export function createDialInAgent(options: DialInAgentOptions): DialInAgent {
  const { agentId, ak, sk, uid, apiKey, patienceMs, ...definition } = options;
  const dialIn = new DialIn(
    {
      agentId,
      ...(ak !== undefined && sk !== undefined && { ak, sk }),
      ...(uid !== undefined && apiKey !== undefined && { uid, apiKey }),
    },
    patienceMs,
  );
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
