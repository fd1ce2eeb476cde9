import type { Clock, Log } from "../../../core/model/ports.ts";
import type { TaskState } from "../../../core/model/task.ts";
import { stateOf, toText } from "../../../core/store/stored-text.ts";
import type { Database } from "./connection.ts";

/**
 * Every write adds rows to `counter_delta`, and no two writes change the same one. Now and then a node adds them up in
 * `counter`, where scope 0 stands for all. What is read are both, so that a counter is as new as what is asked with it.
 */
const FOLD_MS = 1_000;
const FOLDED_AT_ONCE = 10_000;
const FOLD_LOCK = 0x6472676e;

const FOLD = `WITH turn AS MATERIALIZED (SELECT pg_try_advisory_xact_lock(${FOLD_LOCK}, hashtext($1)) AS taken),
  taken AS (
    DELETE FROM @counter_delta WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM @counter_delta WHERE (SELECT taken FROM turn) LIMIT ${FOLDED_AT_ONCE} FOR UPDATE SKIP LOCKED
    )) RETURNING scope, state, tasks, bytes, events
  ),
  added AS (
    INSERT INTO @counter AS known (scope, state, tasks, bytes, events)
    SELECT scope, state, sum(tasks), sum(bytes), sum(events) FROM (
      SELECT scope, state, tasks, bytes, events FROM taken WHERE scope <> 0
      UNION ALL SELECT 0, state, tasks, bytes, events FROM taken
    ) both_kinds GROUP BY scope, state ORDER BY scope, state
    ON CONFLICT (scope, state) DO UPDATE SET tasks = known.tasks + excluded.tasks,
      bytes = known.bytes + excluded.bytes, events = known.events + excluded.events
  )
  SELECT count(*) AS n FROM taken`;

/** Tasks of one scope: `condition` names the scope, and the state or all states above 0. */
export function COUNT_TASKS(condition: string): string {
  return `SELECT coalesce(sum(tasks), 0)::bigint FROM (
    SELECT tasks FROM @counter WHERE ${condition} UNION ALL SELECT tasks FROM @counter_delta WHERE ${condition}
  ) counted`;
}

const OF_OWNER = "state = 0 AND scope = ANY (ARRAY(SELECT id FROM @scope WHERE owner = $1))";
const SELECT_BYTES = `SELECT coalesce(sum(bytes), 0)::bigint AS bytes FROM (
  SELECT bytes FROM @counter WHERE ${OF_OWNER} UNION ALL SELECT bytes FROM @counter_delta WHERE ${OF_OWNER}
) counted`;

const SELECT_TOTALS = `SELECT state, sum(tasks)::bigint AS tasks, sum(events)::bigint AS events FROM (
    SELECT state, tasks, events FROM @counter WHERE scope = 0
    UNION ALL SELECT state, tasks, events FROM @counter_delta
  ) counted GROUP BY state`;

interface Totals {
  readonly tasks: number;
  readonly byState: Readonly<Partial<Record<TaskState, number>>>;
  readonly events: number;
}

export function createCounters({ query, schema }: Pick<Database, "query" | "schema">, clock: Clock, log: Log) {
  let cancel: (() => void) | undefined;
  let closed = false;
  let folding: Promise<void> = Promise.resolve();

  async function fold(): Promise<void> {
    for (let more = true; more && !closed; ) {
      const [row] = await query<{ n: number }>(FOLD, [schema]);
      more = row?.n === FOLDED_AT_ONCE;
    }
  }

  function foldLater(): void {
    if (closed) return;
    cancel = clock.after(FOLD_MS, () => {
      folding = fold()
        // Whatever keeps this node from it, another one does it, or this one a second later.
        .catch((error: unknown) => log.debug({ err: error }, "The counters of the task store were not added up."))
        .then(foldLater);
    });
  }

  return {
    start: foldLater,

    async storedBytes(owner: string): Promise<number> {
      const [row] = await query<{ bytes: number }>(SELECT_BYTES, [toText(owner)]);
      return row?.bytes ?? 0;
    },

    async totals(): Promise<Totals> {
      const byState: Partial<Record<TaskState, number>> = {};
      let [tasks, events] = [0, 0];
      for (const row of await query<{ state: number; tasks: number; events: number }>(SELECT_TOTALS)) {
        events += row.events;
        if (row.state === 0 || row.tasks === 0) continue;
        byState[stateOf(row.state)] = row.tasks;
        tasks += row.tasks;
      }
      return { tasks, byState, events };
    },

    async close(): Promise<void> {
      closed = true;
      cancel?.();
      await folding;
    },
  };
}

export type Counters = ReturnType<typeof createCounters>;
