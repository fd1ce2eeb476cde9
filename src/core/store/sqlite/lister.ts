import type { Task } from "../../model/task.ts";
import { type ListPage, type ListPosition, type ListQuery, MAX_COUNTED } from "../contract.ts";
import { takePage } from "../rules.ts";
import { parseView } from "../single-process.ts";
import { compareTexts, STATE_CODES, toText } from "../stored-text.ts";
import type { Connection } from "./connection.ts";
import type { CommitCounters } from "./counters.ts";
import { fallBackIfDamaged, isDamage, salvage } from "./damage.ts";
import type { SqliteStatement, SqlValue } from "./driver.ts";
import type { Reader } from "./reader.ts";
import { columns, fromText, packedTask, type StoredText, type TaskRow, toTaskRows } from "./rows.ts";

/** A task of which only the place is known: it has to be read by itself. */
interface Place {
  readonly seq: number;
  readonly place: number;
  /** Undefined if it cannot be read. */
  readonly id: string | undefined;
}

interface ListRow {
  /** Tasks of a page. */
  readonly tasks: StoredText | null;
  readonly seq: number;
  readonly place: number;
  readonly id: StoredText;
  readonly n: number;
}

interface Condition {
  readonly sql: string;
  readonly values: readonly SqlValue[];
}

/** Lists by keyset, over an index whose order is the list's order. */
export class Lister {
  readonly #connection: Connection;
  readonly #reader: Reader;
  readonly #counters: CommitCounters;
  /** Made on first use of each combination of filters. */
  readonly #statements = new Map<string, SqliteStatement<ListRow>>();

  constructor(connection: Connection, reader: Reader, counters: CommitCounters) {
    this.#connection = connection;
    this.#reader = reader;
    this.#counters = counters;
  }

  list(query: ListQuery): ListPage {
    const scope = this.#connection.findScope(query);
    if (scope === undefined) return { tasks: [], total: 0 };
    const found = fallBackIfDamaged<readonly (Place | TaskRow)[]>(
      () => this.#page(scope, query),
      () => this.#places(scope, query),
    );
    const { tasks, taken } = takePage(found.slice(0, query.limit), query.maxCharacters, (one) =>
      this.#read(one, query),
    );
    if (query.firstPageOnly === true) return { tasks, total: tasks.length };
    const last = found[taken - 1];
    const total = fallBackIfDamaged(
      () => this.#total(scope, query),
      () => found.length,
    );
    if (last === undefined || found.length <= taken) return { tasks, total };
    const view = query.after?.view ?? String(this.#counters.beginView());
    // A list must not stop at an id that cannot be read: it continues below all tasks of that moment.
    return { tasks, total, next: { timestamp: last.place, id: last.id ?? "", view } };
  }

  /** Undefined if the task cannot be read. */
  #read(one: Place | TaskRow, query: ListQuery): Task | undefined {
    try {
      return this.#reader.toTask("status" in one ? one : this.#reader.rowOf(one.seq), query);
    } catch (error) {
      if (!isDamage(error)) throw error;
      this.#connection.reportDamage(`task ${one.id ?? `number ${one.seq}`}`, error);
      return undefined;
    }
  }

  /**
   * Where the tasks of a page stand, for reading them one by one: from an index alone or, if that is what is damaged,
   * from the table alone. Tasks that changed since the list began are where they stand now.
   */
  #places(scope: number, query: ListQuery): Place[] {
    const { after, limit } = query;
    const conditions = [filterOf(query), sinceOf(query)];
    if (after !== undefined) {
      conditions.push({ sql: "AND (status_ts, id) < (?, ?)", values: [after.timestamp, toText(after.id)] });
    }
    const read = (how: string) =>
      this.#prepared(
        `SELECT ${columns("seq, status_ts AS place", "id")} FROM task ${how}
         WHERE scope = ? ${conditions.map(({ sql }) => sql).join(" ")}
         ORDER BY task.status_ts DESC, task.id DESC LIMIT ?`,
      ).all(scope, ...conditions.flatMap(({ values }) => values), limit + 1);
    const places = fallBackIfDamaged(
      () => read(`INDEXED BY ${indexFor(query)}`),
      () => read("NOT INDEXED"),
    );
    return places.map(({ seq, place, id }) => ({ seq, place, id: salvage([id], fromText, () => {})[0] }));
  }

  /** One more than asked, if there are more. */
  #page(scope: number, query: ListQuery): TaskRow[] {
    const { after, limit } = query;
    if (after === undefined) return this.#current(scope, query, limit);
    const view = parseView(after.view);
    const current = this.#current(scope, query, limit, {
      sql: "AND (status_ts, id) < (?, ?) AND stamp <= ?",
      values: [after.timestamp, toText(after.id), view],
    });
    const past = this.#past(scope, query, view, current[limit]);
    return past.length === 0 ? current : merge(current, past).slice(0, limit + 1);
  }

  #current(scope: number, query: ListQuery, limit: number, following = NONE): TaskRow[] {
    const conditions = [filterOf(query), sinceOf(query), following];
    const sql = `SELECT *, status_ts AS place FROM task INDEXED BY ${indexFor(query)}
      WHERE scope = ? ${conditions.map((condition) => condition.sql).join(" ")}
      ORDER BY status_ts DESC, id DESC LIMIT ?`;
    return this.#rows(sql, [scope, ...conditions.flatMap((condition) => condition.values), limit + 1]);
  }

  /** Tasks that have left their position since the list began; down to `last`, if the page is full without them. */
  #past(scope: number, query: ListQuery, view: number, last: TaskRow | undefined): TaskRow[] {
    const { timestamp, id } = query.after as ListPosition;
    const [filter, since] = [filterOf(query), sinceOf(query)];
    const lower: Condition =
      last === undefined ? NONE : { sql: "AND (status_ts, id) > (?, ?)", values: [last.place, toText(last.id)] };
    const sql = `SELECT t.*, p.status_ts AS place FROM (
        SELECT task, status_ts, id FROM past_position ${pastIndexFor(query)}
        WHERE scope = ? ${filter.sql} AND (status_ts, id) < (?, ?) ${lower.sql} ${since.sql} AND since <= ? AND until > ?
      ) p CROSS JOIN task t ON t.seq = p.task ORDER BY p.status_ts DESC, p.id DESC LIMIT ?`;
    return this.#rows(sql, [
      ...[scope, ...filter.values, timestamp, toText(id), ...lower.values, ...since.values, view, view],
      query.limit + 1,
    ]);
  }

  #rows(sql: string, values: readonly SqlValue[]): TaskRow[] {
    const all = `SELECT CAST(group_concat(task, char(0)) AS BLOB) AS tasks FROM (SELECT ${packedTask("place")} AS task FROM (${sql}))`;
    return toTaskRows(this.#prepared(all).get(...values)?.tasks ?? null);
  }

  #total(scope: number, query: ListQuery): number {
    const { contextId, state, since } = query;
    if (contextId === undefined && since === undefined) {
      const counted =
        state === undefined
          ? this.#prepared("SELECT sum(n) AS n FROM counter WHERE scope = ?").get(scope)
          : this.#prepared(`SELECT ${columns("n")} FROM counter WHERE scope = ? AND state = ?`).get(
              scope,
              STATE_CODES[state],
            );
      return counted?.n ?? 0;
    }
    const conditions = [filterOf(query), sinceOf(query)];
    const sql = `SELECT count(*) AS n FROM (SELECT 1 FROM task INDEXED BY ${indexFor(query)}
      WHERE scope = ? ${conditions.map((condition) => condition.sql).join(" ")} LIMIT ${MAX_COUNTED})`;
    return this.#prepared(sql).get(scope, ...conditions.flatMap((condition) => condition.values))?.n ?? 0;
  }

  #prepared(sql: string): SqliteStatement<ListRow> {
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

function sinceOf({ since }: ListQuery): Condition {
  return since === undefined ? NONE : { sql: "AND status_ts >= ?", values: [since] };
}

function indexFor({ contextId, state }: ListQuery): string {
  if (contextId !== undefined) return "task_by_context";
  return state === undefined ? "task_by_time" : "task_by_state";
}

function pastIndexFor({ contextId, state }: ListQuery): string {
  if (contextId !== undefined) return "INDEXED BY past_position_by_context";
  return state === undefined ? "NOT INDEXED" : "INDEXED BY past_position_by_state";
}

/** Two descending orders as one. */
function merge(left: readonly TaskRow[], right: readonly TaskRow[]): TaskRow[] {
  const newer = (one: TaskRow, other: TaskRow) =>
    other.place - one.place || compareTexts(toText(other.id), toText(one.id));
  return [...left, ...right].sort(newer);
}
