import type { Discard, Remember } from "../../../core/store/contract.ts";
import { textOrNull, toText } from "../../../core/store/stored-text.ts";
import type { Query } from "./connection.ts";
import type { FoundTask } from "./guards.ts";

interface OfTask<Kind> {
  readonly write: Kind;
  readonly task: FoundTask;
}

/** Deletes tasks that are still as they were found, with all they have. Returns which, by their places from 0. */
export async function discardTasks(query: Query, discards: readonly OfTask<Discard>[]): Promise<ReadonlySet<number>> {
  const rows = await query<{ at: number }>(
    `WITH gone AS (
       DELETE FROM @task t USING unnest($1::bigint[], $2::bigint[], $3::text[]) WITH ORDINALITY AS i (seq, version, reply, at)
       WHERE t.seq = i.seq AND t.version = i.version
       RETURNING i.at, i.reply, t.seq, t.id, t.scope, t.state, t.bytes, t.number, t.idempotency_key
     ), segments AS (DELETE FROM @segment g USING gone WHERE g.task = gone.seq),
     memories AS (DELETE FROM @memory m USING gone WHERE m.task = gone.seq),
     deliveries AS (DELETE FROM @delivery d USING gone WHERE d.task = gone.seq),
     replies AS (
       UPDATE @idempotency k SET reply = gone.reply FROM gone
       WHERE k.scope = gone.scope AND k.key = gone.idempotency_key AND k.task_id = gone.id
     ), counted AS (
       INSERT INTO @counter_delta (scope, state, tasks, bytes, events)
       SELECT scope, 0, 0, -sum(bytes), -sum(number) FROM gone GROUP BY scope
       UNION ALL SELECT scope, state, -count(*), 0, 0 FROM gone GROUP BY scope, state
     ) SELECT at FROM gone`,
    [
      discards.map(({ task }) => task.seq),
      discards.map(({ task }) => task.version),
      discards.map(({ write }) => JSON.stringify(write.reply)),
    ],
  );
  return new Set(rows.map(({ at }) => at - 1));
}

/** Writes what tasks remember that are still open under the same fence. Returns which, by their places from 0. */
export async function remember(query: Query, writes: readonly OfTask<Remember>[]): Promise<ReadonlySet<number>> {
  const rows = await query<{ at: number }>(
    `WITH held AS MATERIALIZED (
       SELECT i.at, t.seq, i.key, i.value
       FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[]) WITH ORDINALITY AS i (seq, fence, key, value, at)
       JOIN @task t ON t.seq = i.seq AND t.fence = i.fence AND t.open ORDER BY t.seq FOR SHARE OF t
     ), forgotten AS (
       DELETE FROM @memory m USING held h WHERE h.value IS NULL AND m.task = h.seq AND m.key = h.key
     ), remembered AS (
       INSERT INTO @memory (task, key, value) SELECT seq, key, value FROM held WHERE value IS NOT NULL
       ON CONFLICT (task, key) DO UPDATE SET value = excluded.value
     ) SELECT at FROM held`,
    [
      writes.map(({ task }) => task.seq),
      writes.map(({ write }) => write.fence),
      writes.map(({ write }) => toText(write.key)),
      writes.map(({ write }) => textOrNull(write.value)),
    ],
  );
  return new Set(rows.map(({ at }) => at - 1));
}
