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
  replaceDeliveries,
  toParameters,
  toPut,
  type WrittenRow,
} from "./statement-parts.ts";

/** A task as a write leaves it, if it is still of `version`. Null: as it was. */
export interface ChangeRow extends KeyColumns {
  readonly seq: number;
  readonly version: number;
  readonly number: number;
  readonly fence: number;
  readonly node: string | null;
  readonly turn: number;
  readonly attempt: number;
  readonly messageSegment: number | null;
  readonly bytes: number;
  readonly cancel: boolean;
  readonly registers: boolean;
  /** Deliveries that want no more than this are due. */
  readonly dueWants: number;
  readonly events: number;
  readonly first: number | null;
  readonly earlier: number | null;
  readonly terminal: boolean;
  /** The first part of the log that the write adds; its last number where there are more. */
  readonly last: number | null;
  readonly body: string | null;
  readonly oldState: number;
  readonly oldStatusTime: number;
  readonly oldMoved: string;
  readonly state: number | null;
  readonly ended: boolean;
  readonly status: string | null;
  /** Null with a status: now. */
  readonly statusTime: number | null;
  readonly metadata: string | null;
}

const CHANGE_LOG = [
  { name: "seq", type: "bigint", of: (row) => row.seq },
  { name: "version", type: "bigint", of: (row) => row.version },
  { name: "number", type: "bigint", of: (row) => row.number },
  { name: "fence", type: "bigint", of: (row) => row.fence },
  { name: "node", type: "text", of: (row) => row.node },
  { name: "turn", type: "bigint", of: (row) => row.turn },
  { name: "attempt", type: "integer", of: (row) => row.attempt },
  { name: "message_segment", type: "bigint", of: (row) => row.messageSegment },
  { name: "bytes", type: "bigint", of: (row) => row.bytes },
  { name: "events", type: "bigint", of: (row) => row.events },
  { name: "first", type: "bigint", of: (row) => row.first },
  { name: "last", type: "bigint", of: (row) => row.last },
  { name: "earlier", type: "bigint", of: (row) => row.earlier },
  { name: "terminal", type: "boolean", of: (row) => row.terminal },
  { name: "body", type: "text", of: (row) => row.body },
  { name: "cancel", type: "boolean", of: (row) => row.cancel },
  { name: "registers", type: "boolean", of: (row) => row.registers },
  { name: "due_wants", type: "smallint", of: (row) => row.dueWants },
] as const satisfies readonly Column<ChangeRow>[];

const CHANGE_STATUS = [
  { name: "old_state", type: "smallint", of: (row) => row.oldState },
  { name: "old_status_ts", type: "bigint", of: (row) => row.oldStatusTime },
  { name: "old_moved", type: "xid8", of: (row) => row.oldMoved },
  { name: "new_state", type: "smallint", of: (row) => row.state },
  { name: "ended", type: "boolean", of: (row) => row.ended },
  { name: "new_status", type: "text", of: (row) => row.status },
  { name: "new_status_ts", type: "bigint", of: (row) => row.statusTime },
  { name: "new_metadata", type: "text", of: (row) => row.metadata },
] as const satisfies readonly Column<ChangeRow>[];

/** Changes tasks that are still as they were found; the rows of all others are missing from what it returns. */
export async function changeTasks(
  query: Query,
  flush: number,
  rows: readonly ChangeRow[],
  additions: Additions,
): Promise<WrittenRow[]> {
  const hasStatus = rows.some(({ state }) => state !== null);
  const hasKeys = rows.some(({ key }) => key !== null);
  const hasDeliveries = rows.some(({ dueWants }) => dueWants >= 0);
  const columns = [...CHANGE_LOG, ...(hasStatus ? CHANGE_STATUS : []), ...(hasKeys ? KEY : [])];
  const { input, more, put, values } = toParameters<ChangeRow>(flush, columns, rows, additions);
  const notPut =
    put === undefined
      ? ""
      : `AND NOT EXISTS (SELECT 1 FROM ${put} WHERE p.write = w.at AND p.id = d.id AND p.webhook = (d.route = 'webhook'))`;
  const text = `WITH written AS (
  UPDATE @task t SET version = t.version + 1, flush = $1::bigint, number = i.number, fence = i.fence, node = i.node,
    turn = i.turn, attempt = i.attempt, message_segment = i.message_segment, bytes = t.bytes + i.bytes,
    cancel = t.cancel OR i.cancel, deliveries = t.deliveries OR i.registers
    ${hasStatus ? SET_STATUS : ""}
  FROM ${input}
  WHERE t.seq = i.seq AND t.version = i.version ${hasKeys ? `AND ${KEY_IS_FREE("t.scope")}` : ""}
  RETURNING i.at, t.seq, t.scope, t.id, t.context, t.deliveries, i.bytes, i.events, i.first, i.last, i.earlier,
    i.terminal, i.body, i.due_wants
    ${hasStatus ? ", t.state, t.moved, t.status_ts, i.old_state, i.old_status_ts, i.old_moved" : ""}
    ${hasKeys ? ", i.key, i.fingerprint, i.key_ttl" : ""}
)
${addSegments("written", more)}
, counted AS (
  INSERT INTO @counter_delta (scope, state, tasks, bytes, events)
  SELECT scope, 0, 0, sum(bytes), sum(events) FROM written WHERE events > 0 GROUP BY scope
  ${hasStatus ? COUNT_STATES : ""}
)
${hasStatus ? ADD_PAST_POSITIONS : ""}
${hasKeys ? addKeys("written") : ""}
${hasDeliveries ? markDue(notPut) : ""}
${put === undefined ? "" : replaceDeliveries("written", put)}
${put === undefined ? "" : addDeliveries("written", put, "WHERE NOT EXISTS (SELECT 1 FROM replaced r WHERE r.task = w.seq AND r.id = p.id AND r.webhook = p.webhook)")}
SELECT w.at, w.seq
  ${hasStatus ? ", w.moved, w.status_ts" : ""}
  ${hasDeliveries ? ", (SELECT array_agg(DISTINCT g.route) FROM grown g WHERE g.task = w.seq) AS due" : ""}
  ${put === undefined ? "" : `, ${toPut(["replaced", "put"])}`}
FROM written w`;
  return query<WrittenRow>(text, values);
}

/** A status with the timestamp of the one before leaves the task where it stands in lists. */
const SET_STATUS = `, state = coalesce(i.new_state, t.state), status = coalesce(i.new_status, t.status),
    open = t.open AND NOT i.ended,
    ended_at = CASE WHEN i.ended THEN @now ELSE t.ended_at END,
    metadata = coalesce(i.new_metadata, t.metadata),
    status_ts = CASE WHEN i.new_state IS NULL THEN t.status_ts ELSE coalesce(i.new_status_ts, @now) END,
    moved = CASE WHEN i.new_state IS NULL OR coalesce(i.new_status_ts, @now) = t.status_ts THEN t.moved
      ELSE pg_current_xact_id() END`;

const COUNT_STATES = `UNION ALL SELECT scope, state, sum(tasks), 0, 0 FROM (
    SELECT scope, state, 1 AS tasks FROM written WHERE state <> old_state
    UNION ALL SELECT scope, old_state, -1 FROM written WHERE state <> old_state
  ) c GROUP BY scope, state HAVING sum(tasks) <> 0`;

const ADD_PAST_POSITIONS = `, past AS (
  INSERT INTO @past_position (scope, status_ts, id, context, since, until, task, left_at)
  SELECT scope, old_status_ts, id, context, old_moved, moved, seq, @now FROM written WHERE moved <> old_moved
)`;

/** Progress that leaves a delivery with nothing to do changes the version, so none is missed here. */
const markDue = (notPut: string) => `, grown AS (
  UPDATE @delivery d SET due_at = @now FROM written w
  WHERE w.deliveries AND w.events > 0 AND d.task = w.seq AND d.wants <= w.due_wants AND d.holder IS NULL
    AND d.dead_at IS NULL AND d.attempts = 0 AND (d.due_at IS NULL OR d.due_at > @now) ${notPut}
  RETURNING d.task, d.route
)`;
