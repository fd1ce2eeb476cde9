import type { Clock } from "../../model/ports.ts";
import type { RecordPut, RecordQuery, RecordWrite, StoredRecord, WriteResult } from "../contract.ts";
import { toText } from "../stored-text.ts";
import type { Connection } from "./connection.ts";
import { salvage } from "./damage.ts";
import type { SqliteStatement } from "./driver.ts";
import { columns, fromText, type StoredText } from "./rows.ts";

interface RecordRow {
  readonly key: StoredText;
  readonly value: StoredText;
}

const ACCEPTED: WriteResult = { ok: true, number: 0, fence: 0 };

/** Small facts beside tasks. `written` rises within a space, so that the oldest records are found by index. */
export class Records {
  readonly #connection: Connection;
  readonly #clock: Clock;
  readonly #find: SqliteStatement<RecordRow>;
  readonly #first: SqliteStatement<RecordRow>;
  readonly #following: SqliteStatement<RecordRow>;
  readonly #add: SqliteStatement<object>;
  readonly #delete: SqliteStatement<object>;
  readonly #count: SqliteStatement<{ n: number }>;
  readonly #deleteOldest: SqliteStatement<object>;
  readonly #expire: SqliteStatement<object>;
  /** Records by space, where `keep` asked for it: counting them for every put would cost more the more there are. */
  readonly #counts = new Map<string, number>();
  #rollbacks = 0;

  constructor(connection: Connection, clock: Clock) {
    const { driver } = connection;
    this.#connection = connection;
    this.#clock = clock;
    const live = "(expires_at IS NULL OR expires_at > ?)";
    this.#find = driver.prepare(
      `SELECT ${columns("", "key, value")} FROM record WHERE space = ? AND key = ? AND ${live}`,
    );
    const page = (from: string) =>
      driver.prepare<RecordRow>(
        `SELECT ${columns("", "r.key, r.value")} FROM record r WHERE r.space = ? AND r.key ${from} ? AND ${live}
         ORDER BY r.key LIMIT ?`,
      );
    this.#first = page(">=");
    this.#following = page(">");
    this.#add = driver.prepare(
      `INSERT INTO record (space, key, value, expires_at, written) VALUES (?, ?, ?, ?,
         (SELECT coalesce(max(written), 0) + 1 FROM record WHERE space = ?))`,
    );
    this.#delete = driver.prepare("DELETE FROM record WHERE space = ? AND key = ?");
    this.#count = driver.prepare("SELECT count(*) AS n FROM record WHERE space = ?");
    this.#deleteOldest = driver.prepare(
      `DELETE FROM record WHERE space = ? AND written <=
         (SELECT written FROM record INDEXED BY record_by_age WHERE space = ? ORDER BY written LIMIT 1 OFFSET ?)`,
    );
    this.#expire = driver.prepare("DELETE FROM record WHERE expires_at <= ?");
  }

  /** Within a transaction. */
  write(write: RecordWrite): WriteResult {
    if (this.#rollbacks !== this.#connection.rollbacks) this.#counts.clear();
    this.#rollbacks = this.#connection.rollbacks;
    if (write.kind === "record-put") return this.#put(write);
    this.#remove(toText(write.space), toText(write.key));
    return ACCEPTED;
  }

  #put({ space, key, value, ttlMs, keep, ifValue }: RecordPut): WriteResult {
    if (ifValue !== undefined && ifValue !== (this.get(space, key) ?? null)) return { ok: false, refusal: "position" };
    const name = toText(space);
    this.#remove(name, toText(key));
    const expiresAt = ttlMs === undefined ? null : this.#clock.now() + ttlMs;
    this.#add.run(name, toText(key), toText(value), expiresAt, name);
    this.#changeCount(name, 1);
    if (keep === undefined) return ACCEPTED;
    const count = this.#counts.get(name) ?? this.#count.get(name)?.n ?? 0;
    if (count > keep) this.#deleteOldest.run(name, name, count - keep - 1);
    this.#counts.set(name, Math.min(count, keep));
    return ACCEPTED;
  }

  #remove(space: string, key: string): void {
    this.#changeCount(space, -this.#delete.run(space, key));
  }

  #changeCount(space: string, by: number): void {
    const count = this.#counts.get(space);
    if (count !== undefined) this.#counts.set(space, count + by);
  }

  get(space: string, key: string): string | undefined {
    const row = this.#find.get(toText(space), toText(key), this.#clock.now());
    return row === undefined ? undefined : fromText(row.value);
  }

  list(space: string, { after, limit }: RecordQuery): StoredRecord[] {
    const page = after === undefined ? this.#first : this.#following;
    const rows = page.all(toText(space), toText(after ?? ""), this.#clock.now(), limit);
    const toRecord = ({ key, value }: RecordRow) => ({ key: fromText(key), value: fromText(value) });
    return salvage(rows, toRecord, (_, error) => this.#connection.reportDamage(`records of ${space}`, error));
  }

  /** Within a transaction. */
  deleteExpired(): void {
    if (this.#expire.run(this.#clock.now()) > 0) this.#counts.clear();
  }
}
