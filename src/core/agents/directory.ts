import type { Agent, Turn } from "../engine/agent.ts";
import type { AgentProfile } from "../model/card.ts";
import { ProtocolError } from "../model/errors.ts";
import type { JsonObject } from "../model/json.ts";
import type { Records } from "../model/records.ts";
import { type Peer, peerContextId } from "./child-task.ts";

/** Which agent is meant: by its name on this server, by its URL, or by the id of a skill … */
export type AgentTarget =
  | { readonly agent: string }
  | { readonly url: string }
  | { readonly skill: string }
  /** … by its name or id in a registry … */
  | { readonly registered: string }
  /** … or the one that was chosen before. */
  | { readonly chosen: ChosenAgent };

/** What is stored of an agent that was found in a registry, so that a run that continues finds the same one again. */
export type ChosenAgent = {
  /** In the registry. */
  readonly id: string;
  /** URL of the card, or of an interface if the registry has the card itself. */
  readonly url: string;
  /** As the registry has it; absent if it is at the URL. */
  readonly card?: JsonObject;
};

/** An agent that runs may call. */
export interface CallableAgent extends Peer {
  /** Its name on this server, or its URL. */
  readonly name: string;
  /** The dialect it is called in. */
  readonly dialect: string;
  /** It is served by this process: it may see this server's ids, and a task gets the id that was chosen for it. */
  readonly isLocal: boolean;
  /** Present if it was found in a registry. */
  readonly chosen?: ChosenAgent;
}

/** The conversation of a run, which agents elsewhere know by another id: see `peerContextId`. */
export function contextIdFor({ isLocal }: CallableAgent, { caller, task }: Pick<Turn, "caller" | "task">): string {
  return isLocal ? task.contextId : peerContextId(caller.owner, task.contextId);
}

export interface ResolveOptions {
  /** Agents that were tried before: they are chosen only if no other can be reached. */
  readonly avoid?: readonly ChosenAgent[];
  /** Only agents of other servers. */
  readonly elsewhere?: boolean;
}

/** The agents that the runs of a server may call. */
export interface AgentDirectory {
  /** Rejects with a ProtocolError or a ConnectionError that says what is wrong with the target. */
  resolve(target: AgentTarget, turn: Pick<Turn, "caller">, options?: ResolveOptions): Promise<CallableAgent>;
}

/** Beside other agents, what the runs of a server may use. */
export interface RunServices {
  /** Durable facts beside tasks. */
  readonly records: Records;
  /** The profile of an agent of the same server. */
  findProfile(agent: string): AgentProfile | undefined;
  /** Counts the tokens of a language model. */
  countTokens(agent: string, kind: TokenKind, count: number): void;
}

export type TokenKind = "prompt" | "completion";

/** Registered, because a module may have been loaded with another copy of this package. */
const BIND = Symbol.for("dragoman.bindDirectory");

interface DirectoryAgent extends Agent {
  readonly [BIND]: (directory: AgentDirectory, services?: RunServices) => void;
}

const hasBinding = (agent: Agent): agent is DirectoryAgent => BIND in agent;

/**
 * An agent that calls others. Agents are made before the server that serves them, so its directory comes later, and so
 * do other services: undefined while the agent is not part of a server.
 */
export function createDirectoryAgent(
  create: (directory: AgentDirectory, services: () => RunServices | undefined) => Agent,
): Agent {
  let bound: AgentDirectory | undefined;
  let services: RunServices | undefined;
  const directory: AgentDirectory = {
    async resolve(target, turn, options) {
      if (bound !== undefined) return bound.resolve(target, turn, options);
      throw new ProtocolError("UNAVAILABLE", "No other agents can be called: the agent is not part of a server.");
    },
  };
  const agent = create(directory, () => services);
  return Object.assign(agent, {
    [BIND]: (given: AgentDirectory, further?: RunServices) => {
      bound = given;
      services = further;
    },
  });
}

/** Gives an agent the agents and services of the server that serves it. */
export function bindDirectory(agent: Agent, directory: AgentDirectory, services?: RunServices): void {
  if (hasBinding(agent)) agent[BIND](directory, services);
}

/** For an agent that is made of another: it is bound when the copy is. */
export function withBindingOf(source: Agent, copy: Agent): Agent {
  return hasBinding(source) ? Object.assign(copy, { [BIND]: source[BIND].bind(source) }) : copy;
}
