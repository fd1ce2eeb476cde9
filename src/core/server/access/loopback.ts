import { canParseUrl } from "../../model/url.ts";
import { isLoopback as isLoopbackHost } from "../../wire/loopback.ts";

/**
 * Which Host headers are accepted by a server that allows anonymous callers. A server on loopback is reached from this
 * machine or through a proxy that `publicUrl` names; any other name is that of a web page that has bound it to our
 * address (DNS rebinding) to reach the agents with its visitor's browser. Such a page has no credentials, so a server
 * that requires them need not check names.
 */
export function createHostCheck(
  listensOn: string,
  publicUrl: string | undefined,
): (host: string | undefined) => boolean {
  if (!isLoopback(listensOn)) return () => true;
  const publicName = publicUrl === undefined ? undefined : hostNameOf(new URL(publicUrl).hostname);
  const isOwn = (host: string) => {
    const name = hostNameOf(host);
    return name === publicName || isLoopback(name);
  };
  // Cached: callers repeat the same name, and parsing an address costs more than the rest of routing.
  let last: string | undefined;
  return (host) => {
    if (host === undefined || host === last) return true;
    if (!isOwn(host)) return false;
    last = host;
    return true;
  };
}

/** True for names and addresses that only this machine can reach. */
export function isLoopback(host: string): boolean {
  return isLoopbackHost(host, { subdomains: true });
}

/** The host by which other machines reach a server, its own or that of a proxy; undefined if none can. */
export function externallyReachableHost(host: string, publicUrl: string | undefined): string | undefined {
  if (!isLoopback(host)) return host;
  if (publicUrl === undefined || !canParseUrl(publicUrl)) return undefined;
  const name = hostNameOf(new URL(publicUrl).hostname);
  return isLoopback(name) ? undefined : name;
}

/** Host name of a Host header: without port and brackets, in lower case. */
export function hostNameOf(host: string): string {
  return host
    .replace(/:\d*$/, "")
    .replace(/^\[(.*)\]$/, "$1")
    .toLowerCase();
}
