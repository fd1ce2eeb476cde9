import type { Artifact } from "../../model/artifact.ts";
import type { LogEntry } from "../../model/event.ts";
import { TaskFold } from "../../model/fold.ts";
import type { JsonObject } from "../../model/json.ts";
import type { Message } from "../../model/message.ts";
import type { Task, TaskStatus } from "../../model/task.ts";
import type { Cursor, CursorRead, Snapshot, SnapshotOptions, TaskHead } from "../contract.ts";
import { decodeSegment } from "../segment.ts";
import type { Connection } from "./connection.ts";
import type { SqliteStatement } from "./driver.ts";
import { newestMessages } from "./history.ts";
import { TASK_COLUMNS, type TaskRow, toHead } from "./rows.ts";
import { fromText, toText } from "./text.ts";

interface SegmentRow {
  readonly first: number;
  readonly body: string;
}

/** A compacted history is kept in pieces of this many messages, so that its end can be read alone. */
export const MESSAGES_PER_PART = 64;
/** Part of a snapshot that holds the artifacts; the history's pieces follow from 1. */
export const ARTIFACTS_PART = 0;

const ALL = -1;

/** Everything that is asked about one task. */
export class Reader {
  readonly #connection: Connection;
  readonly #task: SqliteStatement<TaskRow>;
  readonly #position: SqliteStatement<{ seq: number; number: number; floor: number }>;
  readonly #following: SqliteStatement<SegmentRow>;
  readonly #upTo: SqliteStatement<SegmentRow>;
  readonly #withMessages: SqliteStatement<SegmentRow>;
  readonly #artifactsPart: SqliteStatement<{ body: string }>;
  readonly #historyParts: SqliteStatement<{ body: string }>;
  readonly #memory: SqliteStatement<{ key: string; value: string }>;

  constructor(connection: Connection) {
    const { driver } = connection;
    this.#connection = connection;
    this.#task = driver.prepare(`SELECT ${TASK_COLUMNS} FROM task WHERE id = ?`);
    this.#position = driver.prepare("SELECT seq, number, floor FROM task WHERE id = ?");
    this.#following = driver.prepare(
      "SELECT first, body FROM segment WHERE task = ? AND last > ? ORDER BY last LIMIT ?",
    );
    this.#upTo = driver.prepare("SELECT first, body FROM segment WHERE task = ? AND first <= ? ORDER BY last");
    this.#withMessages = driver.prepare(
      `WITH RECURSIVE chain (task, first, body, earlier) AS (
         SELECT task, first, body, earlier FROM segment WHERE task = ? AND last = ?
         UNION ALL
         SELECT s.task, s.first, s.body, s.earlier FROM chain
           JOIN segment s ON s.task = chain.task AND s.last = chain.earlier
       ) SELECT first, body FROM chain LIMIT ?`,
    );
    this.#artifactsPart = driver.prepare(`SELECT body FROM snapshot WHERE task = ? AND part = ${ARTIFACTS_PART}`);
    this.#historyParts = driver.prepare(
      `SELECT body FROM snapshot WHERE task = ? AND part > ${ARTIFACTS_PART} ORDER BY part DESC LIMIT ?`,
    );
    this.#memory = driver.prepare("SELECT key, value FROM memory WHERE task = (SELECT seq FROM task WHERE id = ?)");
  }

  head(id: string): TaskHead | undefined {
    const row = this.#task.get(toText(id));
    return row === undefined ? undefined : toHead(row, this.#connection.scopeOf(row.scope));
  }

  numbers(ids: readonly string[]): number[] {
    return ids.map((id) => this.#position.get(toText(id))?.number ?? 0);
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
    const entries: LogEntry[] = [];
    if (after < task.number) {
      for (const { first, body } of this.#following.all(task.seq, after, bound(limit))) {
        entries.push(...decodeSegment(first, body, after, limit - entries.length));
        if (entries.length >= limit) break;
      }
    }
    return { kind: "entries", entries };
  }

  snapshot(id: string, options: SnapshotOptions): Snapshot | undefined {
    const { at } = options;
    const scope = options.scope && this.#connection.findScope(options.scope);
    const row = this.#task.get(toText(id));
    if (row === undefined || (options.scope !== undefined && row.scope !== scope)) return undefined;
    if (at === undefined || at >= row.number || at < row.floor) {
      return { task: this.toTask(row, options), number: row.number };
    }
    const number = Math.max(at, 1);
    const task = this.fold(row.seq, number, options.history);
    return { task: task.toTask({ historyLength: options.history, artifacts: options.artifacts }), number };
  }

  /** The task as it is now, read no further than asked. */
  toTask(row: TaskRow, { history, artifacts }: { readonly history: number; readonly artifacts: boolean }): Task {
    if (artifacts && row.floor === 0) {
      return this.fold(row.seq, row.number, history).toTask({ historyLength: history, artifacts });
    }
    const status = JSON.parse(row.status) as TaskStatus;
    const messages = history <= 0 ? [] : this.#newestMessages(row, history, status.message !== undefined);
    const kept = artifacts ? this.#artifactsPart.get(row.seq) : undefined;
    return {
      id: fromText(row.id),
      contextId: fromText(row.context),
      status,
      ...(kept === undefined ? undefined : { artifacts: JSON.parse(kept.body) as Artifact[] }),
      ...(messages.length > 0 ? { history: messages } : undefined),
      ...(row.metadata === null ? undefined : { metadata: JSON.parse(row.metadata) as JsonObject }),
    };
  }

  fold(seq: number, upTo: number, historyLimit: number = Number.POSITIVE_INFINITY): TaskFold {
    const fold = new TaskFold(historyLimit);
    for (const { first, body } of this.#upTo.all(seq, upTo)) {
      for (const entry of decodeSegment(first, body, 0, upTo - first + 1)) fold.apply(entry);
    }
    return fold;
  }

  #newestMessages(row: TaskRow, count: number, currentHasMessage: boolean): readonly Message[] {
    if (row.floor > 0) {
      const parts = this.#historyParts.all(row.seq, bound(Math.ceil(count / MESSAGES_PER_PART) + 1));
      return parts
        .reverse()
        .flatMap(({ body }) => JSON.parse(body) as Message[])
        .slice(-count);
    }
    if (row.message_segment === null) return [];
    // Each of them brings at least one message, and one message may be that of the current status.
    const segments = this.#withMessages.all(row.seq, row.message_segment, bound(count + 1));
    return newestMessages(segments, count, currentHasMessage);
  }
}

function bound(count: number): number {
  return Number.isSafeInteger(count) ? count : ALL;
}
