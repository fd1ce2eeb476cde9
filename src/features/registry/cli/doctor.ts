/** The agents that a registry lists. */

import { createGuardedFetch } from "../../../core/auth/guarded-fetch/guarded-fetch.ts";
import type { Output } from "../../../core/cli/output.ts";
import { loadStoredLogin } from "../../../core/cli/session/credentials.ts";
import { readCard } from "../../../core/client/dialects.ts";
import type { AgentCard } from "../../../core/model/card.ts";
import { fieldsOf, listOf } from "../../../core/model/json.ts";
import { canParseUrl } from "../../../core/model/url.ts";

export interface RegistryEntry {
  readonly id: string;
  readonly name: string;
  readonly version: string;
  /** URL of the card, or the card itself. */
  readonly card: string | AgentCard;
  /** It is an agent of the server that the registry belongs to. */
  readonly isOwn: boolean;
}

interface Listed {
  readonly entries: readonly RegistryEntry[];
  /** How many there are beyond the limit, as far as the registry says. */
  readonly omitted: number;
}

/** A registry may have any number of agents; probing more than this at once serves no one. */
const MAX_ENTRIES = 1_000;
const PAGE_SIZE = 100;
/** A registry may have pages without agents, but none may have them without end. */
const MAX_PAGES = 100;

/** Undefined if there is no registry at that URL. */
export async function listRegistry(
  registry: string,
  { output, signal, timeoutMs }: { readonly output: Output; readonly signal: AbortSignal; readonly timeoutMs: number },
): Promise<Listed | undefined> {
  const base = registry.replace(/\/+$/, "");
  const agents = new URL(`${base.endsWith("/registry") ? base : `${base}/registry`}/agents`);
  // The user named this host, so it may be anywhere; it must not send us elsewhere.
  const guarded = createGuardedFetch({ allow: [bareHost(agents.hostname)], timeoutMs });
  const login = await loadStoredLogin(output, agents.origin, undefined);
  const entries: RegistryEntry[] = [];
  let pageToken: string | undefined;
  let total = 0;
  let pages = 0;
  do {
    agents.search = new URLSearchParams({ pageSize: String(PAGE_SIZE), ...(pageToken && { pageToken }) }).toString();
    const headers = { accept: "application/json", ...(await login?.provider.headersFor(agents.href)) };
    const response = await guarded(agents.href, { headers, signal });
    if (response.status === 404) return undefined;
    const page = fieldsOf(await response.json().catch(() => undefined));
    if (response.status !== 200) {
      throw new Error(`answered ${response.status}${typeof page.message === "string" ? `: ${page.message}` : ""}`);
    }
    entries.push(...listOf(page.items).flatMap(toEntry));
    total = typeof page.total === "number" ? page.total : entries.length;
    const next = typeof page.pageToken === "string" && page.pageToken !== "" ? page.pageToken : undefined;
    pageToken = next === pageToken ? undefined : next;
    pages++;
  } while (pageToken !== undefined && entries.length < MAX_ENTRIES && pages < MAX_PAGES);
  return {
    entries: entries.slice(0, MAX_ENTRIES),
    omitted: Math.max(0, Math.max(total, entries.length) - MAX_ENTRIES),
  };
}

/** An IPv6 address has brackets in a URL and none elsewhere. */
export function bareHost(hostname: string): string {
  return hostname.replace(/^\[(.*)\]$/, "$1");
}

/** None for an entry that is not an agent, such as another registry. */
function toEntry(value: unknown): readonly RegistryEntry[] {
  const { data, displayName, id, metadata, url, version } = fieldsOf(value);
  const card = typeof url === "string" && canParseUrl(url) ? url : readCard(data);
  if (typeof id !== "string" || card === undefined) return [];
  const text = (given: unknown) => (typeof given === "string" ? given : "");
  const isOwn = fieldsOf(metadata).source === "server";
  return [{ id, name: text(displayName) || id, version: text(version), card, isOwn }];
}
