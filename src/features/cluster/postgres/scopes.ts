import type { Scope } from "../../../core/store/contract.ts";
import { scopeKey } from "../../../core/store/rules.ts";
import { toText } from "../../../core/store/stored-text.ts";
import type { Database } from "./connection.ts";

interface ScopeRow {
  readonly id: number;
  readonly at: number;
}

/** Scopes whose numbers are known; beyond that they are asked for again. */
const MAX_KNOWN_SCOPES = 10_000;

const INPUT = "unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS i (owner, tenant, agent, at)";

export type Scopes = ReturnType<typeof createScopes>;

/** The numbers that scopes have in the database. They never change, and no scope is ever deleted. */
export function createScopes({ query }: Database) {
  const known = new Map<string, number>();

  async function load(scopes: readonly Scope[]): Promise<void> {
    const rows = await query<ScopeRow>(
      `SELECT s.id, i.at FROM ${INPUT} JOIN @scope s ON s.owner = i.owner AND s.tenant = i.tenant AND s.agent = i.agent`,
      toValues(scopes),
    );
    for (const { id, at } of rows) known.set(scopeKey(scopes[at - 1] as Scope), id);
  }

  const missingOf = (scopes: readonly Scope[]) => scopes.filter((scope) => !known.has(scopeKey(scope)));

  return {
    async intern(scopes: readonly Scope[]): Promise<readonly number[]> {
      if (known.size > MAX_KNOWN_SCOPES) known.clear();
      let missing = missingOf(scopes);
      if (missing.length > 0) await load(missing);
      missing = missingOf(missing);
      if (missing.length > 0) {
        // In one order, so that two nodes that add the same ones do not wait for each other.
        await query(
          `INSERT INTO @scope (owner, tenant, agent) SELECT DISTINCT owner, tenant, agent FROM ${INPUT}
           ORDER BY owner, tenant, agent ON CONFLICT DO NOTHING`,
          toValues(missing),
        );
        // What another node has just added is visible only to the next statement.
        await load(missing);
      }
      return scopes.map((scope) => known.get(scopeKey(scope)) as number);
    },
    async find(scope: Scope): Promise<number | undefined> {
      if (!known.has(scopeKey(scope))) await load([scope]);
      return known.get(scopeKey(scope));
    },
  };
}

function toValues(scopes: readonly Scope[]): string[][] {
  return [
    scopes.map(({ owner }) => toText(owner)),
    scopes.map(({ tenant }) => toText(tenant)),
    scopes.map(({ agent }) => toText(agent)),
  ];
}
