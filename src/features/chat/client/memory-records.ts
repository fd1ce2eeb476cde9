import type { Records } from "../../../core/dialects/carrier.ts";
import type { Clock } from "../../../core/model/ports.ts";

interface Entry {
  readonly value: string;
  readonly until: number;
}

/** Records of a process that keeps none. */
export function createMemoryRecords(clock: Pick<Clock, "now">): Records {
  const spaces = new Map<string, Map<string, Entry>>();
  const entriesOf = (space: string) => {
    const entries = spaces.get(space) ?? new Map<string, Entry>();
    spaces.set(space, entries);
    return entries;
  };
  const read = (space: string, key: string) => {
    const entry = spaces.get(space)?.get(key);
    return entry !== undefined && entry.until > clock.now() ? entry.value : undefined;
  };
  const write: (record: Parameters<Records["put"]>[0]) => void = ({ keep, key, space, ttlMs, value }) => {
    const entries = entriesOf(space);
    // The newest last: the oldest are deleted.
    entries.delete(key);
    entries.set(key, { value, until: ttlMs === undefined ? Number.POSITIVE_INFINITY : clock.now() + ttlMs });
    for (const oldest of entries.keys()) {
      if (entries.size <= (keep ?? Number.POSITIVE_INFINITY)) break;
      entries.delete(oldest);
    }
  };
  return {
    record: async (space, key) => read(space, key),
    async records(space, { after = "", limit }) {
      const keys = [...entriesOf(space).keys()].filter((key) => key > after && read(space, key) !== undefined);
      return keys
        .sort()
        .slice(0, limit)
        .map((key) => ({ key, value: read(space, key) ?? "" }));
    },
    async put(record) {
      const { ifValue, key, space } = record;
      if (ifValue !== undefined && (read(space, key) ?? null) !== ifValue) return false;
      write(record);
      return true;
    },
    async update(record, change) {
      const value = change(read(record.space, record.key));
      if (value !== undefined) write({ ...record, value });
    },
    async delete(space, key) {
      spaces.get(space)?.delete(key);
    },
  };
}
