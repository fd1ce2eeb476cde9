import type { LogEntry } from "../../model/event.ts";
import { TaskFold } from "../../model/fold.ts";
import type { JsonObject } from "../../model/json.ts";
import type { Message } from "../../model/message.ts";
import type { Artifact, Task, TaskStatus } from "../../model/task.ts";
import type { Cursor, CursorRead, Snapshot, SnapshotOptions, TaskHead } from "../contract.ts";
import { StoreError } from "../errors.ts";
import { ARTIFACTS_PART, MESSAGES_PER_PART, readNewestMessages } from "../history.ts";
import { decodeSegment } from "../segment.ts";
import { parseJson, toText } from "../stored-text.ts";
import type { Connection } from "./connection.ts";
import { fallBackIfDamaged, salvage } from "./damage.ts";
import type { SqliteStatement } from "./driver.ts";
import {
  columns,
  decodeJson,
  decodeText,
  fromText,
  keyOf,
  LOG_NUMBER,
  numberIn,
  ofTask,
  PACKED_HEAD,
  packedTask,
  type StoredText,
  type TaskRow,
  toHead,
  toTaskRows,
} from "./rows.ts";

interface SegmentsRow {
  /** Null if one between them is missing. */
  readonly first: number | null;
  /** Null if there are none. */
  readonly body: StoredText | null;
}

interface PositionRow {
  readonly seq: number;
  readonly scope: number;
  readonly number: number;
  readonly floor: number;
}

const NO_LIMIT = -1;

const SELECT_SEGMENTS = `SELECT first, ${numberIn("key")} AS last, body FROM segment`;

/** Segments that follow each other, as one: a line per entry is what they have inside and between them. */
const SELECT_JOINED = `SELECT
  CASE WHEN sum(last - first + 1) = max(last) - min(first) + 1 THEN CAST(min(first) AS NUMERIC) END AS first,
  CAST(group_concat(body, char(10)) AS BLOB) AS body`;

/** Everything that is asked about one task. */
export class Reader {
  readonly #connection: Connection;
  readonly #head: SqliteStatement<{ head: StoredText }>;
  readonly #task: SqliteStatement<{ task: StoredText }>;
  readonly #position: SqliteStatement<PositionRow>;
  readonly #following: SqliteStatement<SegmentsRow>;
  readonly #upTo: SqliteStatement<SegmentsRow>;
  readonly #withMessages: SqliteStatement<{ body: StoredText | null }>;
  readonly #artifactsPart: SqliteStatement<{ body: StoredText }>;
  readonly #historyParts: SqliteStatement<{ body: StoredText }>;
  readonly #memory: SqliteStatement<{ key: StoredText; value: StoredText }>;

  constructor(connection: Connection) {
    const { driver } = connection;
    this.#connection = connection;
    this.#head = driver.prepare(`SELECT CAST(${PACKED_HEAD} AS BLOB) AS head FROM task WHERE id = ?`);
    this.#task = driver.prepare(`SELECT CAST(${packedTask("status_ts")} AS BLOB) AS task FROM task WHERE seq = ?`);
    this.#position = driver.prepare(
      `SELECT ${columns(`seq, scope, ${LOG_NUMBER} AS number, floor`)} FROM task WHERE id = ?`,
    );
    this.#following = driver.prepare(
      `${SELECT_JOINED} FROM (${SELECT_SEGMENTS} WHERE ${ofTask("?", "?")} ORDER BY key LIMIT ?)`,
    );
    this.#upTo = driver.prepare(
      `${SELECT_JOINED} FROM (${SELECT_SEGMENTS} WHERE ${ofTask("?")} AND first <= ? ORDER BY key)`,
    );
    this.#withMessages = driver.prepare(
      `WITH RECURSIVE chain (task, first, body, earlier) AS (
         SELECT CAST(? AS INTEGER), first, body, earlier FROM segment WHERE key = ${keyOf("?", "?")}
         UNION ALL
         SELECT chain.task, s.first, s.body, s.earlier FROM chain
           JOIN segment s ON s.key = ${keyOf("chain.task", "chain.earlier")}
         LIMIT ?
       ) SELECT CAST(group_concat(body, char(10)) AS BLOB) AS body FROM (SELECT body FROM chain ORDER BY first)`,
    );
    this.#artifactsPart = driver.prepare(
      `SELECT ${columns("", "body")} FROM snapshot WHERE key = ${keyOf("?", `${ARTIFACTS_PART}`)}`,
    );
    this.#historyParts = driver.prepare(
      `SELECT ${columns("", "body")} FROM snapshot WHERE ${ofTask("?", `${ARTIFACTS_PART}`)} ORDER BY key DESC LIMIT ?`,
    );
    this.#memory = driver.prepare(
      `SELECT ${columns("", "key, value")} FROM memory WHERE task = (SELECT seq FROM task WHERE id = ?)`,
    );
  }

  head(id: string): TaskHead | undefined {
    const row = this.#head.get(toText(id));
    return row && toHead(row.head, (scope) => this.#connection.scopeOf(scope));
  }

  numbers(ids: readonly string[]): number[] {
    const numberOf = (id: string) => this.#position.get(toText(id))?.number ?? 0;
    return fallBackIfDamaged(
      () => ids.map(numberOf),
      () =>
        ids.map(
          (id) => salvage([id], numberOf, (_, error) => this.#connection.reportDamage(`task ${id}`, error))[0] ?? 0,
        ),
    );
  }

  memory(id: string): Map<string, string> {
    return new Map(this.#memory.all(toText(id)).map(({ key, value }) => [fromText(key), fromText(value)]));
  }

  read(cursors: readonly Cursor[], limit: number): CursorRead[] {
    return cursors.map((cursor) => this.#readOne(cursor, Math.max(limit, 1)));
  }

  #readOne({ id, after }: Cursor, limit: number): CursorRead {
    const task = this.#position.get(toText(id));
    if (task === undefined) return { kind: "missing" };
    if (after < task.floor) return { kind: "compacted", floor: task.floor };
    if (after >= task.number) return { kind: "entries", entries: [] };
    return {
      kind: "entries",
      entries: toEntries(this.#following.get(task.seq, after, task.seq, toSqlLimit(limit)), after, limit),
    };
  }

  snapshot(id: string, options: SnapshotOptions): Snapshot | undefined {
    const { at, artifacts, history } = options;
    const scope = options.scope && this.#connection.findScope(options.scope);
    const place = this.#position.get(toText(id));
    if (place === undefined || (options.scope !== undefined && place.scope !== scope)) return undefined;
    const { seq, floor } = place;
    const isNow = at === undefined || at >= place.number || at < floor;
    const number = isNow ? place.number : Math.max(at, 1);
    // A log that is whole gives all there is to know; the rest of the row is not needed then.
    if (isNow && !(artifacts && floor === 0)) return { task: this.toTask(this.rowOf(seq), options), number };
    return { task: this.fold(seq, number, history).toTask({ historyLength: history, artifacts }), number };
  }

  /** Of a task that an index names. */
  rowOf(seq: number): TaskRow {
    const [row] = toTaskRows(this.#task.get(seq)?.task ?? null);
    if (row === undefined) throw new StoreError("damaged", `The table has no task number ${seq}.`);
    return row;
  }

  /** The task as it is now, read no further than asked. */
  toTask(row: TaskRow, { history, artifacts }: { readonly history: number; readonly artifacts: boolean }): Task {
    if (artifacts && row.floor === 0) {
      return this.fold(row.seq, row.number, history).toTask({ historyLength: history, artifacts });
    }
    const status = parseJson(row.status) as TaskStatus;
    const messages = history <= 0 ? [] : this.#newestMessages(row, history, status.message !== undefined);
    const kept = artifacts ? this.#artifactsPart.get(row.seq) : undefined;
    return {
      id: row.id,
      contextId: row.contextId,
      status,
      artifacts: kept === undefined ? undefined : (decodeJson(kept.body) as Artifact[]),
      history: messages.length > 0 ? messages : undefined,
      metadata: row.metadata === undefined ? undefined : (parseJson(row.metadata) as JsonObject),
    };
  }

  fold(seq: number, upTo: number, historyLimit: number = Number.POSITIVE_INFINITY): TaskFold {
    const fold = new TaskFold(historyLimit);
    for (const entry of toEntries(this.#upTo.get(seq, seq, upTo), 0, upTo)) fold.apply(entry);
    if (fold.number !== upTo) throw new StoreError("damaged", `The log ends at ${fold.number} and not at ${upTo}.`);
    return fold;
  }

  #newestMessages(row: TaskRow, count: number, currentHasMessage: boolean): readonly Message[] {
    if (row.floor > 0) {
      const parts = this.#historyParts.all(row.seq, row.seq, toSqlLimit(Math.ceil(count / MESSAGES_PER_PART) + 1));
      return parts
        .reverse()
        .flatMap(({ body }) => decodeJson(body) as Message[])
        .slice(-count);
    }
    if (row.messageSegment === undefined) return [];
    // Each of them brings at least one message, and one message may be that of the current status.
    const body = this.#withMessages.get(row.seq, row.seq, row.messageSegment, toSqlLimit(count + 1))?.body ?? null;
    return body === null ? [] : readNewestMessages(decodeText(body), count, currentHasMessage);
  }
}

function toEntries(segments: SegmentsRow | undefined, after: number, limit: number): LogEntry[] {
  const { first = null, body = null } = segments ?? {};
  if (body === null) return [];
  if (first === null) throw new StoreError("damaged", "A part of the log is missing.");
  return decodeSegment(first, decodeText(body), after, limit);
}

function toSqlLimit(count: number): number {
  return Number.isSafeInteger(count) ? count : NO_LIMIT;
}
