import { BlockList, isIP } from "node:net";

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet("127.0.0.0", 8, "ipv4");
LOOPBACK.addAddress("::1", "ipv6");

/** True for addresses that only this machine can reach. */
export function isLoopback(host: string): boolean {
  const family = isIP(host);
  if (family === 0) return /^(?:.+\.)?localhost$/i.test(host);
  return LOOPBACK.check(host, family === 6 ? "ipv6" : "ipv4");
}

/** The host by which other machines reach a server, its own or that of a proxy; undefined where none can. */
export function reachedBy(host: string, publicUrl: string | undefined): string | undefined {
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
