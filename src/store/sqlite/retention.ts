import { isTerminal, TASK_STATES, type TaskState } from "../../model/state.ts";
import type { StoreStats } from "../contract.ts";
import type { Connection } from "./connection.ts";
import type { SqliteStatement } from "./driver.ts";
import type { Keys } from "./keys.ts";
import { ARTIFACTS_PART, MESSAGES_PER_PART, type Reader } from "./reader.ts";
import { STATE_CODES, stateOf } from "./rows.ts";
import { pragma, SCHEMA_VERSION } from "./schema.ts";
import type { Tally } from "./tally.ts";

const TERMINAL_CODES = TASK_STATES.filter(isTerminal).map((state) => STATE_CODES[state]);

/** What is done to tasks after they have ended, and what there is. */
export class Retention {
  readonly #connection: Connection;
  readonly #reader: Reader;
  readonly #keys: Keys;
  readonly #tally: Tally;
  readonly #whole: SqliteStatement<{ seq: number; number: number; scope: number; bytes: number }>;
  readonly #addPart: SqliteStatement<object>;
  readonly #dropLog: SqliteStatement<object>;
  readonly #setFloor: SqliteStatement<object>;
  readonly #ended: SqliteStatement<{ seq: number; scope: number; state: number; number: number; bytes: number }>;
  readonly #counters: SqliteStatement<{ state: number; n: number }>;
  readonly #events: SqliteStatement<{ events: number }>;

  constructor(connection: Connection, reader: Reader, keys: Keys, tally: Tally) {
    const { driver } = connection;
    this.#connection = connection;
    this.#reader = reader;
    this.#keys = keys;
    this.#tally = tally;
    this.#whole = driver.prepare(
      `SELECT seq, number, scope, bytes FROM task INDEXED BY task_whole
       WHERE open = 0 AND floor = 0 AND status_ts < ? ORDER BY status_ts LIMIT ?`,
    );
    this.#addPart = driver.prepare("INSERT INTO snapshot (task, part, body) VALUES (?, ?, ?)");
    this.#dropLog = driver.prepare("DELETE FROM segment WHERE task = ?");
    this.#setFloor = driver.prepare("UPDATE task SET floor = number, message_segment = NULL, bytes = ? WHERE seq = ?");
    // From the counters to the tasks: no index of its own is needed for what is rarely asked.
    this.#ended = driver.prepare(
      `SELECT t.seq, t.scope, t.state, t.number, t.bytes FROM counter c CROSS JOIN task t INDEXED BY task_by_state
         ON t.scope = c.scope AND t.state = c.state
       WHERE c.n > 0 AND c.state IN (${TERMINAL_CODES.join(", ")}) AND t.status_ts < ? LIMIT ?`,
    );
    this.#counters = driver.prepare("SELECT state, sum(n) AS n FROM counter GROUP BY state HAVING sum(n) > 0");
    this.#events = driver.prepare("SELECT events FROM store");
  }

  compact(endedBefore: number, max: number): number {
    const tasks = this.#whole.all(endedBefore, max);
    if (tasks.length === 0) return 0;
    this.#tally.commit(() => {
      for (const { seq, number, scope, bytes } of tasks) this.#tally.grow(scope, this.#compactOne(seq, number) - bytes);
    });
    return tasks.length;
  }

  /** Returns how many bytes are left of the task. */
  #compactOne(seq: number, number: number): number {
    const { artifacts, history = [] } = this.#reader.fold(seq, number).toTask();
    let bytes = 0;
    const keep = (part: number, content: unknown) => {
      const body = JSON.stringify(content);
      bytes += Buffer.byteLength(body);
      this.#addPart.run(seq, part, body);
    };
    this.#dropLog.run(seq);
    if (artifacts !== undefined) keep(ARTIFACTS_PART, artifacts);
    for (let start = 0; start < history.length; start += MESSAGES_PER_PART) {
      keep(1 + start / MESSAGES_PER_PART, history.slice(start, start + MESSAGES_PER_PART));
    }
    this.#setFloor.run(bytes, seq);
    return bytes;
  }

  prune(endedBefore: number, max: number): number {
    return this.#tally.commit(() => {
      this.#keys.forgetExpired();
      const ended = this.#ended.all(endedBefore, max);
      for (const task of ended) this.#tally.remove({ ...task, state: stateOf(task.state) });
      return ended.length;
    });
  }

  stats(): StoreStats {
    const byState: Partial<Record<TaskState, number>> = {};
    let tasks = 0;
    for (const { state, n } of this.#counters.all()) {
      byState[stateOf(state)] = n;
      tasks += n;
    }
    const { driver } = this.#connection;
    return {
      tasks,
      byState,
      events: this.#events.get()?.events ?? 0,
      bytes: pragma(driver, "page_count") * pragma(driver, "page_size"),
      schemaVersion: SCHEMA_VERSION,
    };
  }
}
