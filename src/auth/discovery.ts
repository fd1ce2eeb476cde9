import { DocumentError, type Fetch, fetchJson } from "./fetch-json.ts";

/** Where OpenID Connect has an issuer's metadata (Discovery 1.0 §4). */
export function openIdConnectUrl(issuer: string): string {
  return `${issuer.replace(/\/+$/, "")}/.well-known/openid-configuration`;
}

/** Where OAuth has it: the well-known part goes between host and path (RFC 8414 §3.1). */
function authorizationServerUrl(issuer: string): string {
  const { origin, pathname } = new URL(issuer);
  return `${origin}/.well-known/oauth-authorization-server${pathname.replace(/\/+$/, "")}`;
}

/** The address of an issuer's keys, as its metadata have it. */
export async function discoverKeys(fetch: Fetch, issuer: string): Promise<string> {
  const metadata = await fetchJson(fetch, openIdConnectUrl(issuer)).catch((error: unknown) =>
    fetchJson(fetch, authorizationServerUrl(issuer)).catch(() => {
      throw error;
    }),
  );
  // Whoever can answer at that address could otherwise speak for another issuer (RFC 8414 §3.3).
  if (metadata.issuer !== issuer) {
    throw new DocumentError(`The metadata of ${issuer} are those of ${JSON.stringify(metadata.issuer)}.`);
  }
  const { jwks_uri: address } = metadata;
  if (typeof address !== "string" || !URL.canParse(address)) throw new DocumentError(`${issuer} names no keys.`);
  if (issuer.startsWith("https:") && !address.startsWith("https:")) {
    throw new DocumentError(`${issuer} has its keys where anybody on the way could change them.`);
  }
  return address;
}
