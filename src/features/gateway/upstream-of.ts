import type { Agent } from "../../core/engine/agent.ts";
import type { Upstream } from "./upstream.ts";

/** Separate from the agent itself, so that a server without remote agents does not load the client. */
export const UPSTREAM = Symbol("upstream");

export interface UpstreamAgent extends Agent {
  readonly [UPSTREAM]: Upstream;
}

/** The upstream of an agent that was made by `createUpstreamAgent`. */
export function upstreamOf(agent: Agent): Upstream | undefined {
  return UPSTREAM in agent ? (agent as UpstreamAgent)[UPSTREAM] : undefined;
}
