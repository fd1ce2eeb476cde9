import type { Task } from "../../../core/model/task.ts";
import { type ListPage, type ListQuery, MAX_COUNTED, type Scope } from "../../../core/store/contract.ts";
import { takePage } from "../../../core/store/rules.ts";
import { STATE_CODES, toText, unescapeText } from "../../../core/store/stored-text.ts";
import type { Database } from "./connection.ts";
import { COUNT_TASKS } from "./counters.ts";
import { sqlStateOf } from "./errors.ts";
import { type Readable, type Reader, type TaskRow, toBareTask } from "./reader.ts";

interface ListRow extends TaskRow {
  /** Null on the row of an empty page. */
  readonly seq: number | null;
  /** Where the task stood when the list began. */
  readonly place: number;
  /** Of its log or snapshot. */
  readonly bytes: number;
  readonly view: string;
  readonly total: number;
}

type FoundRow = ListRow & { readonly seq: number };

/** Logs that are read at the same time for a page, in bytes. */
const MAX_BYTES_AT_ONCE = 4 * 1024 * 1024;
const INVALID_TEXT = "22P02";
const COLUMNS = "t.seq, t.bytes, t.id, t.context, t.status, t.metadata";

/** Lists by keyset, over an index whose order is the list's order; one statement per page. */
export function createLister(
  { query }: Pick<Database, "query">,
  reader: Pick<Reader, "tasks">,
  findScope: (scope: Scope) => Promise<number | undefined>,
  readable: Readable,
) {
  async function find(scope: number, asked: ListQuery): Promise<ListRow[]> {
    const view = asked.after?.view;
    const known = view !== undefined && SNAPSHOT.test(view) ? view : undefined;
    try {
      const { text, values } = toStatement(scope, asked, known);
      return await query<ListRow>(text, values);
    } catch (error) {
      // It looks like a snapshot and is none.
      if (known === undefined || sqlStateOf(error) !== INVALID_TEXT) throw error;
      const { text, values } = toStatement(scope, asked, undefined);
      return await query<ListRow>(text, values);
    }
  }

  /** In the order of the page, and how many of those found are on it. */
  async function fill(found: readonly FoundRow[], asked: ListQuery) {
    const { artifacts, history, maxCharacters, state } = asked;
    if (!artifacts && history <= 0) {
      return takePage(found, maxCharacters, (row) => readable(row.id, () => toBareTask(row)));
    }
    const read: (Task | undefined)[] = [];
    for (const some of splitByBytes(found)) {
      const content = await reader.tasks(
        some.map(({ seq }) => seq),
        asked,
      );
      for (const { seq } of some) {
        const known = content.get(seq);
        // One that is gone by now, or no longer in the state, is not on the page.
        read.push(known === undefined || (state && known.state !== STATE_CODES[state]) ? undefined : known.task);
      }
      const page = takePage(read, maxCharacters, (task) => task);
      if (page.taken < read.length || read.length === found.length) return page;
    }
    return takePage<undefined>([], maxCharacters, () => undefined);
  }

  return {
    async list(asked: ListQuery): Promise<ListPage> {
      const scope = await findScope(asked);
      if (scope === undefined) return { tasks: [], total: 0 };
      const rows = await find(scope, asked);
      const found = rows.filter((row): row is FoundRow => row.seq !== null);
      const { tasks, taken } = await fill(found.slice(0, asked.limit), asked);
      if (asked.firstPageOnly === true) return { tasks, total: tasks.length };
      const total = rows[0]?.total ?? 0;
      const last = found[taken - 1];
      if (last === undefined || found.length <= taken) return { tasks, total };
      const view = asked.after?.view ?? (rows[0] as ListRow).view;
      return { tasks, total, next: { timestamp: last.place, id: unescapeText(last.id), view } };
    },
  };
}

/** Of `pg_current_snapshot()`. */
const SNAPSHOT = /^\d{1,19}:\d{1,19}:(?:\d{1,19}(?:,\d{1,19})*)?$/;

/** Positions that transactions after a restored backup gave are of the past, although their numbers are yet to come. */
function isVisible(transaction: string, view: string): string {
  return `(pg_visible_in_snapshot(${transaction}, ${view}::pg_snapshot)
    OR ${transaction} >= pg_snapshot_xmax(pg_current_snapshot()))`;
}

/**
 * One more row than asked, if there are more: tasks where they are now, and from the second page on those that have left
 * their position since the list began, down to the last of the others. The first columns are of the list as a whole.
 */
function toStatement(scope: number, asked: ListQuery, view: string | undefined) {
  const { after, contextId, state, since, limit, firstPageOnly } = asked;
  const values: unknown[] = [];
  const add = (value: unknown) => `$${values.push(value)}`;
  const inScope = `scope = ${add(scope)}::bigint`;
  const inContext = contextId === undefined ? "" : ` AND context = ${add(toText(contextId))}`;
  const code = state && `${add(STATE_CODES[state])}::smallint`;
  const inState = code === undefined ? "" : ` AND state = ${code}`;
  const earliest = since === undefined ? undefined : `${add(Math.ceil(since))}::bigint`;
  const fromTime = earliest === undefined ? "" : ` AND status_ts >= ${earliest}`;
  const most = `${add(limit + 1)}::bigint`;
  const cursor = after && `${add(after.timestamp)}::bigint, ${add(toText(after.id))} COLLATE "C"`;
  const following = cursor === undefined ? "" : ` AND (status_ts, id) < (${cursor})`;
  const seen = after === undefined || view === undefined ? undefined : add(view);
  const stillThere = seen === undefined ? "" : ` AND ${isVisible("moved", seen)}`;
  const [range, order] = rangeFrom(cursor);
  const present = `SELECT ${COLUMNS}, t.status_ts AS place FROM @task t
    WHERE ${range}${stillThere} ORDER BY ${order} LIMIT ${most}`;
  const isCounted = contextId === undefined && since === undefined;
  const counted = isCounted
    ? COUNT_TASKS(`${inScope}${inState || " AND state > 0"}`)
    : `SELECT count(*) FROM (SELECT 1 FROM @task WHERE ${rangeFrom(undefined)[0]} LIMIT ${MAX_COUNTED}) counted`;
  const total = firstPageOnly === true ? "0::bigint" : `(${counted})`;
  const text = `WITH present AS MATERIALIZED (${present})${seen === undefined ? "" : `, ${past()}`}
    SELECT whole.view, whole.total, page.* FROM (SELECT pg_current_snapshot()::text AS view, ${total} AS total) whole
    LEFT JOIN (SELECT * FROM present${seen === undefined ? "" : " UNION ALL SELECT * FROM past"}) page ON true
    ORDER BY page.place DESC, page.id DESC LIMIT ${most}`;
  return { text, values };

  /** Of tasks where they are now, those after `start` in the order of the list. */
  function rangeFrom(start: string | undefined): [range: string, order: string] {
    if (code === undefined || contextId !== undefined) {
      const rest = start === undefined ? "" : following;
      return [`${inScope}${inContext}${inState}${fromTime}${rest}`, "status_ts DESC, id DESC"];
    }
    // As a range of the index by state: a plan for any state might go through all tasks by time for the few in a rare one.
    const key = "(state, status_ts, id)";
    const upTo = start === undefined ? `<= (${code}, ${MAX_BIGINT}, '' COLLATE "C")` : `< (${code}, ${start})`;
    const range = `${key} ${upTo} AND ${key} >= (${code}, ${earliest ?? MIN_BIGINT}, '' COLLATE "C")`;
    return [`${inScope} AND ${range}`, "state DESC, status_ts DESC, id DESC"];
  }

  function past(): string {
    const left = `${isVisible("p.since", seen as string)} AND NOT ${isVisible("p.until", seen as string)}`;
    return `last AS MATERIALIZED (SELECT place, id FROM present ORDER BY place, id LIMIT
        CASE WHEN (SELECT count(*) FROM present) < ${most} THEN 0 ELSE 1 END),
      past AS (SELECT ${COLUMNS}, p.status_ts AS place FROM (
          SELECT task, status_ts, id FROM @past_position p WHERE ${inScope}${inContext}${fromTime}${following}
            AND (status_ts, id) > (coalesce((SELECT place FROM last), ${MIN_BIGINT}), coalesce((SELECT id FROM last), '') COLLATE "C")
            AND ${left} ORDER BY status_ts DESC, id DESC
        ) p JOIN @task t ON t.seq = p.task${inState} ORDER BY p.status_ts DESC, p.id DESC LIMIT ${most})`;
  }
}

const MIN_BIGINT = "'-9223372036854775808'::bigint";
const MAX_BIGINT = "'9223372036854775807'::bigint";

function splitByBytes(rows: readonly FoundRow[]): FoundRow[][] {
  const groups: FoundRow[][] = [];
  let left = 0;
  for (const row of rows) {
    if (groups.length === 0 || left < row.bytes) {
      groups.push([]);
      left = MAX_BYTES_AT_ONCE;
    }
    left -= row.bytes;
    groups.at(-1)?.push(row);
  }
  return groups;
}
