import type { TaskState } from "../../model/task.ts";
import { STATE_CODES, toText } from "../stored-text.ts";
import type { Connection } from "./connection.ts";
import { commitAll, fallBackIfDamaged } from "./damage.ts";
import type { Deliveries } from "./deliveries.ts";
import type { SqliteStatement } from "./driver.ts";
import { columns, numberIn, ofTask } from "./rows.ts";

interface LogGrowth {
  readonly owner: string;
  readonly bytes: number;
  readonly events: number;
}

/** A task whose log is ahead of its row, and by how much. */
interface BehindRow {
  readonly seq: number;
  readonly scope: number;
  readonly bytes: number;
  readonly events: number;
}

interface RemovedTask {
  readonly seq: number;
  readonly scope: number;
  readonly state: TaskState;
  readonly number: number;
  readonly bytes: number;
}

/** What logs contain and the rows of their tasks, and so the counters on disk, do not include yet. */
class LogsAhead {
  readonly #tasks = new Map<number, LogGrowth>();
  readonly #bytesByOwner = new Map<string, number>();
  events = 0;

  bytesOf(owner: string): number {
    return this.#bytesByOwner.get(owner) ?? 0;
  }

  add(seq: number, { owner, bytes, events }: LogGrowth): void {
    const before = this.#tasks.get(seq);
    this.#tasks.set(seq, { owner, bytes: (before?.bytes ?? 0) + bytes, events: (before?.events ?? 0) + events });
    this.#count(owner, bytes, events);
  }

  remove(seq: number): void {
    const known = this.#tasks.get(seq);
    if (known === undefined) return;
    this.#tasks.delete(seq);
    this.#count(known.owner, -known.bytes, -known.events);
  }

  #count(owner: string, bytes: number, events: number): void {
    this.events += events;
    const sum = this.bytesOf(owner) + bytes;
    if (sum === 0) this.#bytesByOwner.delete(owner);
    else this.#bytesByOwner.set(owner, sum);
  }
}

/**
 * What a commit adds up to: the store's stamp, the number of events and the counters of tasks, each written once
 * however many tasks the commit touched.
 */
export class CommitCounters {
  readonly #connection: Connection;
  readonly #deliveries: Deliveries;
  readonly #changes = new Map<string, { scope: number; state: number; by: number }>();
  /** Bytes by scope. */
  readonly #growth = new Map<number, number>();
  readonly #addToCounter: SqliteStatement<object>;
  readonly #addToUsage: SqliteStatement<object>;
  readonly #usage: SqliteStatement<{ bytes: number }>;
  readonly #advance: SqliteStatement<object>;
  readonly #behind: SqliteStatement<BehindRow>;
  readonly #raise: SqliteStatement<object>;
  readonly #removals: readonly SqliteStatement<object>[];
  readonly #keyedRemovals: readonly SqliteStatement<object>[];
  readonly #ahead = new LogsAhead();
  /** Logs that this commit adds to, and rows that it brings up to their logs. */
  #grown: (readonly [seq: number, LogGrowth])[] = [];
  #caughtUp: number[] = [];
  #touched = false;
  readonly #readStamp: () => number;
  #stamp: number;
  #viewed: number;
  #mayHavePast: boolean;
  /** Events this commit adds. */
  events = 0;

  constructor(connection: Connection, deliveries: Deliveries) {
    const { driver } = connection;
    this.#connection = connection;
    this.#deliveries = deliveries;
    this.#addToCounter = driver.prepare(
      "INSERT INTO counter (scope, state, n) VALUES (?, ?, ?) ON CONFLICT (scope, state) DO UPDATE SET n = n + excluded.n",
    );
    this.#addToUsage = driver.prepare(
      "INSERT INTO owner_usage (owner, bytes) VALUES (?, ?) ON CONFLICT (owner) DO UPDATE SET bytes = bytes + excluded.bytes",
    );
    this.#usage = driver.prepare(`SELECT ${columns("bytes")} FROM owner_usage WHERE owner = ?`);
    this.#advance = driver.prepare("UPDATE store SET stamp = ?, events = events + ?");
    this.#behind = driver.prepare(
      `SELECT ${columns("seq, scope")}, ${numberIn("max(key)")} - t.number AS events, sum(length(CAST(body AS BLOB))) AS bytes
       FROM task t INDEXED BY task_open CROSS JOIN segment ON ${ofTask("t.seq", "t.number")}
       WHERE t.open = 1 GROUP BY t.seq`,
    );
    this.#raise = driver.prepare("UPDATE task SET number = number + ?, bytes = bytes + ? WHERE seq = ?");
    this.#removals = [
      ...["memory", "past_position"].map((table) => driver.prepare(`DELETE FROM ${table} WHERE task = ?`)),
      driver.prepare("DELETE FROM task WHERE seq = ?"),
    ];
    this.#keyedRemovals = ["segment", "snapshot"].map((table) =>
      driver.prepare(`DELETE FROM ${table} WHERE ${ofTask("?")}`),
    );
    const stamp = driver.prepare<{ stamp: number }>(`SELECT ${columns("stamp")} FROM store`);
    this.#readStamp = () => stamp.get()?.stamp ?? 0;
    this.#stamp = this.#readStamp();
    // An earlier process may have begun lists at any commit.
    this.#viewed = this.#stamp;
    this.#mayHavePast = this.#stamp > 0;
  }

  /** The newest commit, from now on the view of a list. Read from the file: another connection may just have made it. */
  beginView(): number {
    this.#mayHavePast = true;
    this.#viewed = this.#readStamp();
    return this.#viewed;
  }

  /** Whether there may be past positions. */
  get mayHavePast(): boolean {
    return this.#mayHavePast;
  }

  /** Whether a list of several pages began since the commit; if not, no list shows what the commit put anywhere. */
  isViewed(stamp: number): boolean {
    return stamp <= this.#viewed;
  }

  /** The commit that is being made. */
  get nextStamp(): number {
    return this.#stamp + 1;
  }

  /** `stamps`: 0 for a commit that no list can tell from the one before. `isOneStatement`: see `Connection.transact`. */
  commit<T>(work: () => T, stamps: 0 | 1 = 1, isOneStatement = false): T {
    this.#reset();
    const result = this.#connection.transact(() => this.#collect(work, stamps), isOneStatement);
    this.#settle(stamps);
    return result;
  }

  /**
   * A commit that another connection makes of the statements; `settle` is to be called when it has, `abandon` if it is
   * not known to have. No other may come between.
   */
  plan<T>(work: () => T) {
    // A list that begins meanwhile has to find what the commit moves.
    this.beginView();
    this.#reset();
    const planned = this.#connection.plan(() => this.#collect(work, 1));
    const abandon = () => {
      this.#stamp = this.#readStamp();
    };
    return { ...planned, settle: () => this.#settle(1), abandon };
  }

  #reset(): void {
    this.#changes.clear();
    this.#growth.clear();
    this.#grown = [];
    this.#caughtUp = [];
    this.#touched = false;
    this.events = 0;
  }

  #collect<T>(work: () => T, stamps: number): T {
    const made = work();
    if (this.#touched) this.#flush(stamps);
    return made;
  }

  #settle(stamps: number): void {
    for (const seq of this.#caughtUp) this.#ahead.remove(seq);
    for (const [seq, growth] of this.#grown) this.#ahead.add(seq, growth);
    if (this.#touched) this.#stamp += stamps;
    if (this.#touched || this.#grown.length > 0) this.#connection.recordWrite();
  }

  /** The commit changes something. */
  markChanged(): void {
    this.#touched = true;
  }

  addTasks(scope: number, state: TaskState, by: number): void {
    this.#touched = true;
    const code = STATE_CODES[state];
    const key = `${scope} ${code}`;
    const known = this.#changes.get(key);
    if (known === undefined) this.#changes.set(key, { scope, state: code, by });
    else known.by += by;
  }

  /** A task of the scope takes up more now, or less. */
  addBytes(scope: number, bytes: number): void {
    this.#touched = true;
    this.#growth.set(scope, (this.#growth.get(scope) ?? 0) + bytes);
  }

  /** Only the log of the task changes. */
  growLog(seq: number, scope: number, bytes: number, events: number): void {
    this.#grown.push([seq, { owner: this.#connection.scopeOf(scope).owner, bytes, events }]);
  }

  /** The row of the task, and with it the counters, now include its whole log. */
  catchUp(seq: number): void {
    this.#caughtUp.push(seq);
  }

  /** Brings the rows of all tasks up to their logs: after a process that was killed, and before this one closes the file. */
  catchUpAll(): void {
    const rows = fallBackIfDamaged(
      () => this.#behind.all(),
      (error) => {
        this.#connection.reportDamage("the index of leases", error);
        return [];
      },
    );
    const commit = (some: readonly BehindRow[]) =>
      this.commit(() => {
        for (const { seq, scope, bytes, events } of some) {
          this.#raise.run(events, bytes, seq);
          this.addBytes(scope, bytes);
          this.events += events;
          this.catchUp(seq);
        }
      }, 0);
    commitAll(rows, commit, ({ seq }, error) => this.#connection.reportDamage(`task number ${seq}`, error));
  }

  get eventsAhead(): number {
    return this.#ahead.events;
  }

  storedBytes(owner: string): number {
    return (this.#usage.get(toText(owner))?.bytes ?? 0) + this.#ahead.bytesOf(owner);
  }

  /** Deletes a task with all it has. */
  removeTask({ seq, scope, state, number, bytes }: RemovedTask): void {
    for (const removal of this.#keyedRemovals) removal.run(seq, seq);
    for (const removal of this.#removals) removal.run(seq);
    this.#deliveries.deleteAll(seq);
    this.catchUp(seq);
    this.addTasks(scope, state, -1);
    this.addBytes(scope, -bytes);
    this.events -= number;
  }

  #flush(stamps: number): void {
    for (const { scope, state, by } of this.#changes.values()) {
      if (by !== 0) this.#addToCounter.run(scope, state, by);
    }
    for (const [scope, bytes] of this.#growth) {
      if (bytes !== 0) this.#addToUsage.run(toText(this.#connection.scopeOf(scope).owner), bytes);
    }
    this.#advance.run(this.#stamp + stamps, this.events);
  }
}
