/** The caller's own TLS settings: a client certificate, and authorities to trust besides the usual ones. */

import { rootCertificates } from "node:tls";
import type { Agent } from "undici";

/** Each in PEM. `cert` and `key` belong together. */
export interface ClientTlsOptions {
  /** Client certificate, with intermediate ones after it. */
  readonly cert?: string;
  /** Private key of `cert`, unencrypted. */
  readonly key?: string;
  /** Certificates of authorities that are trusted besides those that Node trusts. */
  readonly ca?: string;
}

type Fetch = typeof globalThis.fetch;

/**
 * A `fetch` with these TLS settings. A certificate tells who the caller is, so it is presented only to URLs that may
 * have credentials; redirects pass through here, one call for each hop.
 */
export function createTlsFetch(fetch: Fetch, tls: ClientTlsOptions, mayPresent: (url: string) => boolean): Fetch {
  const agents = new Map<boolean, Promise<Agent>>();
  return async (input, init) => {
    const isTrusted = mayPresent(input instanceof Request ? input.url : String(input));
    const agent = agents.get(isTrusted) ?? createAgent(isTrusted ? tls : withoutCertificate(tls));
    agents.set(isTrusted, agent);
    return fetch(input, Object.assign({ ...init }, { dispatcher: await agent }));
  };
}

/** Timeouts are the caller's: those of the agent would end streams that are silent for a while. */
async function createAgent(tls: ClientTlsOptions): Promise<Agent> {
  const { Agent } = await import("undici");
  return new Agent({ connect: { ...tls, ...trustedAuthorities(tls) }, headersTimeout: 0, bodyTimeout: 0 });
}

/** A list of authorities replaces the usual ones, so it contains these too. */
export function trustedAuthorities({ ca }: ClientTlsOptions): { readonly ca?: string[] } {
  return ca === undefined ? {} : { ca: [...rootCertificates, ca] };
}

export function withoutCertificate({ ca }: ClientTlsOptions): ClientTlsOptions {
  return ca === undefined ? {} : { ca };
}
