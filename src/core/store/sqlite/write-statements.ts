import { stateOf } from "../stored-text.ts";
import type { Connection } from "./connection.ts";
import type { SqliteStatement } from "./driver.ts";
import { columns, keyOf, LOG_NUMBER, ofTask, type StoredText, textOrUndefined } from "./rows.ts";

interface GuardRow {
  readonly seq: number;
  readonly scope: number;
  readonly state: number;
  readonly number: number;
  /** Where the log stood when the row was written. */
  readonly row_number: number;
  readonly fence: number;
  readonly node: StoredText | null;
  readonly turn: number;
  readonly attempt: number;
  readonly status_ts: number;
  readonly stamp: number;
  readonly message_segment: number | null;
  readonly deliveries: number;
  /** Only a discard asks for these. */
  readonly bytes?: number;
  readonly idempotency_key?: StoredText | null;
}

const GUARD_COLUMNS = `seq, scope, state, ${LOG_NUMBER} AS number, number AS row_number, fence, turn, attempt, status_ts, stamp, message_segment, deliveries`;

/** A task as a write finds it, within the transaction. */
export type FoundTask = ReturnType<typeof fromGuardRow>;

/** Of changes that callers ask for. */
export function prepareWrites({ driver }: Connection) {
  return {
    maxSeq: driver.prepare<{ seq: number | null }>("SELECT max(seq) AS seq FROM task"),
    guard: driver.prepare<GuardRow>(`SELECT ${columns(GUARD_COLUMNS, "node")} FROM task WHERE id = ?`),
    guardOfDiscard: driver.prepare<GuardRow>(
      `SELECT ${columns(`${GUARD_COLUMNS}, bytes`, "node, idempotency_key")} FROM task WHERE id = ?`,
    ),
    addTask: driver.prepare(
      `INSERT INTO task (seq, id, scope, context, state, open, status, status_ts, ended_at, stamp, created_at,
         number, fence, node, turn, attempt, message_segment, dialect, idempotency_key, metadata, bytes)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`,
    ),
    addSegment: driver.prepare(
      `INSERT INTO segment (key, first, earlier, terminal, body) VALUES (${keyOf("?", "?")}, ?, ?, ?, CAST(? AS TEXT))`,
    ),
    bytesAfter: driver.prepare<{ bytes: number }>(
      `SELECT sum(length(CAST(body AS BLOB))) AS bytes FROM segment WHERE ${ofTask("?", "?")}`,
    ),
    addPastPosition: driver.prepare(
      `INSERT INTO past_position (scope, status_ts, id, until, since, left_at, state, task, context)
       SELECT ?, ?, ?, ?, ?, ?, ?, seq, context FROM task WHERE seq = ?`,
    ),
    movePast: driver.prepare("UPDATE past_position SET state = ? WHERE task = ?"),
    advance: driver.prepare(
      `UPDATE task SET number = ?, fence = ?, node = ?, turn = ?, attempt = ?, message_segment = ?, bytes = bytes + ?
       WHERE seq = ?`,
    ),
    advanceStatus: driver.prepare(
      `UPDATE task SET number = ?, fence = ?, node = ?, turn = ?, attempt = ?, message_segment = ?, bytes = bytes + ?,
         state = ?, open = ?, ended_at = ?, status = ?, status_ts = ?, stamp = ? WHERE seq = ?`,
    ),
    setMetadata: driver.prepare("UPDATE task SET metadata = ? WHERE seq = ?"),
    requestCancel: driver.prepare("UPDATE task SET cancel = 1 WHERE seq = ?"),
    takeLease: driver.prepare("UPDATE task SET node = ?, fence = fence + 1 WHERE seq = ?"),
    remember: driver.prepare("INSERT OR REPLACE INTO memory (task, key, value) VALUES (?, ?, ?)"),
    forget: driver.prepare("DELETE FROM memory WHERE task = ? AND key = ?"),
  } satisfies Record<string, SqliteStatement<object>>;
}

export function fromGuardRow(row: GuardRow) {
  return {
    seq: row.seq,
    scope: row.scope,
    state: stateOf(row.state),
    number: row.number,
    rowNumber: row.row_number,
    fence: row.fence,
    node: textOrUndefined(row.node),
    turn: row.turn,
    attempt: row.attempt,
    statusTime: row.status_ts,
    stamp: row.stamp,
    messageSegment: row.message_segment,
    deliveries: row.deliveries === 1,
    bytes: row.bytes ?? 0,
    idempotencyKey: textOrUndefined(row.idempotency_key),
  };
}
