import { hostNameOf, isLoopback } from "./loopback.ts";

/**
 * Which Host headers a server may answer to that takes anonymous callers. One that listens on loopback is reached from
 * this machine or through a proxy that `publicUrl` names; any other name in a request is that of a web page which has
 * bound it to our address to get at the agents with its visitor's browser. Such a page has no credentials to show, so
 * that a server which requires them need not ask for names.
 */
export function ownHosts(listensOn: string, publicUrl: string | undefined): (host: string | undefined) => boolean {
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
