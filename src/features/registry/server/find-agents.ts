/** Looks for agents in the registry of this server, then in those of its peers. */

import { isHeldBack, listedIdentity } from "../../../core/client/registry-identity.ts";
import { ProtocolError } from "../../../core/model/errors.ts";
import { fieldsOf, isObject, type JsonObject, listOf } from "../../../core/model/json.ts";
import type { FindAgents, FoundAgent, FoundAgents, WantedAgent } from "../../../core/server/agent-chooser.ts";
import { toCatalogEntry } from "../catalog.ts";
import { matchName } from "../client/find.ts";
import type { RegistryEntry } from "../client/types.ts";
import type { FederatedSearch } from "../federate.ts";
import { parseSearchRequest } from "../query.ts";
import type { Registry } from "../registry.ts";

const MAX_CANDIDATES = 100;
const ORDER = { field: "displayName", descending: false } as const;

export function createFindAgents(registry: Pick<Registry, "get" | "list">, search: FederatedSearch): FindAgents {
  async function findHere(wanted: WantedAgent, owner: string): Promise<readonly JsonObject[]> {
    const term =
      "skill" in wanted
        ? ({ field: "skill", values: [wanted.skill] } as const)
        : ({ field: "displayName", values: [wanted.registered] } as const);
    const { entries } = await registry.list(owner, {
      filter: { terms: [term] },
      order: ORDER,
      pageSize: MAX_CANDIDATES,
    });
    const known = "skill" in wanted ? undefined : await registry.get(owner, wanted.registered).catch(() => undefined);
    return [...(known === undefined ? [] : [known]), ...entries].map(toCatalogEntry);
  }

  return async function* find(wanted, { owner }) {
    yield toFound(wanted, await findHere(wanted, owner), []);
    const query =
      "skill" in wanted ? { text: wanted.skill, filter: { skill: wanted.skill } } : { text: wanted.registered };
    const body = { query, pageSize: MAX_CANDIDATES };
    const { results, unanswered } = await search(owner, parseSearchRequest(body), body, []);
    const silent = listOf(unanswered).map((one) => `${fieldsOf(one).url}: ${fieldsOf(one).reason}`);
    yield toFound(wanted, listOf(results).filter(isObject), silent);
  };
}

/** Results of peers were written by others, so that what was asked for is checked again. */
function toFound(wanted: WantedAgent, found: readonly JsonObject[], unanswered: readonly string[]): FoundAgents {
  const entries = found.filter(
    (entry): entry is RegistryEntry & JsonObject =>
      typeof entry.identifier === "string" && typeof entry.displayName === "string",
  );
  const fitting =
    "skill" in wanted
      ? entries.filter(({ capabilities }) => listOf(capabilities).includes(wanted.skill))
      : requireUnambiguous(wanted.registered, matchName(entries, wanted.registered));
  return { agents: fitting.flatMap(toFoundAgent), unanswered };
}

function requireUnambiguous(name: string, entries: readonly RegistryEntry[]): readonly RegistryEntry[] {
  if (entries.length < 2) return entries;
  const list = entries.map(({ id, identifier, url = "inline card" }) => `${id ?? identifier} (${url})`);
  throw new ProtocolError("INVALID_PARAMS", `"${name}" is the name of ${list.length} agents: ${list.join(", ")}.`);
}

export function toFoundAgent(entry: RegistryEntry): readonly FoundAgent[] {
  const { data, id, identifier, metadata, url } = entry;
  const place = url ?? fieldsOf(listOf(data?.supportedInterfaces)[0]).url ?? data?.url;
  if (typeof place !== "string") return [];
  const score = "score" in entry && typeof entry.score === "number" ? entry.score : 0;
  const healthy = metadata?.health === undefined || metadata.health === "up";
  return [
    {
      id: id ?? identifier,
      url: place,
      healthy,
      score,
      heldBack: isHeldBack(entry) || undefined,
      ...(url === undefined ? data && { card: data } : { identity: listedIdentity(entry) }),
    },
  ];
}
