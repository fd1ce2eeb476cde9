import type { TaskState } from "../../model/task.ts";
import type { Connection } from "./connection.ts";
import type { Deliveries } from "./deliveries.ts";
import type { SqliteStatement } from "./driver.ts";
import { columns, STATE_CODES, toText } from "./rows.ts";

interface RemovedTask {
  readonly seq: number;
  readonly scope: number;
  readonly state: TaskState;
  readonly number: number;
  readonly bytes: number;
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
  readonly #removals: readonly SqliteStatement<object>[];
  #touched = false;
  #stamp: number;
  #viewed: number;
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
    this.#removals = [
      ...["segment", "snapshot", "memory"].map((table) => driver.prepare(`DELETE FROM ${table} WHERE task = ?`)),
      driver.prepare("DELETE FROM task WHERE seq = ?"),
    ];
    this.#stamp = driver.prepare<{ stamp: number }>(`SELECT ${columns("stamp")} FROM store`).get()?.stamp ?? 0;
    // An earlier process may have begun lists at any commit.
    this.#viewed = this.#stamp;
  }

  /** The newest commit, from now on the view of a list. */
  beginView(): number {
    this.#viewed = this.#stamp;
    return this.#stamp;
  }

  /** Whether a list of several pages began since the commit; if not, no list shows what the commit put anywhere. */
  isViewed(stamp: number): boolean {
    return stamp <= this.#viewed;
  }

  /** The commit that is being made. */
  get nextStamp(): number {
    return this.#stamp + 1;
  }

  commit<T>(work: () => T): T {
    this.#changes.clear();
    this.#growth.clear();
    this.#touched = false;
    this.events = 0;
    const result = this.#connection.transact(() => {
      const made = work();
      if (this.#touched) this.#flush();
      return made;
    });
    if (this.#touched) {
      this.#stamp++;
      this.#connection.recordWrite();
    }
    return result;
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

  storedBytes(owner: string): number {
    return this.#usage.get(toText(owner))?.bytes ?? 0;
  }

  /** Deletes a task with all it has. */
  removeTask({ seq, scope, state, number, bytes }: RemovedTask): void {
    for (const removal of this.#removals) removal.run(seq);
    this.#deliveries.deleteAll(seq);
    this.addTasks(scope, state, -1);
    this.addBytes(scope, -bytes);
    this.events -= number;
  }

  #flush(): void {
    for (const { scope, state, by } of this.#changes.values()) {
      if (by !== 0) this.#addToCounter.run(scope, state, by);
    }
    for (const [scope, bytes] of this.#growth) {
      if (bytes !== 0) this.#addToUsage.run(toText(this.#connection.scopeOf(scope).owner), bytes);
    }
    this.#advance.run(this.nextStamp, this.events);
  }
}
