import type { RecordPut, RecordQuery, RecordWrite, StoredRecord, WriteResult } from "../../../core/store/contract.ts";
import { toText, unescapeText } from "../../../core/store/stored-text.ts";
import type { Database } from "./connection.ts";
import { toInput } from "./statement-parts.ts";

interface RecordRow {
  readonly key: string;
  readonly value: string;
}

const ACCEPTED: WriteResult = { ok: true, number: 0, fence: 0 };
const REFUSED: WriteResult = { ok: false, refusal: "position" };

/** A space that keeps many holds a few more for a while: to count them for every put would cost more the more there are. */
const SLACK_PART = 100;

const IS_LIVE = "(r.expires_at IS NULL OR r.expires_at > @now)";

const INPUT = toInput<RecordPut>(
  [
    { name: "space", type: "text", of: ({ space }) => toText(space) },
    { name: "key", type: "text", of: ({ key }) => toText(key) },
    { name: "value", type: "text", of: ({ value }) => toText(value) },
    { name: "ttl", type: "bigint", of: ({ ttlMs }) => ttlMs ?? null },
    { name: "is_free", type: "boolean", of: ({ ifValue }) => ifValue === undefined },
    { name: "if_value", type: "text", of: ({ ifValue }) => (typeof ifValue === "string" ? toText(ifValue) : null) },
  ],
  "i",
  0,
);

const add = (condition: string, unless: string) => `INSERT INTO @record AS r (space, key, value, expires_at)
  SELECT space, key, value, @now + ttl FROM input WHERE ${condition} ORDER BY at
  ON CONFLICT (space, key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at,
    written = excluded.written ${unless} RETURNING r.space, r.key`;

const PUT = `WITH input AS MATERIALIZED (SELECT * FROM ${INPUT.sql}),
  free AS (${add("is_free", "")}),
  absent AS (${add("NOT is_free AND if_value IS NULL", `WHERE NOT ${IS_LIVE}`)}),
  replaced AS (
    UPDATE @record r SET value = i.value, expires_at = @now + i.ttl, written = nextval('@record_written')
    FROM input i WHERE i.if_value IS NOT NULL AND r.space = i.space AND r.key = i.key AND r.value = i.if_value
      AND ${IS_LIVE} RETURNING r.space, r.key
  )
  SELECT i.at FROM input i
  JOIN (SELECT * FROM free UNION ALL SELECT * FROM absent UNION ALL SELECT * FROM replaced) w USING (space, key)`;

export type Records = ReturnType<typeof createRecords>;

/** Small facts beside tasks. `written` rises, so that the oldest records of a space are found by index. */
export function createRecords({ query }: Database) {
  /** Records of a space, at most: as counted, with what was put here since. */
  const counts = new Map<string, number>();

  async function trim(space: string, keep: number, added: number): Promise<void> {
    const known = counts.get(space);
    if (known !== undefined && known + added <= keep + Math.floor(keep / SLACK_PART)) {
      counts.set(space, known + added);
      return;
    }
    const [row] = await query<{ n: number }>(
      `WITH counted AS (SELECT count(*) AS n FROM @record WHERE space = $1),
       gone AS (
         DELETE FROM @record WHERE space = $1 AND key IN (
           SELECT key FROM @record WHERE space = $1 ORDER BY written
           LIMIT (SELECT greatest(n - $2::bigint, 0) FROM counted) FOR UPDATE SKIP LOCKED
         )
       ) SELECT n FROM counted`,
      [toText(space), keep],
    );
    counts.set(space, Math.min(row?.n ?? 0, keep));
  }

  async function get(space: string, key: string): Promise<string | undefined> {
    const [row] = await query<{ value: string }>(
      `SELECT r.value FROM @record r WHERE r.space = $1 AND r.key = $2 AND ${IS_LIVE}`,
      [toText(space), toText(key)],
    );
    return row && unescapeText(row.value);
  }

  async function put(writes: readonly RecordPut[], isRepeated: (write: RecordPut) => boolean): Promise<WriteResult[]> {
    const rows = await query<{ at: number }>(PUT, INPUT.values(writes));
    const accepted = new Set(rows.map(({ at }) => at - 1));
    for (const [at, write] of writes.entries()) {
      if (accepted.has(at) || !isRepeated(write)) continue;
      if ((await get(write.space, write.key)) === write.value) accepted.add(at);
    }
    const spaces = new Map<string, { added: number; keep: number | undefined }>();
    for (const at of accepted) {
      const { space, keep } = writes[at] as RecordPut;
      const before = spaces.get(space);
      spaces.set(space, { added: (before?.added ?? 0) + 1, keep: keep ?? before?.keep });
    }
    for (const [space, { keep, added }] of spaces) {
      if (keep !== undefined) await trim(space, keep, added);
      else if (counts.has(space)) counts.set(space, (counts.get(space) ?? 0) + added);
    }
    return writes.map((_, at) => (accepted.has(at) ? ACCEPTED : REFUSED));
  }

  return {
    /** One result per write, in order. `isRepeated`: an earlier attempt may have succeeded. */
    async write(writes: readonly RecordWrite[], isRepeated: (write: RecordPut) => boolean): Promise<WriteResult[]> {
      const puts = writes.filter((write) => write.kind === "record-put");
      const deletes = writes.filter((write) => write.kind === "record-delete");
      if (deletes.length > 0) {
        await query(
          `DELETE FROM @record r USING unnest($1::text[], $2::text[]) AS i (space, key)
           WHERE r.space = i.space AND r.key = i.key`,
          [deletes.map(({ space }) => toText(space)), deletes.map(({ key }) => toText(key))],
        );
      }
      const results = puts.length > 0 ? await put(puts, isRepeated) : [];
      let next = 0;
      return writes.map((write) => (write.kind === "record-put" ? (results[next++] as WriteResult) : ACCEPTED));
    },

    get,

    async list(space: string, { after, limit }: RecordQuery): Promise<StoredRecord[]> {
      const rows = await query<RecordRow>(
        `SELECT r.key, r.value FROM @record r WHERE r.space = $1 AND r.key ${after === undefined ? ">=" : ">"} $2
           AND ${IS_LIVE} ORDER BY r.key LIMIT $3`,
        [toText(space), toText(after ?? ""), limit],
      );
      return rows.map(({ key, value }) => ({ key: unescapeText(key), value: unescapeText(value) }));
    },

    async deleteExpired(): Promise<void> {
      await query("DELETE FROM @record WHERE expires_at <= @now");
    },
  };
}
