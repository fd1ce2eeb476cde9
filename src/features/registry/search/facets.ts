import type { FacetRequest } from "../query.ts";
import { INDEXED_FIELDS, type IndexedField, type Listed, type PlainField } from "./listed.ts";
import { plainValue } from "./search-index.ts";

export type Facets = Readonly<
  Record<
    string,
    { readonly buckets: readonly { readonly value: string; readonly count: number }[]; readonly otherCount: number }
  >
>;

/** How many of the entries have each value; the most frequent values first. */
export function countFacets(entries: readonly Listed[], requests: readonly FacetRequest[]): Facets {
  return Object.fromEntries(
    requests.map(({ name, field, limit, minCount }) => {
      const counts = new Map<string, number>();
      for (const entry of entries) {
        for (const value of valuesOf(entry, field)) counts.set(value, (counts.get(value) ?? 0) + 1);
      }
      const all = [...counts]
        .filter(([, count]) => count >= minCount)
        .sort(([one, many], [other, more]) => more - many || (one < other ? -1 : 1));
      const otherCount = all.slice(limit).reduce((sum, [, count]) => sum + count, 0);
      return [name, { buckets: all.slice(0, limit).map(([value, count]) => ({ value, count })), otherCount }];
    }),
  );
}

function valuesOf(entry: Listed, field: FacetRequest["field"]): readonly string[] {
  const indexed = INDEXED_FIELDS.find((name): name is IndexedField => name === field);
  return indexed === undefined ? [plainValue(entry, field as PlainField)] : entry.facets[indexed];
}
