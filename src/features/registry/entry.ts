import { createHash } from "node:crypto";
import { isIP } from "node:net";
import { findBinding } from "../../core/client/dialects.ts";
import { hostOf } from "../../core/client/registry-identity.ts";
import type { AgentCard } from "../../core/model/card.ts";
import type { JsonObject } from "../../core/model/json.ts";
import { isLoopback } from "../../core/wire/loopback.ts";

export const VISIBILITIES = ["private", "public"] as const;
/** Who may see an agent besides its owner: no one, or every caller of the server. */
export type Visibility = (typeof VISIBILITIES)[number];

export const HEALTHS = ["up", "unknown", "stale", "dead"] as const;
/**
 * `unknown`: never checked, as there is nothing to check. `stale`: no heartbeat within the ttl, or the card cannot be
 * read. `dead`: stale for so long that it will be removed.
 */
export type Health = (typeof HEALTHS)[number];

/** `server`: an agent of this server, which is never stored. */
type Source = "server" | "url" | "inline";

/** What validation found wrong with a card that can be used all the same. */
export interface CardFinding {
  readonly check: string;
  readonly requirement: string;
  readonly message: string;
}

export interface SignatureVerdict {
  readonly status: "verified" | "unverifiable" | "absent" | "unchecked";
  readonly kid?: string;
  readonly alg?: string;
  readonly reason?: string;
}

/** One agent, as it is stored. Times are milliseconds since the epoch. */
export interface RegistryEntry {
  readonly id: string;
  readonly owner: string;
  readonly visibility: Visibility;
  readonly source: Source;
  /** Of the card; absent for an inline card. */
  readonly url?: string;
  readonly card: AgentCard;
  /** An inline card as it was sent, where that is not the same. */
  readonly document?: JsonObject;
  readonly etag?: string;
  readonly ttlMs?: number;
  readonly expiresAt?: number;
  /** Whether the agent itself is called, and not only its card read. */
  readonly probe: boolean;
  readonly health: Health;
  readonly createdAt: number;
  /** When the card last changed. */
  readonly updatedAt: number;
  readonly checkedAt?: number;
  /** Checks that failed since the last good one. */
  readonly failures: number;
  readonly failingSince?: number;
  /** Why the last check failed. */
  readonly problem?: string;
  readonly signature: SignatureVerdict;
  readonly findings: readonly CardFinding[];
  /** The card became that of another agent; the one before is shown until the owner registers it again. */
  readonly heldBack?: { readonly since: number; readonly changes: readonly string[] };
}

/** Ids of agents of this server are readable, and no other id can be one of them. */
const SERVER_ID_PREFIX = "self.";

export function serverEntryId(name: string): string {
  return `${SERVER_ID_PREFIX}${name}`;
}

export function isServerEntry(id: string): boolean {
  return id.startsWith(SERVER_ID_PREFIX);
}

/** The same for the same registration, on every node: registering twice at once makes one entry. */
export function entryId(owner: string, source: { readonly url: string } | { readonly card: AgentCard }): string {
  const [first] = "card" in source ? source.card.supportedInterfaces : [];
  const key = "url" in source ? [source.url] : [source.card.name, first?.url ?? "", first?.tenant ?? ""];
  return createHash("sha256")
    .update(JSON.stringify([owner, ...key]))
    .digest("base64url")
    .slice(0, 22);
}

/** A domain for agents without one; ARD does not allow `localhost` itself (URN naming guide, scenario A). */
const LOCAL_PUBLISHER = "agent.localhost";

/** `urn:air:<publisher>:<namespace>:<name>` (ARD §4.2.1), from where the agent is and what it is called. */
export function identifierOf({ card, source, id, url }: Pick<RegistryEntry, "card" | "source" | "id" | "url">): string {
  const place = hostOf(url ?? card.supportedInterfaces[0]?.url ?? "");
  const path = (place?.pathname ?? "").replace(/\/\.well-known\/[^/]*$/, "");
  const spaces = [place?.port ?? "", ...path.split("/")].map(toUrnSegment).filter((segment) => segment !== "");
  const name = source === "server" ? id.slice(SERVER_ID_PREFIX.length) : toUrnSegment(card.name);
  if (spaces.at(-1)?.toLowerCase() === name.toLowerCase()) spaces.pop();
  return ["urn:air", toPublisher(place), ...spaces, name === "" ? id : name].join(":");
}

export function toPublisher(place: URL | undefined): string {
  const host = place?.hostname.replace(/^\[|\]$/g, "") ?? "";
  if (host === "" || isLoopback(host)) return LOCAL_PUBLISHER;
  return isIP(host) === 6 ? host.replaceAll(":", "-") : host;
}

/** A name in another script becomes empty. */
function toUrnSegment(text: string): string {
  const plain = text.normalize("NFKD").replace(/[^A-Za-z0-9._-]+/g, "-");
  return plain.replace(/^[-.]+|[-.]+$/g, "").slice(0, 64);
}

export function publisherOf(identifier: string): string {
  return identifier.split(":")[2] ?? "";
}

/** Names of the dialects in which the agent can be called from here. */
export function dialectsOf({ supportedInterfaces }: AgentCard): readonly string[] {
  const names = supportedInterfaces.flatMap(({ protocolBinding, protocolVersion }) => {
    return findBinding(protocolBinding, protocolVersion)?.dialect.name ?? [];
  });
  return [...new Set(names)];
}
