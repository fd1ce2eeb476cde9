import type { TraceContext } from "./trace.ts";

/** Who calls. Tasks belong to an owner; no one else can find out that they exist. */
export interface Caller {
  readonly owner: string;
  readonly authenticated: boolean;
  /** Scopes the caller was granted; skills may require some. */
  readonly scopes?: readonly string[];
  /** When what the caller has shown is no longer good, in milliseconds since the epoch; streams end then. */
  readonly expires?: number;
  /** Where the call comes from, as far as the carrier knows. */
  readonly address?: string;
  /** The trace that the request belongs to, for agents that are called on its behalf. Not stored. */
  readonly trace?: TraceContext;
}

export const ANONYMOUS: Caller = { owner: "anonymous", authenticated: false };

const IPV4_MAPPED = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;
const IPV6_GROUPS = 8;

/**
 * What counts as one address where addresses are counted. An IPv6 network is one: a caller that has one address there has
 * 2⁶⁴ of them (RFC 6177).
 */
export function toNetworkPrefix(address: string): string {
  if (!address.includes(":")) return address;
  const mapped = IPV4_MAPPED.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  const [plain = ""] = address.split("%", 1);
  const [before = "", after] = plain.split("::", 2);
  const head = splitGroups(before);
  const tail = splitGroups(after ?? "");
  const gap = Math.max(0, IPV6_GROUPS - head.length - tail.length);
  const groups = [...head, ...new Array<string>(gap).fill("0"), ...tail].slice(0, IPV6_GROUPS / 2);
  return `${groups.map((group) => group.replace(/^0+(?=.)/, "").toLowerCase()).join(":")}::/64`;
}

function splitGroups(text: string): readonly string[] {
  return text === "" ? [] : text.split(":");
}
