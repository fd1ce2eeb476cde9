import { isObject, type JsonObject, listOf } from "../../../core/model/json.ts";
import { findCallable } from "./find.ts";
import { createRegistryRequests } from "./requests.ts";
import {
  type RegistryClient,
  type RegistryDetails,
  type RegistryEntry,
  RegistryError,
  type RegistryFilter,
  type RegistryListing,
  type RegistryOptions,
  type RegistryPage,
  type RegistryResult,
  type RegistrySearchPage,
} from "./types.ts";
import { watchRegistry } from "./watch.ts";

/**
 * A registry of agents over HTTP, by the interface of ARD. `address` is that of a server that has one, or of the registry
 * itself: `https://agents.example.com`, `https://agents.example.com/registry`.
 */
export function createRegistryClient(address: string, options: RegistryOptions = {}): RegistryClient {
  const requests = createRegistryRequests(address, options);
  const agentPath = (id: string, rest = "") => `/agents/${encodeURIComponent(id)}${rest}`;

  async function listPage(query: RegistryListing = {}, call: Parameters<RegistryClient["listPage"]>[1] = {}) {
    const answer = await requests.send({ method: "GET", path: `/agents${toQuery(query)}`, ...call });
    return readPage(answer);
  }

  const client: RegistryClient = {
    async search(query, call) {
      const { text, filter, ...rest } = typeof query === "string" ? { text: query } : query;
      const body = { query: { text, filter }, ...rest };
      return readResults(await requests.send({ method: "POST", path: "/search", body, ...call }));
    },
    listPage,
    async *list(query, call) {
      let asked: RegistryListing | undefined = query;
      do {
        const { items, pageToken }: RegistryPage = await listPage(asked, call);
        yield* items;
        asked = pageToken === undefined ? undefined : { ...query, pageToken };
      } while (asked !== undefined);
    },
    async get(id, call) {
      return readDetails(await requests.send({ method: "GET", path: agentPath(id), ...call }));
    },
    find: (reference, call) => findCallable(client, reference, call),
    async register(agent, call) {
      // A card is JSON, but the compiler does not regard interfaces as such.
      const body = agent as RegistrationBody;
      return readDetails(await requests.send({ method: "POST", path: "/agents", body, ...call }));
    },
    async heartbeat(id, call) {
      const answer = await requests.send({ method: "POST", path: agentPath(id, "/heartbeat"), body: {}, ...call });
      const { expiresAt } = answer ?? {};
      return typeof expiresAt === "string" ? { id, expiresAt } : { id };
    },
    async remove(id, call) {
      await requests.send({ method: "DELETE", path: agentPath(id), ...call });
    },
    watch: (given = {}) => watchRegistry(requests, { ...given, signal: given.signal ?? options.signal }),
  };
  return client;
}

type RegistrationBody = Parameters<RegistryClient["register"]>[0] & JsonObject;

function toQuery({ filter = {}, orderBy, pageSize, pageToken }: RegistryListing): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(filter satisfies RegistryFilter)) query.set(name, listOrOne(value));
  if (orderBy !== undefined) query.set("orderBy", orderBy);
  if (pageSize !== undefined) query.set("pageSize", String(pageSize));
  if (pageToken !== undefined) query.set("pageToken", pageToken);
  return query.size === 0 ? "" : `?${query}`;
}

const listOrOne = (value: string | readonly string[]): string => (typeof value === "string" ? value : value.join(","));

function readPage(answer: JsonObject | undefined): RegistryPage {
  const { items, pageToken, total } = answer ?? {};
  return {
    items: entriesOf(items, "items"),
    total: typeof total === "number" ? total : undefined,
    pageToken: typeof pageToken === "string" && pageToken !== "" ? pageToken : undefined,
  };
}

function readResults(answer: JsonObject | undefined): RegistrySearchPage {
  const { pageToken, referrals, results, unanswered } = answer ?? {};
  const silent = listOf(unanswered).filter(isObject);
  return {
    results: entriesOf(results, "results").map(toResult),
    pageToken: typeof pageToken === "string" && pageToken !== "" ? pageToken : undefined,
    referrals: Array.isArray(referrals) ? referrals.filter(isObject) : undefined,
    unanswered: silent.length === 0 ? undefined : silent.map(toUnanswered),
  };
}

const toUnanswered = ({ reason, url }: JsonObject) => ({ url: String(url ?? ""), reason: String(reason ?? "") });

function toResult(entry: RegistryEntry & { readonly score?: unknown; readonly source?: unknown }): RegistryResult {
  const { score, source } = entry;
  return { ...entry, score: typeof score === "number" ? score : 0, source: typeof source === "string" ? source : "" };
}

/** What a registry returns was written by others: what has no name and address of its own is left out. */
function entriesOf(value: unknown, member: string): readonly RegistryEntry[] {
  if (!Array.isArray(value)) throw new RegistryError("INVALID_RESPONSE", `The registry's answer has no ${member}.`);
  return value.filter(isEntry);
}

function isEntry(value: unknown): value is RegistryEntry & JsonObject {
  if (!isObject(value) || typeof value.identifier !== "string" || typeof value.displayName !== "string") return false;
  const { capabilities = [], id = "", metadata = {}, tags = [], type, url = "" } = value;
  const lists = [capabilities, tags].every(
    (list) => Array.isArray(list) && list.every((item) => typeof item === "string"),
  );
  return lists && typeof type === "string" && typeof id === "string" && typeof url === "string" && isObject(metadata);
}

function readDetails(answer: JsonObject | undefined): RegistryDetails {
  if (isEntry(answer)) return answer;
  throw new RegistryError("INVALID_RESPONSE", "The registry's answer is not an entry of a catalog.");
}
