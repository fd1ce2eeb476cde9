import type { Clock } from "../model/ports.ts";

/** How long a node that took a lease without ever announcing itself counts as living. */
const UNANNOUNCED_TTL_MS = 15_000;

/** Which nodes live, for stores that one process owns alone: what it knew dies with it, as do all its nodes. */
export class Liveness {
  readonly #expiresAt = new Map<string, number>();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  beat(node: string, ttlMs: number): void {
    this.#expiresAt.set(node, this.#clock.now() + ttlMs);
  }

  /** A node that takes a lease is alive now, even before its first beat. */
  tookLease(node: string): void {
    if (!this.#expiresAt.has(node)) this.beat(node, UNANNOUNCED_TTL_MS);
  }

  /** All that took a lease or announced themselves, alive or not. */
  nodes(): string[] {
    return [...this.#expiresAt.keys()];
  }

  isSilent(node: string): boolean {
    return (this.#expiresAt.get(node) ?? Number.NEGATIVE_INFINITY) < this.#clock.now();
  }

  silentNodes(): string[] {
    return [...this.#expiresAt.keys()].filter((node) => this.isSilent(node));
  }
}
