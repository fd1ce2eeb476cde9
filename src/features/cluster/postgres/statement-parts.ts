/** Values of one column of all rows that a statement is given. */
export interface Column<Row> {
  readonly name: string;
  readonly type: "bigint" | "smallint" | "integer" | "boolean" | "text" | "xid8";
  readonly of: (row: Row) => unknown;
}

/**
 * `unnest` of one array per column, with values to match. `at` is the place of the row among those given, from 1.
 * Numbers of the parameters begin after `before`.
 */
export function toInput<Row>(columns: readonly Column<Row>[], alias: string, before: number) {
  const arrays = columns.map(({ type }, index) => `$${before + index + 1}::${type}[]`);
  return {
    sql: `unnest(${arrays.join(", ")}) WITH ORDINALITY AS ${alias} (${columns.map(({ name }) => name).join(", ")}, at)`,
    width: columns.length,
    values: (rows: readonly Row[]) => columns.map((column) => rows.map(column.of)),
  };
}

/** A delivery that is registered with a write. */
export interface PutRow {
  /** Of the write that it belongs to, among those of the statement. */
  readonly write: number;
  readonly id: string;
  readonly route: string;
  readonly webhook: boolean;
  readonly address: string;
  readonly secret: string | null;
  readonly dialect: string;
  readonly wants: number;
  readonly lane: string;
  readonly holder: string | null;
  /** Of one that is new. */
  readonly cursor: number;
  /** Up to here its cursor must be for it to be due; after `wait` from now. */
  readonly dueBelow: number;
  readonly wait: number;
}

/** A part of the log beyond the first that the write adds. */
export interface SegmentRow {
  readonly write: number;
  readonly first: number;
  readonly last: number;
  readonly earlier: number | null;
  readonly terminal: boolean;
  readonly body: string;
}

const PUT = [
  { name: "write", type: "bigint", of: (row) => row.write },
  { name: "id", type: "text", of: (row) => row.id },
  { name: "route", type: "text", of: (row) => row.route },
  { name: "webhook", type: "boolean", of: (row) => row.webhook },
  { name: "address", type: "text", of: (row) => row.address },
  { name: "secret", type: "text", of: (row) => row.secret },
  { name: "dialect", type: "text", of: (row) => row.dialect },
  { name: "wants", type: "smallint", of: (row) => row.wants },
  { name: "lane", type: "text", of: (row) => row.lane },
  { name: "holder", type: "text", of: (row) => row.holder },
  { name: "cursor", type: "bigint", of: (row) => row.cursor },
  { name: "due_below", type: "bigint", of: (row) => row.dueBelow },
  { name: "wait", type: "bigint", of: (row) => row.wait },
] as const satisfies readonly Column<PutRow>[];

const SEGMENT = [
  { name: "write", type: "bigint", of: (row) => row.write },
  { name: "first", type: "bigint", of: (row) => row.first },
  { name: "last", type: "bigint", of: (row) => row.last },
  { name: "earlier", type: "bigint", of: (row) => row.earlier },
  { name: "terminal", type: "boolean", of: (row) => row.terminal },
  { name: "body", type: "text", of: (row) => row.body },
] as const satisfies readonly Column<SegmentRow>[];

/** The key that a write claims. */
export interface KeyColumns {
  readonly key: string | null;
  readonly fingerprint: string | null;
  readonly keyTtl: number | null;
}

export const KEY = [
  { name: "key", type: "text", of: (row) => row.key },
  { name: "fingerprint", type: "text", of: (row) => row.fingerprint },
  { name: "key_ttl", type: "bigint", of: (row) => row.keyTtl },
] as const satisfies readonly Column<KeyColumns>[];

/** What was made of a write that was accepted. */
export interface WrittenRow {
  readonly at: number;
  readonly seq: number;
  readonly moved?: string;
  readonly status_ts?: number;
  /** Routes whose deliveries are due. */
  readonly due?: readonly string[] | null;
  readonly put?: readonly WrittenDelivery[] | null;
}

/** Of the delivery with that id and group. */
interface WrittenDelivery {
  readonly id: string;
  readonly webhook: boolean;
  readonly place: number;
  readonly claim: number;
  readonly cursor: number;
  readonly created_at: number;
  readonly due: boolean;
}

export interface Additions {
  readonly segments: readonly SegmentRow[];
  readonly puts: readonly PutRow[];
}

/**
 * The parameters of a statement that writes tasks: `$1` is the flush, then the columns of the rows (`i`), of further segments (`g`) and
 * of deliveries (`p`); the tables of the last two are undefined if there are none.
 */
export function toParameters<Row>(
  flush: number,
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  { segments, puts }: Additions,
) {
  const input = toInput<Row>(columns, "i", 1);
  const more = segments.length > 0 ? toInput<SegmentRow>(SEGMENT, "g", 1 + input.width) : undefined;
  const put = puts.length > 0 ? toInput<PutRow>(PUT, "p", 1 + input.width + (more?.width ?? 0)) : undefined;
  return {
    input: input.sql,
    more: more?.sql,
    put: put?.sql,
    values: [flush, ...input.values(rows), ...(more?.values(segments) ?? []), ...(put?.values(puts) ?? [])],
  };
}

/** A key that another has taken since the condition was looked at fails the statement: then each write is made alone. */
export const addKeys = (from: string) => `, keys AS (
  INSERT INTO @idempotency AS k (scope, key, fingerprint, task_id, expires_at)
  SELECT scope, key, fingerprint, id, @now + key_ttl FROM ${from} WHERE key IS NOT NULL ORDER BY scope, key
  ON CONFLICT (scope, key) DO UPDATE SET fingerprint = excluded.fingerprint, task_id = excluded.task_id, reply = NULL,
    expires_at = CASE WHEN k.expires_at <= @now THEN excluded.expires_at END
)`;

export const KEY_IS_FREE = (scope: string) =>
  `(i.key IS NULL OR NOT EXISTS (SELECT 1 FROM @idempotency k WHERE k.scope = ${scope} AND k.key = i.key AND k.expires_at > @now))`;

export const addSegments = (from: string, more: string | undefined) => `, segments AS (
  INSERT INTO @segment (task, first, last, earlier, flush, terminal, body)
  SELECT seq, first, last, earlier, $1::bigint, terminal, body FROM ${from} WHERE body IS NOT NULL
  ${
    more === undefined
      ? ""
      : `UNION ALL SELECT w.seq, g.first, g.last, g.earlier, $1::bigint, g.terminal, g.body FROM ${from} w JOIN ${more} ON g.write = w.at`
  }
)`;

const COLUMNS_OF_PUT =
  "route = p.route, address = p.address, secret = p.secret, dialect = p.dialect, wants = p.wants, lane = p.lane";
const DUE_OF_PUT = (cursor: string) =>
  `CASE WHEN p.holder IS NOT NULL OR ${cursor} < p.due_below THEN @now + p.wait END`;
const PUT_RESULT = `d.id, (d.route = 'webhook') AS webhook, d.place, d.claim, d.cursor, d.created_at,
    coalesce(d.due_at <= @now AND d.holder IS NULL, false) AS due`;

export const addDeliveries = (from: string, puts: string, known: string) => `, put AS (
  INSERT INTO @delivery AS d
    (task, id, route, address, secret, dialect, wants, lane, holder, cursor, created_at, due_at)
  SELECT w.seq, p.id, p.route, p.address, p.secret, p.dialect, p.wants, p.lane, p.holder, p.cursor, @now,
    ${DUE_OF_PUT("p.cursor")}
  FROM ${puts} JOIN ${from} w ON w.at = p.write ${known} ORDER BY p.at
  RETURNING d.task, ${PUT_RESULT}
)`;

/** Those of the same id and group stay in their place. No other write registers meanwhile: it would change the version. */
export const replaceDeliveries = (from: string, puts: string) => `, replaced AS (
  UPDATE @delivery d SET ${COLUMNS_OF_PUT}, holder = p.holder, claim = d.claim + 1, attempts = 0, last_error = NULL,
    dead_at = NULL, due_at = ${DUE_OF_PUT("d.cursor")}
  FROM ${puts} JOIN ${from} w ON w.at = p.write
  WHERE d.task = w.seq AND d.id = p.id AND (d.route = 'webhook') = p.webhook
  RETURNING d.task, ${PUT_RESULT}
)`;

export const toPut = (tables: readonly string[]) =>
  `(SELECT json_agg(x) FROM (${tables
    .map((table) => `SELECT ${table}.* FROM ${table} WHERE ${table}.task = w.seq`)
    .join(" UNION ALL ")}) x) AS put`;
