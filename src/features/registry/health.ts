/** When an entry is up, stale, dead and gone, and when it has to be looked at again. */

import type { Health, RegistryEntry } from "./entry.ts";

export interface RegistryTimes {
  /** Between two reads of a card. */
  readonly refreshMs: number;
  /** How long a card may be unreadable until its entry counts as dead, and is removed. */
  readonly deadAfterMs: number;
  readonly goneAfterMs: number;
}

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;
export const DEFAULT_REGISTRY_TIMES: RegistryTimes = {
  refreshMs: 10 * MINUTE,
  deadAfterMs: DAY,
  goneAfterMs: 7 * DAY,
};

/** One failure may be a restart. */
const STALE_AFTER_FAILURES = 2;
const RETRY_MS = 30_000;

export type Age = Health | "gone";

/**
 * An entry without heartbeats is stale after its ttl, dead after twice, gone after three times that. `heardAt` is when
 * this process learnt of the last one, or began: the clock of another node that received it may be wrong.
 */
export function ageOf(entry: RegistryEntry, now: number, heardAt: number, times: RegistryTimes): Age {
  const { ttlMs, failures, failingSince = now, source, probe } = entry;
  const late = ttlMs === undefined ? -1 : (now - (heardAt + ttlMs)) / ttlMs;
  const failing = failures === 0 ? -1 : now - failingSince;
  if (late >= 2 || failing >= times.goneAfterMs) return "gone";
  if (late >= 1 || failing >= times.deadAfterMs) return "dead";
  if (late >= 0 || failures >= STALE_AFTER_FAILURES) return "stale";
  return source === "inline" && ttlMs === undefined && !probe ? "unknown" : "up";
}

export function isChecked({ source, probe }: RegistryEntry): boolean {
  return source === "url" || probe;
}

/** `spread` between 0 and 1 keeps checks from happening all at once. */
export function nextCheckAt(entry: RegistryEntry, times: RegistryTimes, spread: number): number | undefined {
  const { failures, checkedAt = entry.createdAt } = entry;
  if (!isChecked(entry)) return undefined;
  const wait = failures === 0 ? times.refreshMs : Math.min(times.refreshMs, RETRY_MS * 2 ** Math.min(failures - 1, 10));
  return checkedAt + wait * (0.9 + 0.2 * spread);
}

/** When its age changes next, if nothing happens. */
export function nextAgeAt(
  entry: RegistryEntry,
  now: number,
  heardAt: number,
  times: RegistryTimes,
): number | undefined {
  const { ttlMs, failures, failingSince = now } = entry;
  const candidates: number[] = [];
  if (ttlMs !== undefined) candidates.push(heardAt + ttlMs, heardAt + 2 * ttlMs, heardAt + 3 * ttlMs);
  if (failures > 0) candidates.push(failingSince + times.deadAfterMs, failingSince + times.goneAfterMs);
  const future = candidates.filter((time) => time > now);
  return future.length === 0 ? undefined : Math.min(...future);
}
