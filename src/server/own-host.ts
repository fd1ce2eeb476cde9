/** Names and addresses of this machine itself. */
const LOOPBACK = /^(localhost|127(?:\.\d{1,3}){3}|\[::1\])$/i;

/**
 * Which Host headers a server may answer to. One that listens on loopback and takes anonymous callers is reached from
 * this machine or through a proxy that `publicUrl` names; any other name in a request is that of a web page which has
 * bound it to our address to get at the agents with its visitor's browser.
 */
export function ownHosts(listensOn: string, publicUrl: string | undefined): (host: string | undefined) => boolean {
  if (!LOOPBACK.test(listensOn.includes(":") ? `[${listensOn}]` : listensOn)) return () => true;
  const publicName = publicUrl === undefined ? undefined : new URL(publicUrl).hostname.toLowerCase();
  return (host) => {
    if (host === undefined) return true;
    const name = host.replace(/:\d*$/, "");
    return LOOPBACK.test(name) || name.toLowerCase() === publicName;
  };
}
