import { isDeepStrictEqual } from "node:util";
import { type FullReply, jsonReply } from "../wire/exchange.ts";

export const JWKS_PATH = "/.well-known/jwks.json";

type Jwk = Readonly<Record<string, unknown>> & { readonly kid: string };

const MAX_AGE_SECONDS = 300;

/** The public keys of this server, whatever they sign, as one JWK set (RFC 7517 §5). */
export class JwksDocument {
  readonly #keys = new Map<string, Jwk>();

  /**
   * Only public members: whatever is given here anybody can read. One key may serve several purposes; several under one
   * name would leave verifiers to guess.
   */
  add(key: Jwk): void {
    const known = this.#keys.get(key.kid);
    if (known !== undefined && !isDeepStrictEqual(known, key)) {
      throw new TypeError(`Two different keys are called "${key.kid}"; each needs a kid of its own.`);
    }
    this.#keys.set(key.kid, key);
  }

  /** The path it is served at; a server without keys has none. */
  operations(): ReadonlyMap<string, () => FullReply> {
    return new Map(this.#keys.size === 0 ? [] : [[JWKS_PATH, () => this.#reply()]]);
  }

  #reply(): FullReply {
    const { headers, ...reply } = jsonReply(200, JSON.stringify({ keys: [...this.#keys.values()] }));
    const more = { "content-type": "application/jwk-set+json", "cache-control": `public, max-age=${MAX_AGE_SECONDS}` };
    return { ...reply, headers: { ...headers, ...more } };
  }
}
