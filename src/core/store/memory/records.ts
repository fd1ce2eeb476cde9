import type { Clock } from "../../model/ports.ts";
import type { RecordQuery, RecordWrite, StoredRecord, WriteResult } from "../contract.ts";

interface KeptRecord {
  readonly value: string;
  readonly expiresAt: number;
}

const ACCEPTED: WriteResult = { ok: true, number: 0, fence: 0 };

/** Small facts beside tasks. A map keeps the order in which its records were put, the oldest first. */
export class Records {
  readonly #clock: Clock;
  readonly #spaces = new Map<string, Map<string, KeptRecord>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  write(write: RecordWrite): WriteResult {
    const { space, key } = write;
    if (write.kind === "record-delete") {
      this.#spaces.get(space)?.delete(key);
      return ACCEPTED;
    }
    const { value, ttlMs = Number.POSITIVE_INFINITY, ifValue, keep = Number.POSITIVE_INFINITY } = write;
    if (ifValue !== undefined && ifValue !== (this.get(space, key) ?? null)) return { ok: false, refusal: "position" };
    const records = this.#spaces.get(space) ?? new Map<string, KeptRecord>();
    this.#spaces.set(space, records);
    records.delete(key);
    records.set(key, { value, expiresAt: this.#clock.now() + ttlMs });
    for (const oldest of records.keys()) {
      if (records.size <= keep) break;
      records.delete(oldest);
    }
    return ACCEPTED;
  }

  get(space: string, key: string): string | undefined {
    const found = this.#spaces.get(space)?.get(key);
    return found !== undefined && found.expiresAt > this.#clock.now() ? found.value : undefined;
  }

  list(space: string, { after, limit }: RecordQuery): StoredRecord[] {
    const now = this.#clock.now();
    return [...(this.#spaces.get(space) ?? [])]
      .filter(([key, { expiresAt }]) => expiresAt > now && (after === undefined || key > after))
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .slice(0, limit)
      .map(([key, { value }]) => ({ key, value }));
  }

  deleteExpired(): void {
    const now = this.#clock.now();
    for (const [space, records] of this.#spaces) {
      for (const [key, { expiresAt }] of records) if (expiresAt <= now) records.delete(key);
      if (records.size === 0) this.#spaces.delete(space);
    }
  }
}
