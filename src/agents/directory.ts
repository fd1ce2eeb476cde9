import type { Agent, Turn } from "../engine/agent.ts";
import { ProtocolError } from "../model/errors.ts";
import type { Peer } from "./child-task.ts";

/** Which agent is meant: by its name on this server, by its URL, or by the id of a skill. */
export type AgentTarget = { readonly agent: string } | { readonly url: string } | { readonly skill: string };

/** An agent that runs may call. */
export interface CallableAgent extends Peer {
  /** Its name on this server, or its URL. */
  readonly name: string;
  /** The dialect it is called in. */
  readonly dialect: string;
  /** It is served by this process: it may see this server's ids, and a task gets the id that was chosen for it. */
  readonly isLocal: boolean;
}

/** The agents that the runs of a server may call. */
export interface AgentDirectory {
  /** Rejects with a ProtocolError or a ConnectionError that says what is wrong with the target. */
  resolve(target: AgentTarget, turn: Pick<Turn, "caller">): Promise<CallableAgent>;
}

/** Registered, because a module may have been loaded with another copy of this package. */
const BIND = Symbol.for("dragoman.bindDirectory");

interface DirectoryAgent extends Agent {
  readonly [BIND]: (directory: AgentDirectory) => void;
}

const hasBinding = (agent: Agent): agent is DirectoryAgent => BIND in agent;

/** An agent that calls others. Agents are made before the server that serves them, so its directory comes later. */
export function createDirectoryAgent(create: (directory: AgentDirectory) => Agent): Agent {
  let bound: AgentDirectory | undefined;
  const directory: AgentDirectory = {
    async resolve(target, turn) {
      if (bound !== undefined) return bound.resolve(target, turn);
      throw new ProtocolError("UNAVAILABLE", "No other agents can be called: the agent is not part of a server.");
    },
  };
  return Object.assign(create(directory), {
    [BIND]: (given: AgentDirectory) => {
      bound = given;
    },
  });
}

/** Gives an agent the agents of the server that serves it. */
export function bindDirectory(agent: Agent, directory: AgentDirectory): void {
  if (hasBinding(agent)) agent[BIND](directory);
}

/** For an agent that is made of another: it is bound when the copy is. */
export function withBindingOf(source: Agent, copy: Agent): Agent {
  return hasBinding(source) ? Object.assign(copy, { [BIND]: source[BIND].bind(source) }) : copy;
}
