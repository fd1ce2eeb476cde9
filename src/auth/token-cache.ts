import { createHash } from "node:crypto";
import type { Caller } from "../model/caller.ts";

/** A token may be used for long; that its key was withdrawn is noticed after this time. */
const KEPT_MS = 60_000;
const MOST = 10_000;

interface Entry {
  readonly caller: Caller;
  readonly until: number;
}

/** Tokens that were found good a moment ago: callers send the same one with every request. Keeps digests, not tokens. */
export class TokenCache {
  readonly #entries = new Map<string, Entry>();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  find(token: string): Caller | undefined {
    if (this.#entries.size === 0) return undefined;
    const digest = digestOf(token);
    const entry = this.#entries.get(digest);
    if (entry === undefined) return undefined;
    if (entry.until > this.#now()) return entry.caller;
    this.#entries.delete(digest);
    return undefined;
  }

  keep(token: string, caller: Caller, expires: number): void {
    if (this.#entries.size >= MOST) {
      const [oldest] = this.#entries.keys();
      if (oldest !== undefined) this.#entries.delete(oldest);
    }
    this.#entries.set(digestOf(token), { caller, until: Math.min(expires, this.#now() + KEPT_MS) });
  }
}

function digestOf(token: string): string {
  return createHash("sha256").update(token).digest("base64url");
}
