import { COUNT_BOUND, type ListPage, type ListQuery } from "../contract.ts";
import { fitting } from "../fitting.ts";
import type { Connection } from "./connection.ts";
import type { SqliteStatement, SqlValue } from "./driver.ts";
import type { Reader } from "./reader.ts";
import { STATE_CODES, TASK_COLUMNS, type TaskRow } from "./rows.ts";
import type { Tally } from "./tally.ts";
import { compareTexts, fromText, toText } from "./text.ts";

/** A task and where it stands in the walk, which for a task that moved since is not where its status says. */
interface PlacedRow extends TaskRow {
  readonly place: number;
}

interface Condition {
  readonly sql: string;
  readonly values: readonly SqlValue[];
}

/** Lists by keyset, over an index whose order is the list's order. */
export class Lister {
  readonly #connection: Connection;
  readonly #reader: Reader;
  readonly #tally: Tally;
  /** Made on first use of each combination of filters. */
  readonly #statements = new Map<string, SqliteStatement<PlacedRow & { n: number }>>();

  constructor(connection: Connection, reader: Reader, tally: Tally) {
    this.#connection = connection;
    this.#reader = reader;
    this.#tally = tally;
  }

  list(query: ListQuery): ListPage {
    const scope = this.#connection.findScope(query);
    if (scope === undefined) return { tasks: [], total: 0 };
    const found = this.#page(scope, query);
    const tasks = fitting(found.slice(0, query.limit), query.characters, (row) => this.#reader.toTask(row, query));
    const last = found[tasks.length - 1];
    return {
      tasks,
      total: this.#total(scope, query),
      ...(found.length > tasks.length && last !== undefined
        ? { next: { timestamp: last.place, id: fromText(last.id), stamp: query.after?.stamp ?? this.#tally.stamp } }
        : undefined),
    };
  }

  /** One more than asked, if there are more. */
  #page(scope: number, query: ListQuery): PlacedRow[] {
    const { after, limit } = query;
    const filter = filterOf(query);
    const since: Condition = query.since === undefined ? NONE : { sql: "AND status_ts >= ?", values: [query.since] };
    if (after === undefined) return this.#unmoved(scope, query, [filter, since], limit);
    const id = toText(after.id);
    const unmoved = this.#unmoved(
      scope,
      query,
      [
        filter,
        since,
        { sql: "AND (status_ts, id) < (?, ?) AND stamp <= ?", values: [after.timestamp, id, after.stamp] },
      ],
      limit,
    );
    const sincePlace: Condition = query.since === undefined ? NONE : { sql: "AND place >= ?", values: [query.since] };
    const sql = `SELECT * FROM (
        SELECT ${TASK_COLUMNS},
          (SELECT m.status_ts FROM move m WHERE m.task = seq AND m.stamp > ? ORDER BY m.stamp LIMIT 1) AS place
        FROM task INDEXED BY task_moved
        WHERE scope = ? AND stamp > ? AND stamp > created_stamp AND created_stamp <= ? ${filter.sql}
      ) WHERE (place, id) < (?, ?) ${sincePlace.sql} ORDER BY place DESC, id DESC LIMIT ?`;
    const moved = this.#prepared(sql).all(
      ...[after.stamp, scope, after.stamp, after.stamp, ...filter.values],
      ...[after.timestamp, id, ...sincePlace.values, limit + 1],
    );
    return moved.length === 0 ? unmoved : merge(unmoved, moved).slice(0, limit + 1);
  }

  #unmoved(scope: number, query: ListQuery, conditions: readonly Condition[], limit: number): PlacedRow[] {
    const sql = `SELECT ${TASK_COLUMNS}, status_ts AS place FROM task INDEXED BY ${indexFor(query)}
      WHERE scope = ? ${conditions.map((condition) => condition.sql).join(" ")}
      ORDER BY status_ts DESC, id DESC LIMIT ?`;
    return this.#prepared(sql).all(scope, ...conditions.flatMap((condition) => condition.values), limit + 1);
  }

  #total(scope: number, query: ListQuery): number {
    const { contextId, state, since } = query;
    if (contextId === undefined && since === undefined) {
      const counted =
        state === undefined
          ? this.#prepared("SELECT sum(n) AS n FROM counter WHERE scope = ?").get(scope)
          : this.#prepared("SELECT n FROM counter WHERE scope = ? AND state = ?").get(scope, STATE_CODES[state]);
      return counted?.n ?? 0;
    }
    const filter = filterOf(query);
    const sinceSql = since === undefined ? "" : "AND status_ts >= ?";
    const sql = `SELECT count(*) AS n FROM (SELECT 1 FROM task INDEXED BY ${indexFor(query)}
      WHERE scope = ? ${filter.sql} ${sinceSql} LIMIT ${COUNT_BOUND})`;
    return this.#prepared(sql).get(scope, ...filter.values, ...(since === undefined ? [] : [since]))?.n ?? 0;
  }

  #prepared(sql: string): SqliteStatement<PlacedRow & { n: number }> {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.#connection.driver.prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }
}

const NONE: Condition = { sql: "", values: [] };

function filterOf({ contextId, state }: ListQuery): Condition {
  return {
    sql: `${contextId === undefined ? "" : "AND context = ?"} ${state === undefined ? "" : "AND state = ?"}`,
    values: [
      ...(contextId === undefined ? [] : [toText(contextId)]),
      ...(state === undefined ? [] : [STATE_CODES[state]]),
    ],
  };
}

function indexFor({ contextId, state }: ListQuery): string {
  if (contextId !== undefined) return "task_by_context";
  return state === undefined ? "task_by_time" : "task_by_state";
}

/** Two descending orders as one. */
function merge(left: readonly PlacedRow[], right: readonly PlacedRow[]): PlacedRow[] {
  return [...left, ...right].sort((one, other) => other.place - one.place || compareTexts(other.id, one.id));
}
