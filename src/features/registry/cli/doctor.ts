/** The agents that a registry lists. */

import { createGuardedFetch } from "../../../core/auth/guarded-fetch/guarded-fetch.ts";
import { classifyAddress, parseAddress } from "../../../core/auth/guarded-fetch/target-policy.ts";
import { failed, messageOf, ok, skipped } from "../../../core/cli/doctor/checks.ts";
import type { ProbeTarget } from "../../../core/cli/doctor/probe/agent.ts";
import {
  type ListedProbes,
  type ProbeAllOptions,
  type ProbeSurroundings,
  probeOf,
} from "../../../core/cli/doctor/probe/index.ts";
import { findLogin, grpcAuthority, servedCardUrl } from "../../../core/cli/doctor/probe/targets.ts";
import type { Output } from "../../../core/cli/output.ts";
import { loadStoredLogin } from "../../../core/cli/session/credentials.ts";
import { readCard } from "../../../core/client/dialects.ts";
import type { DoctorParts } from "../../../core/extension/contract.ts";
import type { AgentCard, AgentInterface } from "../../../core/model/card.ts";
import { fieldsOf, listOf } from "../../../core/model/json.ts";
import { canParseUrl } from "../../../core/model/url.ts";
import { isLoopback, LOOPBACK_TARGETS } from "../../../core/wire/loopback.ts";

interface RegistryEntry {
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
async function listRegistry(
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
function bareHost(hostname: string): string {
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

interface AllowedTargets {
  readonly allowPrivate: boolean;
  readonly allowLoopback: boolean;
}

/**
 * Others chose these addresses, so they must be public, except at the registry's own origin, which the user chose.
 * `allowLoopback`: the registry is reached from this machine only, so it may also name agents on this machine.
 */
function registryTarget(
  entry: RegistryEntry,
  registryUrl: string,
  allowed: AllowedTargets,
  output: Output,
): ProbeTarget {
  return {
    agent: entry.name,
    source: registryUrl,
    card: entry.card,
    known: entry,
    connect: { fetch: createForeignFetch(registryUrl, allowed) },
    mayCall: (one, cardUrl) => allowed.allowPrivate || mayCallForeign(one, cardUrl, allowed.allowLoopback),
    login: (url, card) => findLogin(output, url, card),
  };
}

function createForeignFetch(
  registryUrl: string,
  { allowLoopback, allowPrivate }: AllowedTargets,
): typeof globalThis.fetch {
  const { hostname, origin } = new URL(registryUrl);
  const guarded = createGuardedFetch({ allowPrivate, allow: allowLoopback ? LOOPBACK_TARGETS : [] });
  const atRegistry = createGuardedFetch({ allow: [bareHost(hostname)], maxRedirects: 0 });
  return (input, init) => {
    const url = input instanceof Request ? input.url : String(input);
    return (canParseUrl(url) && new URL(url).origin === origin ? atRegistry : guarded)(input, init);
  };
}

/** The gRPC library looks up names itself, so where a name leads cannot be checked; an address can. */
function mayCallForeign(entry: AgentInterface, cardUrl: string | undefined, allowLoopback: boolean): boolean {
  const authority = grpcAuthority(entry, cardUrl);
  if (authority === undefined) return true;
  if (!canParseUrl(`http://${authority}`)) return false;
  const { hostname } = new URL(`http://${authority}`);
  if (allowLoopback && isLoopback(hostname)) return true;
  const address = parseAddress(hostname);
  return address !== undefined && classifyAddress(address) === "public";
}

async function list(options: ProbeAllOptions, around: ProbeSurroundings): Promise<ListedProbes> {
  const { allowPrivateTargets, output, registry, signal, timeoutMs } = options;
  const { config, isWanted, serverUrl } = around;
  const url = registry ?? serverUrl;
  if (url === undefined) return { checks: [], probes: [], names: [] };
  // A server that others can reach is at a loopback address here, too, but not only its owner registers agents there.
  const host = registry === undefined ? (config?.server.host ?? "") : new URL(url).hostname;
  const allowed = { allowPrivate: allowPrivateTargets, allowLoopback: isLoopback(host) };
  try {
    const listed = await listRegistry(url, { output, signal, timeoutMs });
    if (listed === undefined) {
      const found = registry === undefined ? skipped : failed;
      return { checks: [found("registry", `there is none at ${url}`)], probes: [], names: [] };
    }
    const served = new Set(
      serverUrl === undefined ? [] : [...(config?.agents.keys() ?? [])].map((name) => servedCardUrl(serverUrl, name)),
    );
    const others = listed.entries.filter(
      ({ card, isOwn }) => !(url === serverUrl && isOwn) && !(typeof card === "string" && served.has(card)),
    );
    const count = listed.entries.length === 1 ? "1 agent" : `${listed.entries.length} agents`;
    const more = listed.omitted === 0 ? "" : `, ${listed.omitted} more are not probed`;
    return {
      checks: [ok("registry", `${url}, ${count}${more}`)],
      probes: others
        .filter(({ id, name }) => isWanted(id, name))
        .map((entry) => probeOf(registryTarget(entry, url, allowed, output), options)),
      names: listed.entries.flatMap(({ id, name }) => [id, name]),
    };
  } catch (error) {
    return { checks: [failed("registry", `${url}: ${messageOf(error)}`)], probes: [], names: [] };
  }
}

export const doctorParts: DoctorParts = { list };
