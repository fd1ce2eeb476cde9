import type { Clock } from "../model/ports.ts";
import type { Wakeup, Wakeups } from "./contract.ts";

type Listener = (wakeup: Wakeup | "all") => void;

/** Wake-ups inside one process: listeners are called at once, in the order they subscribed. */
export function createWakeups(): Wakeups {
  const listeners = new Set<Listener>();
  return {
    publish(wakeup) {
      for (const listener of listeners) listener(wakeup);
    },
    subscribe(listener) {
      // A wrapper of its own per subscription: the same function may subscribe twice and leave once.
      const own: Listener = (wakeup) => listener(wakeup);
      listeners.add(own);
      return () => {
        listeners.delete(own);
      };
    },
  };
}

/** How long a node that took a lease counts as alive before its first heartbeat. */
const DEFAULT_TTL_MS = 15_000;

/** Which nodes live, by the clock of the store. */
export interface Liveness {
  heartbeat(node: string, ttlMs: number): void;
  /** A node that takes a lease is alive now, even before its first heartbeat. */
  recordLease(node: string): void;
  /** All that took a lease or sent a heartbeat, alive or not. */
  nodes(): string[];
  isExpired(node: string): boolean;
  expiredNodes(): string[];
}

/** For stores that one process owns alone: what is known of nodes ends with the process, as do all its nodes. */
export function createLiveness(clock: Clock): Liveness {
  const expiresAt = new Map<string, number>();
  const heartbeat = (node: string, ttlMs: number) => void expiresAt.set(node, clock.now() + ttlMs);
  const isExpired = (node: string) => (expiresAt.get(node) ?? Number.NEGATIVE_INFINITY) < clock.now();
  return {
    heartbeat,
    recordLease(node) {
      if (!expiresAt.has(node)) heartbeat(node, DEFAULT_TTL_MS);
    },
    nodes: () => [...expiresAt.keys()],
    isExpired,
    expiredNodes: () => [...expiresAt.keys()].filter(isExpired),
  };
}

/** The commit at which a list began. With a single writer commits have an order, and their count names each state. */
export function parseView(view: string): number {
  return /^\d{1,15}$/.test(view) ? Number(view) : Number.MAX_SAFE_INTEGER;
}
