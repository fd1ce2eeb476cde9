import type { Fetch } from "./fetch-json.ts";
import { createGuardedFetch } from "./guarded-fetch.ts";

/**
 * For the documents of an issuer. Hosts that the operator named may be anywhere; where an issuer's metadata point to,
 * only what is public may be reached besides.
 */
export function createIssuerFetch(named: readonly string[]): Fetch {
  return createGuardedFetch({ allow: named.map((url) => new URL(url).hostname) });
}
