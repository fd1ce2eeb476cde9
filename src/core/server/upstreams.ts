import { type ServedUpstream, type UpstreamStatus, upstreamOf } from "../agents/upstream-of.ts";
import type { Agent } from "../engine/agent.ts";
import type { Loss } from "../model/loss.ts";

/** Keeps the cards of remote agents up to date while they are served. */
export class Upstreams {
  readonly #started = new Map<string, ServedUpstream>();
  readonly #reportLosses: (dialect: string, losses: readonly Loss[]) => void;

  constructor(
    agents: Readonly<Record<string, Agent>>,
    reportLosses: (dialect: string, losses: readonly Loss[]) => void,
  ) {
    this.#reportLosses = reportLosses;
    for (const [name, agent] of Object.entries(agents)) this.replace(name, agent);
  }

  /** To be called when an agent is served under a name, instead of the one before. */
  replace(name: string, agent: Agent): void {
    this.#started.get(name)?.close();
    this.#started.delete(name);
    const upstream = upstreamOf(agent);
    if (upstream === undefined) return;
    this.#started.set(name, upstream);
    upstream.start(this.#reportLosses);
  }

  /** By name of the agent. */
  get statuses(): ReadonlyMap<string, UpstreamStatus> {
    return new Map([...this.#started].map(([name, upstream]) => [name, upstream.status]));
  }

  /** Waits for the cards that were not read yet, by name of the agent; each rejects if the card cannot be read now. */
  readMissingCards(signal: AbortSignal): ReadonlyMap<string, Promise<unknown>> {
    const missing = [...this.#started].filter(([, { card }]) => card === undefined);
    return new Map(missing.map(([name, upstream]) => [name, upstream.connect(signal)]));
  }

  close(): void {
    for (const upstream of this.#started.values()) upstream.close();
  }
}
