import type { Agent } from "../engine/agent.ts";
import type { AgentCard } from "../model/card.ts";
import type { Loss } from "../model/loss.ts";

/** What is known of an upstream, for readiness and metrics. */
export interface UpstreamStatus {
  /** Without login and query. */
  readonly url: string;
  /** Undefined until it was called, or its card was read. */
  readonly reachable: boolean | undefined;
  /** Calls and readings of the card that failed because it could not be reached. */
  readonly failures: number;
}

/** The agent of another server that an agent here is served from, as the server that serves it needs to know it. */
export interface ServedUpstream {
  readonly status: UpstreamStatus;
  /** Undefined until it was read. */
  readonly card: AgentCard | undefined;
  /** Keeps its card up to date from now on. */
  start(reportLosses: (dialect: string, losses: readonly Loss[]) => void): void;
  /** Reads its card, if that was not done yet. */
  connect(signal?: AbortSignal): Promise<unknown>;
  close(): void;
}

export const UPSTREAM = Symbol("upstream");

export interface UpstreamAgent extends Agent {
  readonly [UPSTREAM]: ServedUpstream;
}

/** The upstream of an agent that has one. */
export function upstreamOf(agent: Agent): ServedUpstream | undefined {
  return UPSTREAM in agent ? (agent as UpstreamAgent)[UPSTREAM] : undefined;
}
