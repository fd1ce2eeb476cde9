import { isLoopback } from "./loopback.ts";

/**
 * Which Host headers a server may answer to. One that listens on loopback and takes anonymous callers is reached from
 * this machine or through a proxy that `publicUrl` names; any other name in a request is that of a web page which has
 * bound it to our address to get at the agents with its visitor's browser.
 */
export function ownHosts(listensOn: string, publicUrl: string | undefined): (host: string | undefined) => boolean {
  if (!isLoopback(listensOn)) return () => true;
  const publicName = publicUrl === undefined ? undefined : new URL(publicUrl).hostname.toLowerCase();
  return (host) => {
    if (host === undefined) return true;
    const name = host.replace(/:\d*$/, "").toLowerCase();
    return name === publicName || isLoopback(name.replace(/^\[(.*)\]$/, "$1"));
  };
}
