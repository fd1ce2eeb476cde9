/** Agents of other servers, found in registries: who looks for them, and who chooses one. */

import type { AgentTarget, CallableAgent, ChosenAgent, ResolveOptions } from "../agents/directory.ts";
import type { AgentIdentity } from "../client/registry-identity.ts";
import type { Caller } from "../model/caller.ts";
import type { Clock, Log } from "../model/ports.ts";

export type WantedAgent = Extract<AgentTarget, { skill: string } | { registered: string }>;

/** An agent as a registry lists it. */
export interface FoundAgent extends ChosenAgent {
  /** Whether the registry has reached it lately. */
  readonly healthy: boolean;
  /** How well it matches what was asked for; more is better. */
  readonly score: number;
  /** Its card became that of another agent, so that it is not called. */
  readonly heldBack?: boolean;
  /** What its card has to say; absent if the registry does not know. */
  readonly identity?: AgentIdentity;
}

/** What one registry, or one circle of registries, answers. */
export interface FoundAgents {
  readonly agents: readonly FoundAgent[];
  /** Registries that could not be asked, and why. */
  readonly unanswered: readonly string[];
}

/** Asks the nearest registry first, and those further away only if the loop continues. */
export type FindAgents = (wanted: WantedAgent, caller: Caller) => AsyncIterable<FoundAgents>;

export interface AgentChooserOptions {
  readonly find: FindAgents;
  /** For addresses that others have registered. */
  readonly fetch: typeof globalThis.fetch;
  /** Whether an address is one of this server, whose agents are not looked for in registries. */
  readonly isOwn: (url: string) => boolean;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
}

export interface AgentChooser {
  /** Rejects with a ProtocolError: UNAVAILABLE if there is one that cannot be reached now, else INVALID_PARAMS. */
  choose(wanted: WantedAgent, caller: Caller, options?: ResolveOptions): Promise<CallableAgent>;
  /** The one that was chosen before, whatever a registry says now. It may be at work, so a restart is waited for. */
  reach(chosen: ChosenAgent): Promise<CallableAgent>;
}
