/** What kind of network an IP address belongs to. Only `public` ones are anybody's business outside of this network. */
import ipaddr from "ipaddr.js";

export const ADDRESS_KINDS = [
  "public",
  "loopback",
  "private",
  "unique-local",
  "link-local",
  "carrier",
  "metadata",
  "unspecified",
  "multicast",
  "documentation",
  "benchmark",
  "transition",
  "reserved",
] as const;

export type AddressKind = (typeof ADDRESS_KINDS)[number];
export type Address = ipaddr.IPv4 | ipaddr.IPv6;
export type Range = readonly [Address, number];
type Rule = readonly [cidr: string, kind: AddressKind];

/** The first that fits decides. From the IANA special-purpose registries and the addresses clouds document. */
const IPV4_RULES: readonly Rule[] = [
  ["169.254.169.254/32", "metadata"],
  ["169.254.170.2/32", "metadata"],
  ["169.254.170.23/32", "metadata"],
  ["100.100.100.200/32", "metadata"],
  ["168.63.129.16/32", "metadata"],
  ["192.0.0.192/32", "metadata"],
  ["0.0.0.0/8", "unspecified"],
  ["10.0.0.0/8", "private"],
  ["172.16.0.0/12", "private"],
  ["192.168.0.0/16", "private"],
  ["100.64.0.0/10", "carrier"],
  ["127.0.0.0/8", "loopback"],
  ["169.254.0.0/16", "link-local"],
  ["192.0.0.0/24", "reserved"],
  ["192.0.2.0/24", "documentation"],
  ["198.51.100.0/24", "documentation"],
  ["203.0.113.0/24", "documentation"],
  ["192.88.99.0/24", "transition"],
  ["198.18.0.0/15", "benchmark"],
  ["224.0.0.0/4", "multicast"],
  ["240.0.0.0/4", "reserved"],
];

/** Of IPv6 only 2000::/3 is routed in public at all, so what no rule names is reserved. */
const IPV6_RULES: readonly Rule[] = [
  ["fd00:ec2::254/128", "metadata"],
  ["fd00:ec2::23/128", "metadata"],
  ["fd20:ce::254/128", "metadata"],
  ["::/128", "unspecified"],
  ["::1/128", "loopback"],
  ["::/96", "transition"],
  ["::ffff:0:0/96", "transition"],
  ["::ffff:0:0:0/96", "transition"],
  ["64:ff9b::/96", "transition"],
  ["64:ff9b:1::/48", "transition"],
  ["2001::/32", "transition"],
  ["2002::/16", "transition"],
  ["2001:2::/48", "benchmark"],
  ["2001:db8::/32", "documentation"],
  ["3fff::/20", "documentation"],
  ["2001::/23", "reserved"],
  ["fc00::/7", "unique-local"],
  ["fe80::/10", "link-local"],
  ["fec0::/10", "private"],
  ["ff00::/8", "multicast"],
  ["2000::/3", "public"],
];

const compile = (rules: readonly Rule[]) => rules.map(([cidr, kind]) => ({ range: ipaddr.parseCIDR(cidr), kind }));
const IPV4 = compile(IPV4_RULES);
const IPV6 = compile(IPV6_RULES);

/** An address in its usual spelling, an IPv6 one with or without brackets and zone; `undefined` for anything else. */
export function parseAddress(text: string): Address | undefined {
  const bare = text.replace(/^\[(.*)\]$/, "$1");
  // Short, octal and hexadecimal spellings are the URL parser's business; whatever still has one is no address.
  if (ipaddr.IPv4.isValidFourPartDecimal(bare)) return ipaddr.IPv4.parse(bare);
  return ipaddr.IPv6.isValid(bare) ? ipaddr.IPv6.parse(bare) : undefined;
}

/** One address or a range such as `10.0.0.0/8`; `undefined` for anything else. */
export function parseRange(text: string): Range | undefined {
  const slash = text.indexOf("/");
  const address = parseAddress(slash < 0 ? text : text.slice(0, slash));
  if (address === undefined) return undefined;
  const width = address.kind() === "ipv4" ? 32 : 128;
  if (slash < 0) return [address, width];
  const bits = text.slice(slash + 1);
  return /^\d{1,3}$/.test(bits) && Number(bits) <= width ? [address, Number(bits)] : undefined;
}

export function isWithin(address: Address, [base, bits]: Range): boolean {
  if (address instanceof ipaddr.IPv4) return base instanceof ipaddr.IPv4 && address.match(base, bits);
  return base instanceof ipaddr.IPv6 && address.match(base, bits);
}

export function isSameAddress(one: Address, other: Address): boolean {
  return one.toNormalizedString() === other.toNormalizedString();
}

export function kindOf(address: Address): AddressKind {
  if (address instanceof ipaddr.IPv4) return IPV4.find(({ range }) => isWithin(address, range))?.kind ?? "public";
  const kind = IPV6.find(({ range }) => isWithin(address, range))?.kind ?? "reserved";
  return kind === "public" && isTunnelled(address) ? "transition" : kind;
}

/** ISATAP (RFC 5214): an IPv4 address in the lower half of an address of any prefix. */
function isTunnelled({ parts }: ipaddr.IPv6): boolean {
  return (parts[4] === 0 || parts[4] === 0x200) && parts[5] === 0x5efe;
}

/** The IPv4 address that an address of a transition mechanism leads to. */
export function embeddedAddress(address: Address): ipaddr.IPv4 | undefined {
  if (!(address instanceof ipaddr.IPv6) || kindOf(address) !== "transition") return undefined;
  const [, second = 0, third = 0, , , , seventh = 0, eighth = 0] = address.parts;
  if (address.parts[0] === 0x2002) return toIPv4(second, third);
  // Teredo keeps the client's address with every bit turned.
  if (address.parts[0] === 0x2001 && second === 0) return toIPv4(~seventh & 0xffff, ~eighth & 0xffff);
  return toIPv4(seventh, eighth);
}

function toIPv4(high: number, low: number): ipaddr.IPv4 {
  return new ipaddr.IPv4([high >> 8, high & 0xff, low >> 8, low & 0xff]);
}
