/** The ways cards spell the address of a gRPC endpoint. */

export interface GrpcAddress {
  /** `host:port`, the host of an IPv6 address in brackets. */
  readonly authority: string;
  readonly secure: boolean;
  readonly isLoopback: boolean;
}

export interface GrpcAddressOptions {
  /** Where the card was found. */
  readonly cardUrl?: string | undefined;
  /** Whether an address without a scheme means TLS; otherwise the card's own URL tells. */
  readonly tls?: boolean | undefined;
}

const SCHEMES: Readonly<Record<string, boolean>> = {
  "http:": false,
  "grpc:": false,
  "https:": true,
  "grpcs:": true,
};

const LOOPBACK = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/;

/** `undefined` for what is no such address. A path is nothing to gRPC and left out. */
export function parseGrpcAddress(url: string, options: GrpcAddressOptions = {}): GrpcAddress | undefined {
  const scheme = /^([a-z][a-z0-9+.-]*:)\/\//i.exec(url)?.[1]?.toLowerCase();
  if (scheme === undefined ? url.startsWith("/") : SCHEMES[scheme] === undefined) return undefined;
  // Only special schemes have their hosts checked and lowered.
  const spelt = `http://${scheme === undefined ? url : url.slice(scheme.length + 2)}`;
  if (!URL.canParse(spelt)) return undefined;
  const { hostname, port, pathname } = new URL(spelt);
  if (scheme === undefined && pathname !== "/") return undefined;
  const isLoopback = LOOPBACK.test(hostname);
  const secure = scheme === undefined ? isTlsMeant(isLoopback, options) : (SCHEMES[scheme] as boolean);
  return { authority: `${hostname}:${port || explicitPort(spelt) || (secure ? "443" : "80")}`, secure, isLoopback };
}

/** `URL` hides a port that is the scheme's own. */
function explicitPort(url: string): string | undefined {
  return /^http:\/\/[^/?#]*:(\d+)(?:[/?#]|$)/.exec(url)?.[1];
}

/** An agent that shows its card in the open talks in the open; without a card's URL only loopback does. */
function isTlsMeant(isLoopback: boolean, { cardUrl, tls }: GrpcAddressOptions): boolean {
  if (tls !== undefined) return tls;
  if (cardUrl !== undefined && /^https?:/i.test(cardUrl)) return /^https:/i.test(cardUrl);
  return !isLoopback;
}
