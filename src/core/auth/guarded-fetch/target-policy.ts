/** Which hosts, addresses and redirects are allowed when others choose the target. */

import ipaddr from "ipaddr.js";
import { canParseUrl } from "../../model/url.ts";
import { GuardedFetchError } from "./errors.ts";

/** What `allowPrivate` opens, and a host that is allowed by its name. */
const ALLOWABLE_KINDS = ["public", "loopback", "private", "unique-local", "link-local", "carrier"] as const;

/** The kind of network an IP address belongs to. Only `public` ones are reachable from any network. */
export type AddressKind =
  | (typeof ALLOWABLE_KINDS)[number]
  | "metadata"
  | "unspecified"
  | "multicast"
  | "documentation"
  | "benchmark"
  | "transition"
  | "reserved";
export type Address = ipaddr.IPv4 | ipaddr.IPv6;
type AddressRange = readonly [Address, number];
type AddressRule = readonly [cidr: string, kind: AddressKind];

/** The first that fits decides. From the IANA special-purpose registries and the addresses clouds document. */
const IPV4_RULES: readonly AddressRule[] = [
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
const IPV6_RULES: readonly AddressRule[] = [
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

const compileRule = ([cidr, kind]: AddressRule) => ({ range: ipaddr.parseCIDR(cidr), kind });
const IPV4 = IPV4_RULES.map(compileRule);
const IPV6 = IPV6_RULES.map(compileRule);

/** An address in its usual spelling, an IPv6 one with or without brackets and zone; `undefined` for anything else. */
export function parseAddress(text: string): Address | undefined {
  const bare = text.replace(/^\[(.*)\]$/, "$1");
  // The URL parser has resolved short, octal and hexadecimal forms; anything else is not an address.
  if (ipaddr.IPv4.isValidFourPartDecimal(bare)) return ipaddr.IPv4.parse(bare);
  return ipaddr.IPv6.isValid(bare) ? ipaddr.IPv6.parse(bare) : undefined;
}

/** One address or a range such as `10.0.0.0/8`; `undefined` for anything else. */
export function parseRange(text: string): AddressRange | undefined {
  const slash = text.indexOf("/");
  const address = parseAddress(slash < 0 ? text : text.slice(0, slash));
  if (address === undefined) return undefined;
  const width = address.kind() === "ipv4" ? 32 : 128;
  if (slash < 0) return [address, width];
  const bits = text.slice(slash + 1);
  return /^\d{1,3}$/.test(bits) && Number(bits) <= width ? [address, Number(bits)] : undefined;
}

export function isWithin(address: Address, [base, bits]: AddressRange): boolean {
  if (address instanceof ipaddr.IPv4) return base instanceof ipaddr.IPv4 && address.match(base, bits);
  return base instanceof ipaddr.IPv6 && address.match(base, bits);
}

export function isSameAddress(one: Address, other: Address): boolean {
  return one.toNormalizedString() === other.toNormalizedString();
}

export function classifyAddress(address: Address): AddressKind {
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
  if (!(address instanceof ipaddr.IPv6) || classifyAddress(address) !== "transition") return undefined;
  const [, second = 0, third = 0, , , , seventh = 0, eighth = 0] = address.parts;
  if (address.parts[0] === 0x2002) return toIPv4(second, third);
  // Teredo keeps the client's address with every bit turned.
  if (address.parts[0] === 0x2001 && second === 0) return toIPv4(~seventh & 0xffff, ~eighth & 0xffff);
  return toIPv4(seventh, eighth);
}

function toIPv4(high: number, low: number): ipaddr.IPv4 {
  return new ipaddr.IPv4([high >> 8, high & 0xff, low >> 8, low & 0xff]);
}

export interface OutgoingRequest {
  readonly url: URL;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array | undefined;
}

export const REDIRECT_STATUSES: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** Headers that reveal nothing about the caller. All others, which may hold keys, are sent to the same origin only. */
const CROSS_ORIGIN_HEADERS = new Set(["accept", "accept-encoding", "accept-language", "a2a-version", "user-agent"]);

/** Throws for what must not be followed: a target that is forbidden, less secure, or gets a body meant for another. */
export function followRedirect(
  from: OutgoingRequest,
  status: number,
  location: string,
  policy: TargetPolicy,
): OutgoingRequest {
  if (!canParseUrl(location, from.url.href)) throw new GuardedFetchError("bad-redirect");
  const url = policy.check(new URL(location, from.url));
  if (from.url.protocol === "https:" && url.protocol !== "https:") throw new GuardedFetchError("bad-redirect");
  const isRead = from.method === "GET" || from.method === "HEAD";
  const becomesGet = !isRead && (status === 303 || (from.method === "POST" && (status === 301 || status === 302)));
  const sameOrigin = url.origin === from.url.origin;
  if (!sameOrigin && !isRead) throw new GuardedFetchError("bad-redirect");
  if (sameOrigin && !becomesGet) return { ...from, url };
  const headers = Object.entries(from.headers).filter(([name]) =>
    sameOrigin ? !name.startsWith("content-") : CROSS_ORIGIN_HEADERS.has(name),
  );
  return { url, method: becomesGet ? "GET" : from.method, headers: Object.fromEntries(headers) };
}

export interface TargetPolicyOptions {
  /** Loopback and private networks may be reached; cloud metadata and invalid hosts still not. */
  readonly allowPrivate?: boolean;
  /** What else may be reached: addresses, ranges (`10.1.0.0/16`), host names and `*.` with a domain. */
  readonly allow?: readonly string[];
}

export interface TargetPolicy {
  /** The target as a URL; throws a GuardedFetchError for what its spelling alone forbids. Names are not looked up. */
  check(target: string | URL): URL;
  /** Whether `hostname` may be reached at `address`. */
  permits(address: Address, hostname: string): boolean;
}

/** Names of this machine or this network, however they are resolved. */
const INTERNAL_NAME = /(?:^|\.)(?:localhost|localdomain|local|internal|intranet|lan|home\.arpa)$/;
/** Names of the clouds' metadata services. */
const METADATA_NAME =
  /^(?:metadata(?:\.google\.internal|\.goog|\.azure\.internal)?|instance-data(?:\.ec2\.internal)?)$/;

/** Throws a TypeError for an entry of `allow` that is neither an address nor a host. */
export function createTargetPolicy({ allowPrivate = false, allow = [] }: TargetPolicyOptions = {}): TargetPolicy {
  const wrong = allow.find((entry) => !isAllowEntry(entry));
  if (wrong !== undefined) throw new TypeError(`"${wrong}" is neither an address, a range of them nor a host.`);
  const ranges = allow.map(parseRange).filter((range) => range !== undefined);
  const hosts = allow.filter((entry) => parseRange(entry) === undefined).map(normalizeHost);

  const isListedHost = (name: string): boolean =>
    hosts.some((host) => (host.startsWith("*.") ? name.endsWith(host.slice(1)) : name === host));

  function permits(address: Address, hostname: string): boolean {
    if (ranges.some((range) => isWithin(address, range))) {
      const inner = embeddedAddress(address);
      return inner === undefined || permits(inner, hostname);
    }
    const kind = classifyAddress(address);
    return (
      kind === "public" ||
      (ALLOWABLE_KINDS.some((one) => one === kind) && (allowPrivate || isListedHost(normalizeHost(hostname))))
    );
  }

  function permitsName(name: string): boolean {
    if (isListedHost(name)) return true;
    if (METADATA_NAME.test(name)) return false;
    return allowPrivate || (name.includes(".") && !INTERNAL_NAME.test(name));
  }

  return {
    permits,
    check(target) {
      const url = parseTarget(target);
      if (url.protocol !== "http:" && url.protocol !== "https:") throw new GuardedFetchError("forbidden-scheme");
      if (url.username !== "" || url.password !== "") throw new GuardedFetchError("credentials-in-url");
      const name = normalizeHost(url.hostname);
      const address = parseAddress(name);
      if (!(address === undefined ? permitsName(name) : permits(address, name))) {
        throw new GuardedFetchError("forbidden-target");
      }
      return url;
    },
  };
}

export function isAllowEntry(entry: string): boolean {
  return parseRange(entry) !== undefined || /^(?:\*\.)?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\.?$/i.test(entry);
}

/** The parser lowers case, undoes look-alike letters and escapes, and writes every spelling of an IPv4 address alike. */
function parseTarget(target: string | URL): URL {
  try {
    return new URL(target);
  } catch {
    // Without the cause: the parser's own error repeats the target, which may contain secrets.
    throw new GuardedFetchError("bad-url");
  }
}

/** A name may end in a dot, and means the same with it. */
function normalizeHost(hostname: string): string {
  return hostname.toLowerCase().replace(/\.+$/, "");
}
