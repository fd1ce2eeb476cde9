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

/** How long a node that took a lease without ever announcing itself counts as living. */
const DEFAULT_TTL_MS = 15_000;

/** Which nodes live, for stores that one process owns alone: what it knew dies with it, as do all its nodes. */
export class Liveness {
  readonly #expiresAt = new Map<string, number>();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  heartbeat(node: string, ttlMs: number): void {
    this.#expiresAt.set(node, this.#clock.now() + ttlMs);
  }

  /** A node that takes a lease is alive now, even before its first beat. */
  recordLease(node: string): void {
    if (!this.#expiresAt.has(node)) this.heartbeat(node, DEFAULT_TTL_MS);
  }

  /** All that took a lease or announced themselves, alive or not. */
  nodes(): string[] {
    return [...this.#expiresAt.keys()];
  }

  isExpired(node: string): boolean {
    return (this.#expiresAt.get(node) ?? Number.NEGATIVE_INFINITY) < this.#clock.now();
  }

  expiredNodes(): string[] {
    return [...this.#expiresAt.keys()].filter((node) => this.isExpired(node));
  }
}

/** The commit at which a list began. With a single writer commits have an order, and their count names each state. */
export function parseView(view: string): number {
  return /^\d{1,15}$/.test(view) ? Number(view) : Number.MAX_SAFE_INTEGER;
}
