/** Which hosts and addresses may be reached when somebody else names the target. */
import {
  type Address,
  type AddressKind,
  embeddedAddress,
  isWithin,
  kindOf,
  parseAddress,
  parseRange,
} from "./addresses.ts";
import { GuardedFetchError } from "./guarded-fetch-error.ts";

export interface TargetPolicyOptions {
  /** Loopback and private networks may be reached; cloud metadata and what is no host at all still not. */
  readonly allowPrivate?: boolean;
  /** What may be reached besides: addresses, ranges (`10.1.0.0/16`), host names and `*.` with a domain. */
  readonly allow?: readonly string[];
}

export interface TargetPolicy {
  /** The target as a URL; throws a GuardedFetchError for what its spelling alone forbids. Names are not looked up. */
  check(target: string | URL): URL;
  /** Whether `address` may be connected to for the sake of `hostname`. */
  permits(address: Address, hostname: string): boolean;
}

/** What `allowPrivate` opens, and a host that is allowed by its name. */
const OPENED: ReadonlySet<AddressKind> = new Set<AddressKind>([
  "public",
  "loopback",
  "private",
  "unique-local",
  "link-local",
  "carrier",
]);

/** Names that mean this machine or this network, whatever a name server makes of them. */
const INNER_NAME = /(?:^|\.)(?:localhost|localdomain|local|internal|intranet|lan|home\.arpa)$/;
/** Names of the clouds' metadata services. */
const METADATA_NAME =
  /^(?:metadata(?:\.google\.internal|\.goog|\.azure\.internal)?|instance-data(?:\.ec2\.internal)?)$/;

/** Throws a TypeError for an entry of `allow` that is neither an address nor a host. */
export function createTargetPolicy({ allowPrivate = false, allow = [] }: TargetPolicyOptions = {}): TargetPolicy {
  for (const entry of allow) {
    if (!isAllowEntry(entry)) throw new TypeError(`"${entry}" is neither an address, a range of them nor a host.`);
  }
  const ranges = allow.flatMap((entry) => {
    const range = parseRange(entry);
    return range === undefined ? [] : [range];
  });
  const hosts = allow.filter((entry) => parseRange(entry) === undefined).map(bareName);

  const isListedHost = (name: string): boolean =>
    hosts.some((host) => (host.startsWith("*.") ? name.endsWith(host.slice(1)) : name === host));

  function permits(address: Address, hostname: string): boolean {
    if (ranges.some((range) => isWithin(address, range))) {
      const inner = embeddedAddress(address);
      return inner === undefined || permits(inner, hostname);
    }
    const kind = kindOf(address);
    return kind === "public" || (OPENED.has(kind) && (allowPrivate || isListedHost(bareName(hostname))));
  }

  function permitsName(name: string): boolean {
    if (isListedHost(name)) return true;
    if (METADATA_NAME.test(name)) return false;
    return allowPrivate || (name.includes(".") && !INNER_NAME.test(name));
  }

  return {
    permits,
    check(target) {
      const url = parsed(target);
      if (url.protocol !== "http:" && url.protocol !== "https:") throw new GuardedFetchError("forbidden-scheme");
      if (url.username !== "" || url.password !== "") throw new GuardedFetchError("credentials-in-url");
      const name = bareName(url.hostname);
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
function parsed(target: string | URL): URL {
  try {
    return new URL(target);
  } catch {
    // Without the cause: the parser's own error repeats the target with whatever secrets are in it.
    throw new GuardedFetchError("bad-url");
  }
}

/** A name may end in a dot, and means the same with it. */
function bareName(hostname: string): string {
  return hostname.toLowerCase().replace(/\.+$/, "");
}
