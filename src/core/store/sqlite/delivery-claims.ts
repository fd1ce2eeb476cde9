import type { Clock } from "../../model/ports.ts";
import type { TaskState } from "../../model/task.ts";
import type {
  DeliveryClaim,
  DeliveryClaimQuery,
  DeliveryClaims,
  DeliveryProgress,
  PendingDelivery,
  PendingDeliveryQuery,
  Redelivered,
  Redelivery,
} from "../contract.ts";
import { applyDeliveryProgress, type DeliveryEffects, isDeliverable, NO_EFFECTS } from "../rules.ts";
import type { Liveness } from "../single-process.ts";
import { textOrNull, toText, WANTS_CODES } from "../stored-text.ts";
import type { Connection } from "./connection.ts";
import { commitAll, fallBackIfDamaged, salvage } from "./damage.ts";
import { DELIVERY_COLUMNS, type DeliveryRow, toDelivery } from "./deliveries.ts";
import type { SqliteStatement } from "./driver.ts";
import { columns, fromText, LOG_NUMBER, type StoredText, textOrUndefined } from "./rows.ts";

interface DueRow extends DeliveryRow {
  readonly task_id: StoredText;
  readonly scope: number;
  readonly lane: StoredText;
  readonly claim: number;
  readonly attempts: number;
}

interface StateRow {
  readonly route: StoredText;
  readonly wants: number;
  readonly claim: number;
  readonly cursor: number;
  readonly attempts: number;
  readonly due_at: number | null;
  readonly holder: StoredText | null;
  readonly last_error: StoredText | null;
  readonly dead_at: number | null;
}

interface PendingRow extends Omit<StateRow, "wants" | "claim" | "holder"> {
  readonly place: number;
  readonly task_id: StoredText;
  readonly scope: number;
  readonly number: number;
  readonly id: StoredText;
  readonly address: StoredText;
  readonly dialect: StoredText;
}

interface RedeliveredRow {
  readonly task_id: StoredText;
  readonly scope: number;
  readonly id: StoredText;
  readonly dialect: StoredText;
}

/** What is left to deliver, and which node does it: the log is the outbox, this is how far each delivery has come. */
export class DeliveryOutbox {
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

  /** The task has events that its deliveries do not know. Within a transaction. */
  markDue(task: number, state: TaskState): DeliveryEffects {
    const now = this.#clock.now();
    const wants = isDeliverable("outcome", state) ? WANTS_CODES.outcome : WANTS_CODES.events;
    const rows = this.#statements.grown.all(now, task, wants, now);
    return rows.length === 0 ? NO_EFFECTS : { due: [...new Set(rows.map(({ route }) => fromText(route)))] };
  }

  /** Within a transaction. */
  progress(
    task: { readonly seq: number; readonly number: number; readonly state: TaskState },
    write: DeliveryProgress,
  ): "missing" | "fenced" | DeliveryEffects {
    const row = this.#statements.state.get(write.place, task.seq);
    if (row === undefined) return "missing";
    if (row.claim !== write.claim || row.holder === null) return "fenced";
    const now = this.#clock.now();
    const wants = row.wants === WANTS_CODES.outcome ? "outcome" : "events";
    const after = applyDeliveryProgress(toState(row), wants, write, task, now);
    if (after === undefined) {
      this.#statements.remove.run(write.place, write.claim);
      return NO_EFFECTS;
    }
    this.#statements.setState.run(
      after.cursor,
      after.attempts,
      after.dueAt ?? null,
      textOrNull(after.holder),
      textOrNull(after.lastError),
      after.deadAt ?? null,
      write.place,
      write.claim,
    );
    const isDue = after.holder === undefined && after.dueAt !== undefined && after.dueAt <= now;
    return isDue ? { due: [fromText(row.route)] } : NO_EFFECTS;
  }

  claim(query: DeliveryClaimQuery): DeliveryClaims {
    const now = this.#clock.now();
    const rows = this.#due(query, now);
    if (rows.length > 0) {
      const until = now + query.ttlMs;
      this.#connection.transact(() => {
        for (const { place } of rows) this.#statements.take.run(toText(query.node), until, place);
      });
      this.#liveness.recordLease(query.node);
    }
    const nextAt = this.#statements.next.get(toText(query.route), now)?.due_at;
    const claims = salvage(rows, (row) => this.#toClaim(row), this.#report);
    return { claims, nextInMs: nextAt === undefined ? undefined : nextAt - now };
  }

  readonly #report = ({ place }: { readonly place: number }, error: unknown): void =>
    this.#connection.reportDamage(`delivery number ${place}`, error);

  /** Asks again without the lanes that turned out to be full, so that those behind them get their turn. */
  #due({ route, max, perLane, busy }: DeliveryClaimQuery, now: number): DueRow[] {
    const counts = new Map(busy);
    const taken = new Map<number, DueRow>();
    for (;;) {
      const full = [...counts].filter(([, count]) => count >= perLane).map(([lane]) => toText(lane));
      const rows = this.#dueElsewhere(toText(route), now, JSON.stringify(full), max);
      const before = taken.size;
      for (const row of rows) {
        if (taken.size >= max || taken.has(row.place)) continue;
        const [lane = ""] = salvage([row.lane], fromText, () => {});
        const count = counts.get(lane) ?? 0;
        if (count >= perLane) continue;
        counts.set(lane, count + 1);
        taken.set(row.place, row);
      }
      if (taken.size >= max || rows.length < max || taken.size === before) return [...taken.values()];
    }
  }

  #dueElsewhere(route: string, now: number, fullLanes: string, max: number): DueRow[] {
    const { due, dueOne, duePlaces } = this.#statements;
    return fallBackIfDamaged(
      () => due.all(route, now, fullLanes, max),
      () => {
        const places = duePlaces.all(route, now, fullLanes);
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

  pending({ after = 0, limit, dead = false, taskId }: PendingDeliveryQuery): PendingDelivery[] {
    const task = textOrNull(taskId);
    const rows = this.#statements.pending.all(after, dead ? 1 : 0, task, task, limit);
    const toPending = (row: PendingRow): PendingDelivery => ({
      place: row.place,
      taskId: fromText(row.task_id),
      deliveryId: fromText(row.id),
      route: fromText(row.route),
      address: fromText(row.address),
      dialect: fromText(row.dialect),
      scope: this.#connection.scopeOf(row.scope),
      cursor: row.cursor,
      number: row.number,
      attempts: row.attempts,
      dueAt: row.due_at ?? undefined,
      lastError: row.last_error === null ? undefined : fromText(row.last_error),
      deadAt: row.dead_at ?? undefined,
    });
    return salvage(rows, toPending, this.#report);
  }

  redeliver({ taskId, deliveryId, from }: Redelivery): Redelivered[] {
    const now = this.#clock.now();
    const { reviveAll, revive } = this.#statements;
    const rows = this.#connection.transact(() => {
      if (taskId === undefined) return reviveAll.all(now);
      const id = textOrNull(deliveryId);
      const first = from === undefined ? null : Math.max(from - 1, 0);
      return revive.all(first, now, toText(taskId), id, id, first);
    });
    return rows.map((row) => ({
      taskId: fromText(row.task_id),
      deliveryId: fromText(row.id),
      dialect: fromText(row.dialect),
      scope: this.#connection.scopeOf(row.scope),
    }));
  }

  #toClaim(row: DueRow): DeliveryClaim {
    return {
      delivery: toDelivery(fromText(row.task_id), row),
      place: row.place,
      claim: row.claim + 1,
      attempts: row.attempts,
      lane: fromText(row.lane),
      scope: this.#connection.scopeOf(row.scope),
    };
  }
}

const DUE = `SELECT ${DELIVERY_COLUMNS}, ${columns("d.claim, d.attempts, t.scope", "d.lane, t.id AS task_id")}`;
const IS_DUE = "d.route = ? AND d.due_at <= ? AND d.lane NOT IN (SELECT value FROM json_each(?))";

/** An update may not join in what it returns. */
const REDELIVERED = `RETURNING ${columns("", "id, dialect")},
         (SELECT CAST(t.id AS BLOB) FROM task t WHERE t.seq = delivery.task) AS task_id,
         (SELECT CAST(t.scope AS NUMERIC) FROM task t WHERE t.seq = delivery.task) AS scope`;

function prepare({ driver }: Connection) {
  return {
    grown: driver.prepare<{ route: StoredText }>(
      `UPDATE delivery SET due_at = ? WHERE task = ? AND wants <= ? AND holder IS NULL AND dead_at IS NULL
         AND attempts = 0 AND (due_at IS NULL OR due_at > ?) RETURNING ${columns("", "route")}`,
    ),
    state: driver.prepare<StateRow>(
      `SELECT ${columns("wants, claim, cursor, attempts, due_at, dead_at", "route, holder, last_error")} FROM delivery
       WHERE place = ? AND task = ?`,
    ),
    setState: driver.prepare(
      `UPDATE delivery SET cursor = ?, attempts = ?, due_at = ?, holder = ?, last_error = ?, dead_at = ?
       WHERE place = ? AND claim = ?`,
    ),
    remove: driver.prepare("DELETE FROM delivery WHERE place = ? AND claim = ?"),
    due: driver.prepare<DueRow>(
      `${DUE} FROM delivery d INDEXED BY delivery_due CROSS JOIN task t ON t.seq = d.task
       WHERE ${IS_DUE} ORDER BY d.due_at LIMIT ?`,
    ),
    duePlaces: driver.prepare<{ place: number }>(
      `SELECT d.place FROM delivery d INDEXED BY delivery_due WHERE ${IS_DUE} ORDER BY d.due_at`,
    ),
    dueOne: driver.prepare<DueRow>(`${DUE} FROM delivery d CROSS JOIN task t ON t.seq = d.task WHERE d.place = ?`),
    take: driver.prepare("UPDATE delivery SET holder = ?, due_at = ?, claim = claim + 1 WHERE place = ?"),
    next: driver.prepare<{ due_at: number }>(
      `SELECT ${columns("d.due_at")} FROM delivery d INDEXED BY delivery_due WHERE d.route = ? AND d.due_at > ?
       ORDER BY d.due_at LIMIT 1`,
    ),
    heldEarlier: driver.prepare<{ place: number }>(
      `SELECT place FROM delivery INDEXED BY delivery_held
       WHERE holder IS NOT NULL AND holder NOT IN (SELECT value FROM json_each(?))`,
    ),
    giveUp: driver.prepare("UPDATE delivery SET holder = NULL, due_at = ? WHERE place = ?"),
    pending: driver.prepare<PendingRow>(
      `SELECT ${columns(
        `d.place, d.cursor, d.attempts, d.due_at, d.dead_at, t.scope, ${LOG_NUMBER} AS number`,
        "d.id, d.route, d.address, d.dialect, d.last_error, t.id AS task_id",
      )}
       FROM delivery d JOIN task t ON t.seq = d.task
       WHERE d.place > ? AND (d.dead_at IS NOT NULL OR (d.due_at IS NOT NULL AND ? = 0)) AND (? IS NULL OR t.id = ?)
       ORDER BY d.place LIMIT ?`,
    ),
    reviveAll: driver.prepare<RedeliveredRow>(
      `UPDATE delivery SET dead_at = NULL, attempts = 0, claim = claim + 1, due_at = ? WHERE dead_at IS NOT NULL
       ${REDELIVERED}`,
    ),
    revive: driver.prepare<RedeliveredRow>(
      `UPDATE delivery SET cursor = min(cursor, coalesce(?, cursor)), due_at = ?, dead_at = NULL, attempts = 0,
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
    holder: textOrUndefined(row.holder),
    lastError: textOrUndefined(row.last_error),
    deadAt: row.dead_at ?? undefined,
  };
}
