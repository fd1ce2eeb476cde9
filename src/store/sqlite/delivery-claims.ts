import type { Clock } from "../../model/ports.ts";
import type {
  PushClaim,
  PushClaimQuery,
  PushClaims,
  PushDelivery,
  PushDeliveryQuery,
  PushProgress,
  Redelivered,
  Redelivery,
} from "../contract.ts";
import { applyPushProgress } from "../rules.ts";
import type { Liveness } from "../single-process.ts";
import type { Connection } from "./connection.ts";
import { commitAll, fallBackIfDamaged, salvage } from "./damage.ts";
import { CONFIG_COLUMNS, type PushConfigRow, toConfig } from "./deliveries.ts";
import type { SqliteStatement } from "./driver.ts";
import { columns, fromText, type StoredText, toText } from "./rows.ts";

interface DueRow extends PushConfigRow {
  readonly task_id: StoredText;
  readonly scope: number;
  readonly host: StoredText;
  readonly claim: number;
  readonly attempts: number;
}

interface StateRow {
  readonly claim: number;
  readonly cursor: number;
  readonly attempts: number;
  readonly due_at: number | null;
  readonly holder: StoredText | null;
  readonly last_error: StoredText | null;
  readonly dead_at: number | null;
}

interface DeliveryRow extends Omit<StateRow, "claim" | "holder"> {
  readonly place: number;
  readonly task_id: StoredText;
  readonly scope: number;
  readonly number: number;
  readonly id: StoredText;
  readonly url: StoredText;
  readonly dialect: StoredText;
}

interface RedeliveredRow {
  readonly task_id: StoredText;
  readonly scope: number;
  readonly id: StoredText;
  readonly dialect: StoredText;
}

/** What is left to tell, and to whom: the log is the outbox, this is how far each config has come with it. */
export class PushOutbox {
  readonly #connection: Connection;
  readonly #clock: Clock;
  readonly #liveness: Liveness;
  readonly #statements: ReturnType<typeof prepare>;

  constructor(connection: Connection, clock: Clock, liveness: Liveness) {
    this.#connection = connection;
    this.#clock = clock;
    this.#liveness = liveness;
    this.#statements = prepare(connection);
  }

  /** The task has events that its configs do not know. Within a transaction. Says whether that makes one due. */
  markDue(task: number): boolean {
    const now = this.#clock.now();
    return this.#statements.grown.run(now, task, now) > 0;
  }

  /** Within a transaction. */
  progress(
    task: { readonly seq: number; readonly number: number },
    write: PushProgress,
  ): "missing" | "fenced" | boolean {
    const row = this.#statements.state.get(write.place, task.seq);
    if (row === undefined) return "missing";
    if (row.claim !== write.claim || row.holder === null) return "fenced";
    const now = this.#clock.now();
    const after = applyPushProgress(toState(row), write, task.number, now);
    this.#statements.setState.run(
      after.cursor,
      after.attempts,
      after.dueAt ?? null,
      after.holder === undefined ? null : toText(after.holder),
      after.lastError === undefined ? null : toText(after.lastError),
      after.deadAt ?? null,
      write.place,
    );
    return after.holder === undefined && after.dueAt !== undefined && after.dueAt <= now;
  }

  claim(query: PushClaimQuery): PushClaims {
    const now = this.#clock.now();
    const rows = this.#due(query, now);
    if (rows.length > 0) {
      const until = now + query.ttlMs;
      this.#connection.transact(() => {
        for (const { place } of rows) this.#statements.take.run(toText(query.node), until, place);
      });
      this.#liveness.recordLease(query.node);
    }
    const nextAt = this.#statements.next.get(now)?.due_at;
    const claims = salvage(rows, (row) => this.#toClaim(row), this.#report);
    return { claims, ...(nextAt === undefined ? undefined : { nextAt }) };
  }

  readonly #report = ({ place }: { readonly place: number }, error: unknown): void =>
    this.#connection.reportDamage(`push config number ${place}`, error);

  /** Asks again without the hosts that turned out to be full, so that those behind them get their turn. */
  #due({ max, perHost, busy }: PushClaimQuery, now: number): DueRow[] {
    const counts = new Map(busy);
    const taken = new Map<number, DueRow>();
    for (;;) {
      const full = [...counts].filter(([, count]) => count >= perHost).map(([host]) => toText(host));
      const rows = this.#dueElsewhere(now, JSON.stringify(full), max);
      const before = taken.size;
      for (const row of rows) {
        if (taken.size >= max || taken.has(row.place)) continue;
        const [host = ""] = salvage([row.host], fromText, () => {});
        const count = counts.get(host) ?? 0;
        if (count >= perHost) continue;
        counts.set(host, count + 1);
        taken.set(row.place, row);
      }
      if (taken.size >= max || rows.length < max || taken.size === before) return [...taken.values()];
    }
  }

  #dueElsewhere(now: number, fullHosts: string, max: number): DueRow[] {
    const { due, dueOne, duePlaces } = this.#statements;
    return fallBackIfDamaged(
      () => due.all(now, fullHosts, max),
      () => {
        const places = duePlaces.all(now, fullHosts);
        return salvage(places, ({ place }) => dueOne.all(place), this.#report)
          .flat()
          .slice(0, max);
      },
    );
  }

  /** Claims of nodes that died with an earlier process. */
  releaseStaleClaims(): void {
    const { giveUp, heldEarlier } = this.#statements;
    const held = heldEarlier.all(JSON.stringify(this.#liveness.nodes().map(toText)));
    const now = this.#clock.now();
    const commit = (some: readonly { readonly place: number }[]) =>
      this.#connection.transact(() => {
        for (const { place } of some) giveUp.run(now, place);
      });
    commitAll(held, commit, this.#report);
  }

  deliveries({ after = 0, limit, dead = false, taskId }: PushDeliveryQuery): PushDelivery[] {
    const task = taskId === undefined ? null : toText(taskId);
    const rows = this.#statements.deliveries.all(after, dead ? 1 : 0, task, task, limit);
    const toDelivery = (row: DeliveryRow): PushDelivery => ({
      place: row.place,
      taskId: fromText(row.task_id),
      configId: fromText(row.id),
      url: fromText(row.url),
      dialect: fromText(row.dialect),
      scope: this.#connection.scopeOf(row.scope),
      cursor: row.cursor,
      number: row.number,
      attempts: row.attempts,
      ...(row.due_at === null ? undefined : { dueAt: row.due_at }),
      ...(row.last_error === null ? undefined : { lastError: fromText(row.last_error) }),
      ...(row.dead_at === null ? undefined : { deadAt: row.dead_at }),
    });
    return salvage(rows, toDelivery, this.#report);
  }

  redeliver({ taskId, configId, from }: Redelivery): Redelivered[] {
    const now = this.#clock.now();
    const { reviveAll, revive } = this.#statements;
    const rows = this.#connection.transact(() => {
      if (taskId === undefined) return reviveAll.all(now);
      const config = configId === undefined ? null : toText(configId);
      const first = from === undefined ? null : Math.max(from - 1, 0);
      return revive.all(first, now, toText(taskId), config, config, first);
    });
    return rows.map((row) => ({
      taskId: fromText(row.task_id),
      configId: fromText(row.id),
      dialect: fromText(row.dialect),
      scope: this.#connection.scopeOf(row.scope),
    }));
  }

  #toClaim(row: DueRow): PushClaim {
    return {
      config: toConfig(fromText(row.task_id), row),
      place: row.place,
      claim: row.claim + 1,
      attempts: row.attempts,
      host: fromText(row.host),
      scope: this.#connection.scopeOf(row.scope),
    };
  }
}

const DUE = `SELECT ${CONFIG_COLUMNS}, ${columns("c.claim, c.attempts, t.scope", "c.host, t.id AS task_id")}`;
const NOT_AT_HOSTS = "c.host NOT IN (SELECT value FROM json_each(?))";

/** An update may not join in what it returns. */
const REDELIVERED = `RETURNING ${columns("", "id, dialect")},
         (SELECT CAST(t.id AS BLOB) FROM task t WHERE t.seq = push_config.task) AS task_id,
         (SELECT CAST(t.scope AS NUMERIC) FROM task t WHERE t.seq = push_config.task) AS scope`;

function prepare({ driver }: Connection) {
  return {
    grown: driver.prepare(
      `UPDATE push_config SET due_at = ? WHERE task = ? AND holder IS NULL AND dead_at IS NULL AND attempts = 0
         AND (due_at IS NULL OR due_at > ?)`,
    ),
    state: driver.prepare<StateRow>(
      `SELECT ${columns("claim, cursor, attempts, due_at, dead_at", "holder, last_error")} FROM push_config
       WHERE place = ? AND task = ?`,
    ),
    setState: driver.prepare(
      `UPDATE push_config SET cursor = ?, attempts = ?, due_at = ?, holder = ?, last_error = ?, dead_at = ?
       WHERE place = ?`,
    ),
    due: driver.prepare<DueRow>(
      `${DUE} FROM push_config c INDEXED BY push_config_due CROSS JOIN task t ON t.seq = c.task
       WHERE c.due_at <= ? AND ${NOT_AT_HOSTS} ORDER BY c.due_at LIMIT ?`,
    ),
    duePlaces: driver.prepare<{ place: number }>(
      `SELECT c.place FROM push_config c INDEXED BY push_config_due WHERE c.due_at <= ? AND ${NOT_AT_HOSTS}
       ORDER BY c.due_at`,
    ),
    dueOne: driver.prepare<DueRow>(`${DUE} FROM push_config c CROSS JOIN task t ON t.seq = c.task WHERE c.place = ?`),
    take: driver.prepare("UPDATE push_config SET holder = ?, due_at = ?, claim = claim + 1 WHERE place = ?"),
    next: driver.prepare<{ due_at: number }>(
      `SELECT ${columns("c.due_at")} FROM push_config c INDEXED BY push_config_due WHERE c.due_at > ?
       ORDER BY c.due_at LIMIT 1`,
    ),
    heldEarlier: driver.prepare<{ place: number }>(
      `SELECT place FROM push_config INDEXED BY push_config_held
       WHERE holder IS NOT NULL AND holder NOT IN (SELECT value FROM json_each(?))`,
    ),
    giveUp: driver.prepare("UPDATE push_config SET holder = NULL, due_at = ? WHERE place = ?"),
    deliveries: driver.prepare<DeliveryRow>(
      `SELECT ${columns(
        "c.place, c.cursor, c.attempts, c.due_at, c.dead_at, t.scope, t.number",
        "c.id, c.url, c.dialect, c.last_error, t.id AS task_id",
      )}
       FROM push_config c JOIN task t ON t.seq = c.task
       WHERE c.place > ? AND (c.dead_at IS NOT NULL OR (c.due_at IS NOT NULL AND ? = 0)) AND (? IS NULL OR t.id = ?)
       ORDER BY c.place LIMIT ?`,
    ),
    reviveAll: driver.prepare<RedeliveredRow>(
      `UPDATE push_config SET dead_at = NULL, attempts = 0, claim = claim + 1, due_at = ? WHERE dead_at IS NOT NULL
       ${REDELIVERED}`,
    ),
    revive: driver.prepare<RedeliveredRow>(
      `UPDATE push_config SET cursor = min(cursor, coalesce(?, cursor)), due_at = ?, dead_at = NULL, attempts = 0,
         holder = NULL, claim = claim + 1
       WHERE task = (SELECT seq FROM task WHERE id = ?) AND (? IS NULL OR id = ?)
         AND (? IS NOT NULL OR dead_at IS NOT NULL OR attempts > 0)
       ${REDELIVERED}`,
    ),
  } satisfies Record<string, SqliteStatement<object>>;
}

function toState(row: StateRow) {
  return {
    cursor: row.cursor,
    attempts: row.attempts,
    dueAt: row.due_at ?? undefined,
    holder: row.holder === null ? undefined : fromText(row.holder),
    lastError: row.last_error === null ? undefined : fromText(row.last_error),
    deadAt: row.dead_at ?? undefined,
  };
}
