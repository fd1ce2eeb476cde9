/** What is known of conversations and users, as records in the store. */

import type { Records } from "../../../core/dialects/carrier.ts";
import type { JsonValue } from "../../../core/model/json.ts";
import type { Log } from "../../../core/model/ports.ts";
import type { PersistentMap } from "../runtime/ports.ts";

/** Spaces of records. Those of cleared conversations exist per agent. */
export const SPACES = {
  logins: "xiaoyi:logins",
  devices: "xiaoyi:devices",
  notified: "xiaoyi:notified",
  linkContexts: (agentId: string) => `xiaoyi-link:contexts:${agentId}`,
  httpContexts: (agent: string, owner: string) => `xiaoyi-http:contexts:${JSON.stringify([agent, owner])}`,
} as const;

/** Maximum cleared conversations per agent; the oldest are forgotten. */
const MAX_CONTEXTS = 5_000;
/** No known ids are longer. */
export const MAX_ID_LENGTH = 512;
const PAGE_SIZE = 500;

export async function allRecords(records: Pick<Records, "records">, space: string) {
  const all: { readonly key: string; readonly value: string }[] = [];
  for (;;) {
    const after = all.at(-1)?.key;
    const page = await records.records(space, { limit: PAGE_SIZE, after });
    all.push(...page);
    if (page.length < PAGE_SIZE) return all;
  }
}

/** Undefined for a record that is absent or damaged. */
export function parseRecord(value: string | undefined): JsonValue | undefined {
  try {
    return value === undefined ? undefined : (JSON.parse(value) as JsonValue);
  } catch {
    return undefined;
  }
}

/** `records` throws before the server has started. */
export function createRecordMap(records: () => Records, space: string, log: Log): PersistentMap {
  const logged = (error: unknown): undefined => {
    log.warn({ err: error }, "Cleared conversations of Xiaoyi could not be read or stored.");
  };
  return {
    entries: async () => {
      const all = await allRecords(records(), space).catch(logged);
      return (all ?? []).flatMap(({ key, value }) => {
        const stored = parseRecord(value);
        return typeof stored === "string" ? [[key, stored] as const] : [];
      });
    },
    get: async (id) => {
      const stored = parseRecord(await records().record(space, id).catch(logged));
      return typeof stored === "string" ? stored : undefined;
    },
    set: async (id, value) => {
      if (id.length > MAX_ID_LENGTH || value.length > MAX_ID_LENGTH) return;
      await records()
        .put({ space, key: id, value: JSON.stringify(value), keep: MAX_CONTEXTS })
        .catch(logged);
    },
  };
}
