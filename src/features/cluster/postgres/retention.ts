import type { Log } from "../../../core/model/ports.ts";
import { LIST_VIEW_MS, type StoreStats } from "../../../core/store/contract.ts";
import { toSnapshotParts } from "../../../core/store/history.ts";
import type { Database } from "./connection.ts";
import type { Counters } from "./counters.ts";
import { foldLog } from "./reader.ts";
import { SCHEMA_VERSION } from "./schema.ts";

/** Of what has expired, at a time: the rest has its turn at the next call. */
const MAX_EXPIRED = 10_000;
/** Logs that are folded at the same time, in bytes; one that is larger by itself. */
const MAX_BYTES_AT_ONCE = 8 * 1024 * 1024;

interface WholeRow {
  readonly seq: number;
  readonly number: number;
  readonly log: string | null;
}

/** The oldest first. */
const SELECT_WHOLE = `WITH ended AS (
    SELECT seq, number, sum(bytes) OVER (ORDER BY ended_at, seq) - bytes AS before FROM (
      SELECT seq, number, bytes, ended_at FROM @task
      WHERE NOT open AND floor = 0 AND ended_at <= @now - $1::bigint AND seq <> ALL ($3::bigint[])
      ORDER BY ended_at LIMIT $2::bigint
    ) whole
  )
  SELECT ended.seq, ended.number,
    (SELECT string_agg(body, chr(10) ORDER BY last) FROM @segment WHERE task = ended.seq) AS log
  FROM ended WHERE before < ${MAX_BYTES_AT_ONCE}`;

/** What has ended does not change, so only another node that does the same may have been first. */
const COMPACT = `WITH target AS (
    SELECT t.seq, t.scope, t.bytes, s.bytes AS left_bytes FROM @task t
    JOIN unnest($1::bigint[], $2::bigint[]) AS s (seq, bytes) USING (seq)
    WHERE NOT t.open AND t.floor = 0 ORDER BY t.seq FOR UPDATE OF t SKIP LOCKED
  ),
  changed AS (
    UPDATE @task t SET floor = number, message_segment = NULL, bytes = target.left_bytes, version = version + 1
    FROM target WHERE t.seq = target.seq RETURNING t.seq
  ),
  dropped AS (DELETE FROM @segment WHERE task IN (SELECT seq FROM target)),
  kept AS (
    INSERT INTO @snapshot (task, part, body)
    SELECT task, part, body FROM unnest($3::bigint[], $4::integer[], $5::text[]) AS p (task, part, body)
    WHERE task IN (SELECT seq FROM target)
  ),
  counted AS (
    INSERT INTO @counter_delta (scope, state, tasks, bytes, events)
    SELECT scope, 0, 0, sum(left_bytes - bytes), 0 FROM target GROUP BY scope
  )
  SELECT count(*) AS n FROM changed`;

/** One that has changed since, by a new delivery for example, has its turn later: this statement does not see what it has. */
const PRUNE = `WITH ended AS MATERIALIZED (
    SELECT seq, version FROM @task WHERE NOT open AND ended_at <= @now - $1::bigint ORDER BY ended_at LIMIT $2::bigint
  ),
  target AS MATERIALIZED (
    SELECT t.seq, t.scope, t.state, t.number, t.bytes FROM @task t JOIN ended USING (seq)
    WHERE t.version = ended.version ORDER BY t.seq FOR UPDATE OF t SKIP LOCKED
  ),
  log AS (DELETE FROM @segment WHERE task IN (SELECT seq FROM target)),
  content AS (DELETE FROM @snapshot WHERE task IN (SELECT seq FROM target)),
  memories AS (DELETE FROM @memory WHERE task IN (SELECT seq FROM target)),
  deliveries AS (DELETE FROM @delivery WHERE task IN (SELECT seq FROM target)),
  removed AS (DELETE FROM @task WHERE seq IN (SELECT seq FROM target) RETURNING seq),
  counted AS (
    INSERT INTO @counter_delta (scope, state, tasks, bytes, events)
    SELECT scope, state, -count(*), 0, 0 FROM target GROUP BY scope, state
    UNION ALL SELECT scope, 0, 0, -sum(bytes), -sum(number) FROM target GROUP BY scope
  )
  SELECT count(*) AS n FROM removed`;

const expired = (table: string, condition: string) =>
  `DELETE FROM @${table} WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM @${table} WHERE ${condition} LIMIT ${MAX_EXPIRED} FOR UPDATE SKIP LOCKED))`;

const DELETE_EXPIRED = [
  expired("idempotency", "expires_at <= @now"),
  expired("record", "expires_at <= @now"),
  expired("past_position", `left_at < @now - ${LIST_VIEW_MS}`),
];

const SELECT_BYTES = `SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint AS bytes
  FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname = $1 AND c.relkind = 'r'`;

/** What is done to tasks after they have ended, and what there is. */
export function createRetention({ query, schema }: Pick<Database, "query" | "schema">, counters: Counters, log: Log) {
  /** Tasks that cannot be read: they must not keep others from having their turn. */
  const damaged = new Set<number>();

  function compactOne({ seq, number, log: whole }: WholeRow) {
    try {
      return [{ seq, parts: toSnapshotParts(foldLog(whole ?? "", number).toTask()) }];
    } catch (error) {
      damaged.add(seq);
      log.error({ err: error, seq }, "A task cannot be read and keeps its log.");
      return [];
    }
  }

  async function compactSome(ageMs: number, max: number): Promise<number> {
    const rows = await query<WholeRow>(SELECT_WHOLE, [ageMs, max, [...damaged]]);
    const compacted = rows.flatMap(compactOne);
    if (compacted.length === 0) return 0;
    const parts = compacted.flatMap((task) => task.parts.map(({ part, body }) => ({ seq: task.seq, part, body })));
    const [result] = await query<{ n: number }>(COMPACT, [
      compacted.map(({ seq }) => seq),
      compacted.map((task) => task.parts.reduce((sum, { body }) => sum + Buffer.byteLength(body), 0)),
      parts.map(({ seq }) => seq),
      parts.map(({ part }) => part),
      parts.map(({ body }) => body),
    ]);
    return result?.n ?? 0;
  }

  return {
    async compact(ageMs: number, max: number): Promise<number> {
      if (!Number.isFinite(ageMs)) return 0;
      let sum = 0;
      for (let done = -1; done !== 0 && sum < max; sum += done) done = await compactSome(Math.floor(ageMs), max - sum);
      return sum;
    },

    async prune(ageMs: number, max: number): Promise<number> {
      for (const text of DELETE_EXPIRED) await query(text);
      if (!Number.isFinite(ageMs)) return 0;
      const [row] = await query<{ n: number }>(PRUNE, [Math.floor(ageMs), max]);
      return row?.n ?? 0;
    },

    async stats(): Promise<StoreStats> {
      const [totals, [size]] = await Promise.all([counters.totals(), query<{ bytes: number }>(SELECT_BYTES, [schema])]);
      return { ...totals, bytes: size?.bytes ?? 0, freeBytes: 0, schemaVersion: SCHEMA_VERSION };
    },
  };
}
