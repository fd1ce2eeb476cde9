import type { CryptoKey, createLocalJWKSet, FlattenedJWSInput, JSONWebKeySet, JWSHeaderParameters } from "jose";
import { ProtocolError } from "../model/errors.ts";
import type { Log } from "../model/ports.ts";

export interface RemoteKeysOptions {
  /** Reads the key set, wherever it is. */
  readonly load: () => Promise<JSONWebKeySet>;
  readonly now: () => number;
  readonly log: Log;
}

/** Keys are read again after this time. */
const FRESH_MS = 600_000;
/** Keys that cannot be read again are used this long: an issuer that is down for an hour locks nobody out. */
const USABLE_MS = 86_400_000;
/** A token of an unknown key makes the set be read again, at most this often: anyone can invent key ids. */
const ROTATION_MS = 30_000;
/** After a failure the issuer is left alone for a moment. */
const RETRY_MS = 5_000;

type KeySet = ReturnType<typeof createLocalJWKSet>;

/** The public keys of an issuer, which change now and then. */
export class RemoteKeys {
  readonly #options: RemoteKeysOptions;
  #keys: { readonly set: KeySet; readonly readAt: number } | undefined;
  #loading: Promise<void> | undefined;
  #triedAt = Number.NEGATIVE_INFINITY;
  #failed = false;

  constructor(options: RemoteKeysOptions) {
    this.#options = options;
  }

  /** Throws UNAVAILABLE when there are no keys to be had, and jose's own errors when none of them fits. */
  readonly find = async (header: JWSHeaderParameters, token: FlattenedJWSInput): Promise<CryptoKey> => {
    const set = await this.#current();
    try {
      return await set(header, token);
    } catch (error) {
      const { errors } = await import("jose");
      if (!(error instanceof errors.JWKSNoMatchingKey) || !this.#may(ROTATION_MS)) throw error;
    }
    await this.#reload();
    return (await this.#current())(header, token);
  };

  async #current(): Promise<KeySet> {
    const age = this.#options.now() - (this.#keys?.readAt ?? Number.NEGATIVE_INFINITY);
    if (age > FRESH_MS && this.#may(this.#failed ? RETRY_MS : 0)) await this.#reload();
    const keys = this.#keys;
    if (keys === undefined || this.#options.now() - keys.readAt > USABLE_MS) {
      throw new ProtocolError("UNAVAILABLE", "Tokens cannot be checked at the moment.", {
        retryAfter: RETRY_MS / 1000,
      });
    }
    return keys.set;
  }

  /** Whoever comes while the keys are being read waits for them too. */
  #may(pauseMs: number): boolean {
    return this.#loading !== undefined || this.#options.now() - this.#triedAt >= pauseMs;
  }

  #reload(): Promise<void> {
    this.#loading ??= this.#load().finally(() => {
      this.#loading = undefined;
    });
    return this.#loading;
  }

  async #load(): Promise<void> {
    const { load, log, now } = this.#options;
    this.#triedAt = now();
    try {
      const { createLocalJWKSet } = await import("jose");
      const set = createLocalJWKSet(await load());
      this.#keys = { set, readAt: now() };
      this.#failed = false;
    } catch (error) {
      this.#failed = true;
      log.warn({ err: error }, "The keys by which tokens are checked could not be read.");
    }
  }
}
