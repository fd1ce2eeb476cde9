import type { AuthenticationInfo } from "../../model/operation.ts";
import type { Clock } from "../../model/ports.ts";
import type {
  OwnedPushConfig,
  PushConfigList,
  PushConfigQuery,
  PushRegistration,
  StoredPushConfig,
} from "../contract.ts";
import { hostOf } from "../rules.ts";
import type { Connection } from "./connection.ts";
import type { SqliteStatement } from "./driver.ts";
import { columns, decodeJson, fromText, type StoredText, toText } from "./rows.ts";

export interface PushConfigRow {
  readonly place: number;
  readonly id: StoredText;
  readonly url: StoredText;
  readonly token: StoredText | null;
  readonly authentication: StoredText | null;
  readonly dialect: StoredText;
  readonly created_at: number;
  readonly cursor: number;
}

/** Of `push_config c`. */
export const CONFIG_COLUMNS = columns(
  "c.place, c.created_at, c.cursor",
  "c.id, c.url, c.token, c.authentication, c.dialect",
);

/** Where the events of tasks are to be told. */
export class PushConfigs {
  readonly #connection: Connection;
  readonly #clock: Clock;
  readonly #task: SqliteStatement<{ seq: number; scope: number }>;
  readonly #find: SqliteStatement<PushConfigRow>;
  readonly #following: SqliteStatement<PushConfigRow>;
  readonly #put: SqliteStatement<{ due_at: number | null }>;
  readonly #follow: SqliteStatement<object>;
  readonly #delete: SqliteStatement<object>;
  readonly #forget: SqliteStatement<object>;
  /** False while nobody has registered anything: then no task that goes needs to be looked up here. */
  #any: boolean;

  constructor(connection: Connection, clock: Clock) {
    const { driver } = connection;
    this.#connection = connection;
    this.#clock = clock;
    this.#task = driver.prepare(`SELECT ${columns("seq, scope")} FROM task WHERE id = ?`);
    this.#find = driver.prepare(`SELECT ${CONFIG_COLUMNS} FROM push_config c WHERE c.task = ? AND c.id = ?`);
    this.#following = driver.prepare(
      `SELECT ${CONFIG_COLUMNS} FROM push_config c INDEXED BY push_config_by_place WHERE c.task = ? AND c.place > ?
       ORDER BY c.place LIMIT ?`,
    );
    this.#put = driver.prepare(
      `INSERT INTO push_config (task, id, url, token, authentication, dialect, created_at, cursor, host, due_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (task, id) DO UPDATE SET
         url = excluded.url, token = excluded.token, authentication = excluded.authentication,
         dialect = excluded.dialect, host = excluded.host, holder = NULL, claim = claim + 1, attempts = 0,
         last_error = NULL, dead_at = NULL,
         due_at = CASE WHEN cursor < ? THEN ? END
       RETURNING ${columns("due_at")}`,
    );
    this.#follow = driver.prepare("UPDATE task SET push = 1 WHERE seq = ? AND push = 0");
    this.#delete = driver.prepare("DELETE FROM push_config WHERE task = ? AND id = ?");
    this.#forget = driver.prepare("DELETE FROM push_config WHERE task = ?");
    this.#any = driver.prepare("SELECT 1 FROM push_config LIMIT 1").get() !== undefined;
  }

  /**
   * Within a transaction. `number` is where the log stands after it; nothing is told before `notifyAfter`. Says whether
   * a config has something to tell at once.
   */
  put(
    task: number,
    configs: readonly PushRegistration[],
    {
      cursor,
      number,
      notifyAfter,
    }: { readonly cursor: number; readonly number: number; readonly notifyAfter?: number },
  ): boolean {
    const now = this.#clock.now();
    let isDue = false;
    const due = Math.max(now, notifyAfter ?? now);
    this.#any = true;
    this.#follow.run(task);
    for (const { id, url, token, authentication, dialect } of configs) {
      const rows = this.#put.all(
        task,
        toText(id),
        toText(url),
        token === undefined ? null : toText(token),
        authentication === undefined ? null : JSON.stringify(authentication),
        toText(dialect),
        now,
        cursor,
        toText(hostOf(url)),
        cursor < number ? due : null,
        number,
        due,
      );
      const dueAt = rows[0]?.due_at ?? undefined;
      if (dueAt !== undefined && dueAt <= now) isDue = true;
    }
    return isDue;
  }

  /** Within a transaction. */
  delete(task: number, configId: string): void {
    this.#delete.run(task, toText(configId));
  }

  /** The task is gone. Within a transaction. */
  deleteAll(task: number): void {
    if (this.#any) this.#forget.run(task);
  }

  get(taskId: string, configId: string): OwnedPushConfig | undefined {
    const task = this.#task.get(toText(taskId));
    const row = task === undefined ? undefined : this.#find.get(task.seq, toText(configId));
    if (task === undefined || row === undefined) return undefined;
    return { config: toConfig(taskId, row), scope: this.#connection.scopeOf(task.scope) };
  }

  list(taskId: string, { after = 0, limit }: PushConfigQuery): PushConfigList | undefined {
    const task = this.#task.get(toText(taskId));
    if (task === undefined) return undefined;
    const rows = this.#following.all(task.seq, after, limit + 1);
    const shown = rows.slice(0, limit);
    const last = shown.at(-1);
    return {
      configs: shown.map((row) => toConfig(taskId, row)),
      ...(rows.length > shown.length && last !== undefined ? { next: last.place } : undefined),
      scope: this.#connection.scopeOf(task.scope),
    };
  }
}

export function toConfig(taskId: string, row: PushConfigRow): StoredPushConfig {
  return {
    id: fromText(row.id),
    url: fromText(row.url),
    ...(row.token === null ? undefined : { token: fromText(row.token) }),
    ...(row.authentication === null
      ? undefined
      : { authentication: decodeJson(row.authentication) as AuthenticationInfo }),
    dialect: fromText(row.dialect),
    taskId,
    createdAt: row.created_at,
    cursor: row.cursor,
  };
}
