import { BlockList, isIP } from "node:net";

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet("127.0.0.0", 8, "ipv4");
LOOPBACK.addAddress("::1", "ipv6");

/** Names of this machine, as an allow list of a guarded fetch has them. */
export const LOOPBACK_TARGETS: readonly string[] = ["localhost", "127.0.0.0/8", "::1"];

/**
 * Whether a host name or address, in brackets or not, is this machine. Not every resolver keeps names below `localhost`
 * here (RFC 6761), so `subdomains` is only for names that came in and none to send anything to.
 */
export function isLoopback(host: string, { subdomains = false } = {}): boolean {
  const bare = host.replace(/^\[(.*)\]$/, "$1");
  const family = isIP(bare);
  if (family !== 0) return LOOPBACK.check(bare, family === 6 ? "ipv6" : "ipv4");
  return subdomains ? /^(?:.+\.)?localhost$/i.test(bare) : bare.toLowerCase() === "localhost";
}
