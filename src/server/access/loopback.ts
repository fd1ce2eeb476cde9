import { isLoopback as isLoopbackHost } from "../../wire/loopback.ts";

/**
 * Which Host headers a server may answer to that takes anonymous callers. One that listens on loopback is reached from
 * this machine or through a proxy that `publicUrl` names; any other name in a request is that of a web page which has
 * bound it to our address to get at the agents with its visitor's browser. Such a page has no credentials to show, so
 * that a server which requires them need not ask for names.
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
  // Callers come back under the same name, and looking at an address costs more than all else there is to route.
  let last: string | undefined;
  return (host) => {
    if (host === undefined || host === last) return true;
    if (!isOwn(host)) return false;
    last = host;
    return true;
  };
}

/** True for names and addresses by which only this machine reaches the server. */
export function isLoopback(host: string): boolean {
  return isLoopbackHost(host, { subdomains: true });
}

/** The host by which other machines reach a server, its own or that of a proxy; undefined where none can. */
export function externallyReachableHost(host: string, publicUrl: string | undefined): string | undefined {
  if (!isLoopback(host)) return host;
  if (publicUrl === undefined || !URL.canParse(publicUrl)) return undefined;
  const name = hostNameOf(new URL(publicUrl).hostname);
  return isLoopback(name) ? undefined : name;
}

/** Of a Host header: without port and brackets, in lower case. */
export function hostNameOf(host: string): string {
  return host
    .replace(/:\d*$/, "")
    .replace(/^\[(.*)\]$/, "$1")
    .toLowerCase();
}
