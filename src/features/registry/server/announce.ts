/** Registers the agents of this server at other registries and keeps them there as long as the server runs. */

import { ConnectionError } from "../../../core/client/errors.ts";
import { backoffDelay } from "../../../core/model/backoff.ts";
import type { Clock, Log } from "../../../core/model/ports.ts";
import { isLoopback } from "../../../core/wire/loopback.ts";
import { type RegistryClient, RegistryError } from "../client/types.ts";
import { isServerEntry } from "../entry.ts";

/** An agent of this server, as it is announced. */
interface AnnouncedAgent {
  readonly name: string;
  readonly cardUrl: string;
}

interface AnnounceOptions {
  readonly url: string;
  readonly registry: Pick<RegistryClient, "register" | "heartbeat" | "remove">;
  readonly agents: readonly AnnouncedAgent[];
  readonly clock: Clock;
  /** In [0, 1). */
  readonly random: () => number;
  readonly log: Log;
  readonly ttlSeconds?: number;
}

export interface Announcement {
  /** Removes the agents from the registry, within a time limit. */
  close(): Promise<void>;
}

const DEFAULT_TTL_SECONDS = 60;
/** Two heartbeats may be lost before the ttl is over. */
const HEARTBEATS_PER_TTL = 3;
const RETRY_BASE_MS = 1_000;
const REQUEST_MS = 10_000;
const CLOSE_MS = 2_000;

/** What another attempt gets again, as long as neither the card nor the registry's rules change. */
const REFUSALS: readonly string[] = ["INVALID_ARGUMENT", "PERMISSION_DENIED", "UNAUTHENTICATED"];

export function announce(options: AnnounceOptions): Announcement {
  const { agents, clock, log, random, registry, ttlSeconds = DEFAULT_TTL_SECONDS, url } = options;
  const intervalMs = (ttlSeconds * 1000) / HEARTBEATS_PER_TTL;
  const closed = new AbortController();
  const ids = new Map<string, string>();
  /** Why an agent is not registered, as it was last logged. */
  const problems = new Map<string, string>();
  let failures = 0;
  let stopTimer = () => {};
  let running = Promise.resolve();
  warnOfLoopback(options);

  async function register({ cardUrl, name }: AnnouncedAgent): Promise<void> {
    const call = { signal: closed.signal, timeoutMs: REQUEST_MS };
    const known = ids.get(name);
    if (known !== undefined) {
      // The registry is that of this server, which always lists its own agents.
      if (isServerEntry(known)) return;
      try {
        await registry.heartbeat(known, call);
        return;
      } catch (error) {
        if (!(error instanceof RegistryError) || error.code !== "NOT_FOUND") throw error;
        ids.delete(name);
        log.warn({ agent: name, registry: url }, "The registry has forgotten the agent; it is registered again");
      }
    }
    // The registry is for others: what only this server could find there would not need to be announced.
    const { id } = await registry.register({ url: cardUrl, ttlSeconds, visibility: "public" }, call);
    if (id === undefined) throw new RegistryError("INVALID_RESPONSE", "The registry gave the agent no id.");
    ids.set(name, id);
    problems.delete(name);
    log.info({ agent: name, registry: url, id }, "Agent registered");
  }

  /** Returns whether the registry could be asked; an agent that it refuses is left to the next heartbeat. */
  async function renew(agent: AnnouncedAgent): Promise<boolean> {
    try {
      await register(agent);
      return true;
    } catch (error) {
      if (closed.signal.aborted) return true;
      if (!(error instanceof RegistryError) && !ConnectionError.is(error)) throw error;
      if (problems.get(agent.name) !== error.message) {
        log.warn({ agent: agent.name, registry: url, reason: error.message }, "Agent not registered");
      }
      problems.set(agent.name, error.message);
      return error instanceof RegistryError && REFUSALS.includes(error.code);
    }
  }

  async function renewAll(): Promise<void> {
    let wasReached = true;
    for (const agent of agents) {
      if (closed.signal.aborted) return;
      wasReached = (await renew(agent)) && wasReached;
    }
    failures = wasReached ? 0 : failures + 1;
    if (closed.signal.aborted) return;
    // Servers that were started together must not send their heartbeats together.
    const pause = wasReached
      ? backoffDelay(1, intervalMs, intervalMs, random())
      : backoffDelay(failures, RETRY_BASE_MS, intervalMs, random());
    stopTimer = clock.after(pause, start);
  }

  function start(): void {
    running = renewAll().catch((error: unknown) => {
      log.error({ err: error, registry: url }, "Announcing agents failed");
    });
  }

  start();
  return {
    async close() {
      stopTimer();
      closed.abort();
      await running;
      const call = { signal: AbortSignal.timeout(CLOSE_MS), timeoutMs: CLOSE_MS };
      const removed = await Promise.allSettled(
        [...ids.values()].filter((id) => !isServerEntry(id)).map((id) => registry.remove(id, call)),
      );
      const left = removed.filter(({ status }) => status === "rejected").length;
      if (left > 0)
        log.warn({ registry: url, agents: left }, "Agents not removed from the registry; they expire there");
    },
  };
}

function warnOfLoopback({ agents, log, url }: AnnounceOptions): void {
  const cardUrl = agents[0]?.cardUrl;
  if (cardUrl === undefined || isLoopback(new URL(url).hostname) || !isLoopback(new URL(cardUrl).hostname)) return;
  log.warn(
    { registry: url, cardUrl },
    "The registry is on another machine, which cannot reach this address; set server.publicUrl.",
  );
}
