import { BlockList, isIP } from "node:net";

/** Addresses of proxies, as `server.trustProxy` names them. */
export interface TrustedProxies {
  has(address: string | undefined): boolean;
  /** The address of the caller: the last one in `X-Forwarded-For` that is not itself a proxy's. */
  callerAddress(peer: string | undefined, headers: Readonly<Record<string, string | undefined>>): string | undefined;
}

const IPV4_MAPPED = /^::ffff:(?=\d+\.)/i;
const NETWORK = /^([^/]+)(?:\/(\d{1,3}))?$/;

/** Whether it is an address, or a network such as `10.0.0.0/8`. */
export function isAddressOrNetwork(text: string): boolean {
  const [, address = "", bits] = NETWORK.exec(text) ?? [];
  const family = isIP(address);
  return family !== 0 && Number(bits ?? 0) <= (family === 4 ? 32 : 128);
}

/** Throws a TypeError for what is not an address or a network. */
export function createTrustedProxies(networks: readonly string[]): TrustedProxies {
  const list = new BlockList();
  for (const network of networks) {
    if (!isAddressOrNetwork(network)) throw new TypeError(`trustProxy: "${network}" is not an address or a network.`);
    const [, address = "", bits] = NETWORK.exec(network) ?? [];
    const family = isIP(address) === 4 ? "ipv4" : "ipv6";
    if (bits === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(bits), family);
  }
  const has = (address: string | undefined): boolean => {
    if (networks.length === 0 || address === undefined) return false;
    const plain = address.replace(IPV4_MAPPED, "");
    const family = isIP(plain);
    return family !== 0 && list.check(plain, family === 4 ? "ipv4" : "ipv6");
  };
  return {
    has,
    callerAddress(peer, headers) {
      const forwarded = headers["x-forwarded-for"];
      if (forwarded === undefined || !has(peer)) return peer;
      let nearest = peer;
      for (const hop of forwarded.split(",").reverse()) {
        const address = toAddress(hop.trim());
        // Without a known address, what stands before it was not written by a proxy that is trusted.
        if (address === undefined) return nearest;
        nearest = address;
        if (!has(address)) return address;
      }
      return nearest;
    },
  };
}

/** Some proxies add the port. */
function toAddress(text: string): string | undefined {
  const plain = /^\[([^\]]+)\](?::\d+)?$/.exec(text)?.[1] ?? /^([\d.]+):\d+$/.exec(text)?.[1] ?? text;
  return isIP(plain) === 0 ? undefined : plain;
}
