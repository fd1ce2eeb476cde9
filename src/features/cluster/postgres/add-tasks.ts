import type { Query } from "./connection.ts";
import {
  type Additions,
  addDeliveries,
  addKeys,
  addSegments,
  type Column,
  KEY,
  KEY_IS_FREE,
  type KeyColumns,
  toParameters,
  toPut,
  type WrittenRow,
} from "./statement-parts.ts";

/** A task that is new. */
export interface TaskRow extends KeyColumns {
  readonly id: string;
  readonly scope: number;
  readonly context: string;
  readonly state: number;
  readonly ended: boolean;
  readonly status: string;
  readonly statusTime: number | null;
  readonly number: number;
  readonly fence: number;
  readonly node: string | null;
  readonly turn: number;
  readonly attempt: number;
  readonly messageSegment: number | null;
  readonly dialect: string;
  readonly metadata: string | null;
  readonly bytes: number;
  readonly registers: boolean;
  readonly last: number;
  readonly body: string;
}

const TASK = [
  { name: "id", type: "text", of: (row) => row.id },
  { name: "scope", type: "bigint", of: (row) => row.scope },
  { name: "context", type: "text", of: (row) => row.context },
  { name: "state", type: "smallint", of: (row) => row.state },
  { name: "ended", type: "boolean", of: (row) => row.ended },
  { name: "status", type: "text", of: (row) => row.status },
  { name: "status_ts", type: "bigint", of: (row) => row.statusTime },
  { name: "number", type: "bigint", of: (row) => row.number },
  { name: "fence", type: "bigint", of: (row) => row.fence },
  { name: "node", type: "text", of: (row) => row.node },
  { name: "turn", type: "bigint", of: (row) => row.turn },
  { name: "attempt", type: "integer", of: (row) => row.attempt },
  { name: "message_segment", type: "bigint", of: (row) => row.messageSegment },
  { name: "dialect", type: "text", of: (row) => row.dialect },
  { name: "metadata", type: "text", of: (row) => row.metadata },
  { name: "bytes", type: "bigint", of: (row) => row.bytes },
  { name: "registers", type: "boolean", of: (row) => row.registers },
  { name: "last", type: "bigint", of: (row) => row.last },
  { name: "body", type: "text", of: (row) => row.body },
] as const satisfies readonly Column<TaskRow>[];

/** Adds tasks whose id and key are free. An id or a key that another takes meanwhile fails the statement. */
export async function addTasks(
  query: Query,
  flush: number,
  rows: readonly TaskRow[],
  additions: Additions,
): Promise<WrittenRow[]> {
  const hasKeys = rows.some(({ key }) => key !== null);
  const columns = [...TASK, ...(hasKeys ? KEY : [])];
  const { input, more, put, values } = toParameters<TaskRow>(flush, columns, rows, additions);
  const text = `WITH written AS MATERIALIZED (
  SELECT nextval('@task_seq_seq') AS seq, i.*, 1 AS first, NULL::bigint AS earlier,
    i.ended AND i.last = i.number AS terminal
  FROM ${input}
  WHERE NOT EXISTS (SELECT 1 FROM @task t WHERE t.id = i.id) ${hasKeys ? `AND ${KEY_IS_FREE("i.scope")}` : ""}
), added AS (
  INSERT INTO @task (seq, id, scope, context, state, open, status, status_ts, moved, created_at, ended_at, number, fence,
    node, turn, attempt, message_segment, dialect, idempotency_key, metadata, bytes, deliveries, flush)
  SELECT seq, id, scope, context, state, NOT ended, status, coalesce(status_ts, @now), pg_current_xact_id(), @now,
    CASE WHEN ended THEN @now END, number, fence, node, turn, attempt, message_segment, dialect,
    ${hasKeys ? "key" : "NULL"}, metadata, bytes, registers, $1::bigint
  FROM written
)
${addSegments("written", more)}
, counted AS (
  INSERT INTO @counter_delta (scope, state, tasks, bytes, events)
  SELECT scope, 0, 0, sum(bytes), sum(number) FROM written GROUP BY scope
  UNION ALL SELECT scope, state, count(*), 0, 0 FROM written GROUP BY scope, state
)
${hasKeys ? addKeys("written") : ""}
${put === undefined ? "" : addDeliveries("written", put, "")}
SELECT w.at, w.seq, pg_current_xact_id() AS moved, coalesce(w.status_ts, @now) AS status_ts
  ${put === undefined ? "" : `, ${toPut(["put"])}`}
FROM written w`;
  return query<WrittenRow>(text, values);
}
