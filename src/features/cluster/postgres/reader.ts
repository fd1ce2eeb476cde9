import { TaskFold } from "../../../core/model/fold.ts";
import { isObject, type JsonObject } from "../../../core/model/json.ts";
import type { Message } from "../../../core/model/message.ts";
import type { Log } from "../../../core/model/ports.ts";
import type { Artifact, Task, TaskStatus } from "../../../core/model/task.ts";
import type { Cursor, CursorRead, Snapshot, SnapshotOptions, TaskHead } from "../../../core/store/contract.ts";
import { StoreError } from "../../../core/store/errors.ts";
import { ARTIFACTS_PART, MESSAGES_PER_PART, readNewestMessages } from "../../../core/store/history.ts";
import { decodeSegment } from "../../../core/store/segment.ts";
import { parseJson, STATE_CODES, toText, unescapeText } from "../../../core/store/stored-text.ts";
import type { Database } from "./connection.ts";

/** How much of a task is read. */
interface Extent {
  readonly history: number;
  readonly artifacts: boolean;
}

/** What every row of a task has that becomes a `Task`. */
export interface TaskRow {
  readonly id: string;
  readonly context: string;
  readonly status: string;
  readonly metadata: string | null;
}

/** A task with as much of its log or its snapshot as was asked for. */
interface ContentRow extends TaskRow {
  readonly seq: number;
  readonly state: number;
  /** Of the task as it is given. */
  readonly number: number;
  /** The whole log, if the task has to be folded from it. */
  readonly log: string | null;
  /** The newest segments that bring messages. */
  readonly messages: string | null;
  readonly artifacts: string | null;
  /** The newest pieces of a compacted history, as JSON. */
  readonly history: string | null;
}

export interface HeadRow {
  readonly agent: string;
  readonly tenant: string;
  readonly owner: string;
  readonly id: string;
  readonly context: string;
  readonly status: string;
  readonly number: number;
  readonly floor: number;
  readonly fence: number;
  readonly node: string | null;
  readonly turn: number;
  readonly attempt: number;
  readonly cancel: boolean;
  readonly bytes: number;
  readonly dialect: string;
  readonly created_at: number;
}

/** Columns of `task t JOIN scope s` that `toHead` reads. */
export const HEAD_COLUMNS = `s.agent, s.tenant, s.owner, t.id, t.context, t.status, t.number, t.floor, t.fence, t.node,
  t.turn, t.attempt, t.cancel, t.bytes, t.dialect, t.created_at`;

/** Larger than any number of a log, and than any limit. */
const NO_LIMIT = 2 ** 31 - 1;

const WHOLE_LOG = "t.floor = 0 AND ($1::boolean OR $3::bigint < t.number)";
const UP_TO = "greatest(1, least($3::bigint, t.number))";

/** `$1`: with artifacts; `$2`: messages, at most; `$3`: at this number. All of it is of one moment. */
const SELECT_CONTENT = `SELECT t.seq, t.state, t.id, t.context, t.status, t.metadata,
  CASE WHEN t.floor = 0 THEN ${UP_TO} ELSE t.number END AS number,
  CASE WHEN ${WHOLE_LOG} THEN (
    SELECT string_agg(body, chr(10) ORDER BY last) FROM @segment WHERE task = t.seq AND first <= ${UP_TO}
  ) END AS log,
  CASE WHEN t.floor = 0 AND NOT (${WHOLE_LOG}) AND $2::bigint > 0 THEN (
    WITH RECURSIVE chain (first, body, earlier, depth) AS (
      SELECT first, body, earlier, 1 FROM @segment WHERE task = t.seq AND last = t.message_segment
      UNION ALL
      SELECT g.first, g.body, g.earlier, chain.depth + 1
        FROM chain JOIN @segment g ON g.task = t.seq AND g.last = chain.earlier WHERE chain.depth <= $2::bigint
    ) SELECT string_agg(body, chr(10) ORDER BY first) FROM chain
  ) END AS messages,
  CASE WHEN t.floor > 0 AND $1::boolean THEN (
    SELECT body FROM @snapshot WHERE task = t.seq AND part = ${ARTIFACTS_PART}
  ) END AS artifacts,
  CASE WHEN t.floor > 0 AND $2::bigint > 0 THEN (
    SELECT '[' || string_agg(body, ',' ORDER BY part) || ']' FROM (
      SELECT part, body FROM @snapshot WHERE task = t.seq AND part > ${ARTIFACTS_PART}
      ORDER BY part DESC LIMIT $2::bigint / ${MESSAGES_PER_PART} + 2
    ) newest
  ) END AS history
  FROM @task t`;

const SELECT_SNAPSHOT = `${SELECT_CONTENT} WHERE t.id = $4`;
const SELECT_SNAPSHOT_IN_SCOPE = `${SELECT_SNAPSHOT} AND t.scope =
  (SELECT id FROM @scope WHERE owner = $5 AND tenant = $6 AND agent = $7)`;
const SELECT_TASKS = `${SELECT_CONTENT} WHERE t.seq = ANY($4::bigint[])`;

const SELECT_ENTRIES = `SELECT t.number, t.floor, log.first, log.body
  FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS c (id, after, place)
  LEFT JOIN @task t ON t.id = c.id
  LEFT JOIN LATERAL (
    SELECT min(first) AS first, string_agg(body, chr(10) ORDER BY last) AS body FROM (
      SELECT first, last, body FROM @segment WHERE task = t.seq AND last > c.after ORDER BY last LIMIT $3::bigint
    ) following
  ) log ON c.after >= t.floor AND c.after < t.number
  ORDER BY c.place`;

const SELECT_NUMBERS = `SELECT coalesce(t.number, 0) AS number
  FROM unnest($1::text[]) WITH ORDINALITY AS asked (id, place) LEFT JOIN @task t ON t.id = asked.id ORDER BY asked.place`;

interface EntriesRow {
  /** Null for an unknown task. */
  readonly number: number | null;
  readonly floor: number;
  readonly first: number | null;
  readonly body: string | null;
}

/** Runs what decodes one row of many; undefined if what is stored cannot be decoded, which is reported. */
export type Readable = <T>(id: string, decode: () => T) => T | undefined;

/** One row that was changed by hand, or damaged, must not keep the others from being read. */
export function createReadable({ place }: Pick<Database, "place">, log: Log): Readable {
  const reported = new Set<string>();
  return (id, decode) => {
    try {
      return decode();
    } catch (error) {
      if (reported.size >= MAX_REPORTED) reported.clear();
      if (!reported.has(id)) log.error({ err: error, place, task: id }, "Damaged in the task store and left out.");
      reported.add(id);
      return undefined;
    }
  };
}

const MAX_REPORTED = 1_000;

/** Everything that is asked about tasks by their ids, one statement each. */
export function createReader({ query }: Pick<Database, "query">, readable: Readable) {
  async function tasks(seqs: readonly number[], extent: Extent): Promise<Map<number, { task: Task; state: number }>> {
    const values = [extent.artifacts, toLimit(extent.history), NO_LIMIT, seqs];
    const rows = await query<ContentRow>(SELECT_TASKS, values);
    const read = new Map<number, { task: Task; state: number }>();
    for (const row of rows) {
      const task = readable(row.id, () => contentToTask(row, extent));
      if (task !== undefined) read.set(row.seq, { task, state: row.state });
    }
    return read;
  }

  return {
    async head(id: string): Promise<TaskHead | undefined> {
      const text = `SELECT ${HEAD_COLUMNS} FROM @task t JOIN @scope s ON s.id = t.scope WHERE t.id = $1`;
      const [row] = await query<HeadRow>(text, [toText(id)]);
      return row && toHead(row);
    },

    async snapshot(id: string, options: SnapshotOptions): Promise<Snapshot | undefined> {
      const { at = NO_LIMIT, artifacts, history, scope } = options;
      const values = [artifacts, toLimit(history), Math.min(at, NO_LIMIT), toText(id)];
      const [row] = await (scope === undefined
        ? query<ContentRow>(SELECT_SNAPSHOT, values)
        : query<ContentRow>(SELECT_SNAPSHOT_IN_SCOPE, [
            ...values,
            ...[scope.owner, scope.tenant, scope.agent].map(toText),
          ]));
      return row && { task: contentToTask(row, options), number: row.number };
    },

    /** By their places in the table; those that are gone or cannot be read are left out. */
    tasks,

    async read(cursors: readonly Cursor[], limit: number): Promise<CursorRead[]> {
      if (cursors.length === 0) return [];
      const most = Math.max(limit, 1);
      const rows = await query<EntriesRow>(SELECT_ENTRIES, [
        cursors.map(({ id }) => toText(id)),
        cursors.map(({ after }) => after),
        toLimit(most),
      ]);
      return rows.map((row, index) => toRead(row, cursors[index]?.after ?? 0, most));
    },

    async numbers(ids: readonly string[]): Promise<number[]> {
      if (ids.length === 0) return [];
      const rows = await query<{ number: number }>(SELECT_NUMBERS, [ids.map(toText)]);
      return rows.map(({ number }) => number);
    },

    async memory(id: string): Promise<Map<string, string>> {
      const text = "SELECT key, value FROM @memory WHERE task = (SELECT seq FROM @task WHERE id = $1)";
      const rows = await query<{ key: string; value: string }>(text, [toText(id)]);
      return new Map(rows.map(({ key, value }) => [unescapeText(key), unescapeText(value)]));
    },
  };
}

export type Reader = ReturnType<typeof createReader>;

function toLimit(count: number): number {
  return Math.min(Math.max(count, 0), NO_LIMIT);
}

function toRead({ number, floor, first, body }: EntriesRow, after: number, limit: number): CursorRead {
  if (number === null) return { kind: "missing" };
  if (after < floor) return { kind: "compacted", floor };
  if (first === null || body === null) return { kind: "entries", entries: [] };
  return { kind: "entries", entries: decodeSegment(first, body, after, limit) };
}

export function toHead(row: HeadRow): TaskHead {
  return {
    agent: unescapeText(row.agent),
    tenant: unescapeText(row.tenant),
    owner: unescapeText(row.owner),
    id: unescapeText(row.id),
    contextId: unescapeText(row.context),
    status: parseStatus(row.status),
    number: row.number,
    floor: row.floor,
    fence: row.fence,
    node: row.node === null ? undefined : unescapeText(row.node),
    turn: row.turn,
    attempt: row.attempt,
    cancelRequested: row.cancel,
    bytes: row.bytes,
    dialect: unescapeText(row.dialect),
    createdAt: row.created_at,
  };
}

function parseStatus(text: string): TaskStatus {
  const status = parseJson(text);
  if (isObject(status) && Object.hasOwn(STATE_CODES, String(status.state))) return status as unknown as TaskStatus;
  throw new StoreError("damaged", "A status has no state.");
}

/** The task without its artifacts and its history. */
export function toBareTask({ id, context, status, metadata }: TaskRow): Task {
  return {
    id: unescapeText(id),
    contextId: unescapeText(context),
    status: parseStatus(status),
    metadata: metadata !== null ? (parseJson(metadata) as JsonObject) : undefined,
  };
}

function contentToTask(row: ContentRow, { history, artifacts }: Extent): Task {
  if (row.log !== null) return foldLog(row.log, row.number, history).toTask({ historyLength: history, artifacts });
  const { id, contextId, status, metadata } = toBareTask(row);
  const messages = history <= 0 ? [] : newestMessages(row, history, status.message !== undefined);
  return {
    id,
    contextId,
    status,
    artifacts: row.artifacts !== null ? (parseJson(row.artifacts) as Artifact[]) : undefined,
    history: messages.length > 0 ? messages : undefined,
    metadata,
  };
}

function newestMessages({ history, messages }: ContentRow, count: number, currentHasMessage: boolean): Message[] {
  if (history !== null) return (parseJson(history) as Message[][]).flat().slice(-count);
  return messages === null ? [] : readNewestMessages(messages, count, currentHasMessage);
}

/** Of a whole log, up to a number. */
export function foldLog(log: string, upTo: number, historyLimit: number = Number.POSITIVE_INFINITY): TaskFold {
  const fold = new TaskFold(historyLimit);
  for (const entry of decodeSegment(1, log, 0, upTo)) fold.apply(entry);
  if (fold.number !== upTo) throw new StoreError("damaged", `The log ends at ${fold.number} and not at ${upTo}.`);
  return fold;
}
