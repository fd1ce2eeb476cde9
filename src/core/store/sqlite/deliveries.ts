import type { Clock } from "../../model/ports.ts";
import type { TaskState } from "../../model/task.ts";
import {
  type DeliveryClaim,
  type DeliveryGroup,
  type DeliveryPage,
  type DeliveryQuery,
  type DeliveryRegistration,
  type OwnedDelivery,
  type StoredDelivery,
  WEBHOOK_ROUTE,
} from "../contract.ts";
import { type DeliveryEffects, isDeliverable, laneOf } from "../rules.ts";
import type { Liveness } from "../single-process.ts";
import { textOrNull, toText, WANTS_CODES } from "../stored-text.ts";
import type { Connection } from "./connection.ts";
import type { SqliteStatement } from "./driver.ts";
import { columns, fromText, type StoredText, textOrUndefined } from "./rows.ts";

export interface DeliveryRow {
  readonly place: number;
  readonly id: StoredText;
  readonly route: StoredText;
  readonly address: StoredText;
  readonly secret: StoredText | null;
  readonly dialect: StoredText;
  readonly wants: number;
  readonly created_at: number;
  readonly cursor: number;
}

/** Of `delivery d`. */
export const DELIVERY_COLUMNS = columns(
  "d.place, d.created_at, d.cursor, d.wants",
  "d.id, d.route, d.address, d.secret, d.dialect",
);

/** As the unique index has it: ids of webhooks and of other deliveries are kept apart. */
const IS_WEBHOOK = `(route = '${WEBHOOK_ROUTE}')`;

interface PutRow {
  readonly place: number;
  readonly claim: number;
  readonly cursor: number;
  readonly created_at: number;
  readonly due_at: number | null;
}

/** A task as a write leaves it. */
interface WrittenTask {
  readonly id: string;
  readonly seq: number;
  readonly scope: number;
  readonly number: number;
  readonly state: TaskState;
}

/** Where events of tasks are delivered. */
export class Deliveries {
  readonly #connection: Connection;
  readonly #clock: Clock;
  readonly #liveness: Liveness;
  readonly #task: SqliteStatement<{ seq: number; scope: number }>;
  readonly #find: SqliteStatement<DeliveryRow>;
  readonly #following: SqliteStatement<DeliveryRow>;
  readonly #put: SqliteStatement<PutRow>;
  readonly #follow: SqliteStatement<object>;
  readonly #delete: SqliteStatement<object>;
  readonly #forget: SqliteStatement<object>;
  /** False while nothing was ever registered: then a task that is deleted need not be looked up here. */
  #any: boolean;

  constructor(connection: Connection, clock: Clock, liveness: Liveness) {
    const { driver } = connection;
    this.#connection = connection;
    this.#clock = clock;
    this.#liveness = liveness;
    this.#task = driver.prepare(`SELECT ${columns("seq, scope")} FROM task WHERE id = ?`);
    this.#find = driver.prepare(
      `SELECT ${DELIVERY_COLUMNS} FROM delivery d WHERE d.task = ? AND d.id = ? AND ${IS_WEBHOOK} = ?`,
    );
    this.#following = driver.prepare(
      `SELECT ${DELIVERY_COLUMNS} FROM delivery d INDEXED BY delivery_by_place
       WHERE d.task = ? AND d.place > ? AND ${IS_WEBHOOK} = ? ORDER BY d.place LIMIT ?`,
    );
    this.#put = driver.prepare(
      `INSERT INTO delivery
         (task, id, route, address, secret, dialect, wants, created_at, cursor, lane, holder, due_at, claim)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1) ON CONFLICT (task, id, ${IS_WEBHOOK}) DO UPDATE SET
         route = excluded.route, address = excluded.address, secret = excluded.secret, dialect = excluded.dialect,
         wants = excluded.wants, lane = excluded.lane, holder = excluded.holder, claim = claim + 1, attempts = 0,
         last_error = NULL, dead_at = NULL,
         due_at = CASE WHEN excluded.holder IS NOT NULL OR cursor < ? THEN ? END
       RETURNING ${columns("place, claim, cursor, created_at, due_at")}`,
    );
    this.#follow = driver.prepare("UPDATE task SET deliveries = 1 WHERE seq = ? AND deliveries = 0");
    this.#delete = driver.prepare(`DELETE FROM delivery WHERE task = ? AND id = ? AND ${IS_WEBHOOK} = ?`);
    this.#forget = driver.prepare("DELETE FROM delivery WHERE task = ?");
    this.#any = driver.prepare("SELECT 1 FROM delivery LIMIT 1").get() !== undefined;
  }

  /** Within a transaction. `cursor` is that of a delivery that is new; nothing is due for `notifyAfterMs`. */
  put(
    task: WrittenTask,
    registrations: readonly DeliveryRegistration[],
    cursor: number,
    notifyAfterMs = 0,
  ): DeliveryEffects {
    const now = this.#clock.now();
    const due = new Set<string>();
    const held: DeliveryClaim[] = [];
    this.#any = true;
    this.#follow.run(task.seq);
    for (const registration of registrations) {
      const row = this.#putOne(task, registration, cursor, now, notifyAfterMs);
      if (registration.heldBy !== undefined) held.push(this.#toClaim(task, registration, row));
      else if (row.due_at !== null && row.due_at <= now) due.add(registration.route);
    }
    return { due: [...due], held };
  }

  #putOne(
    { seq, number, state }: WrittenTask,
    registration: DeliveryRegistration,
    cursor: number,
    now: number,
    notifyAfterMs: number,
  ): PutRow {
    const { id, route, address, secret, dialect, wants, heldBy } = registration;
    if (heldBy !== undefined) this.#liveness.recordLease(heldBy.node);
    const dueAt = now + (heldBy?.ttlMs ?? notifyAfterMs);
    // Up to here the cursor of one that is known must be for it to be due.
    const dueBelow = isDeliverable(wants, state) ? number : 0;
    const [row] = this.#put.all(
      seq,
      toText(id),
      toText(route),
      toText(address),
      textOrNull(secret),
      toText(dialect),
      WANTS_CODES[wants],
      now,
      cursor,
      toText(laneOf(registration)),
      textOrNull(heldBy?.node),
      heldBy !== undefined || cursor < dueBelow ? dueAt : null,
      dueBelow,
      dueAt,
    );
    return row as PutRow;
  }

  #toClaim(task: WrittenTask, { heldBy: _, ...registered }: DeliveryRegistration, row: PutRow): DeliveryClaim {
    return {
      delivery: { ...registered, taskId: task.id, createdAt: row.created_at, cursor: row.cursor },
      place: row.place,
      claim: row.claim,
      attempts: 0,
      lane: laneOf(registered),
      scope: this.#connection.scopeOf(task.scope),
    };
  }

  /** Within a transaction. */
  delete(task: number, group: DeliveryGroup, deliveryId: string): void {
    this.#delete.run(task, toText(deliveryId), toFlag(group));
  }

  /** The task is gone. Within a transaction. */
  deleteAll(task: number): void {
    if (this.#any) this.#forget.run(task);
  }

  get(taskId: string, group: DeliveryGroup, deliveryId: string): OwnedDelivery | undefined {
    const task = this.#task.get(toText(taskId));
    const row = task === undefined ? undefined : this.#find.get(task.seq, toText(deliveryId), toFlag(group));
    if (task === undefined || row === undefined) return undefined;
    return { delivery: toDelivery(taskId, row), scope: this.#connection.scopeOf(task.scope) };
  }

  list(taskId: string, { group, after = 0, limit }: DeliveryQuery): DeliveryPage | undefined {
    const task = this.#task.get(toText(taskId));
    if (task === undefined) return undefined;
    const rows = this.#following.all(task.seq, after, toFlag(group), limit + 1);
    const shown = rows.slice(0, limit);
    const last = shown.at(-1);
    return {
      deliveries: shown.map((row) => toDelivery(taskId, row)),
      next: rows.length > shown.length && last !== undefined ? last.place : undefined,
      scope: this.#connection.scopeOf(task.scope),
    };
  }
}

function toFlag(group: DeliveryGroup): number {
  return group === "webhooks" ? 1 : 0;
}

export function toDelivery(taskId: string, row: DeliveryRow): StoredDelivery {
  const secret = textOrUndefined(row.secret);
  return {
    id: fromText(row.id),
    route: fromText(row.route),
    address: fromText(row.address),
    secret,
    dialect: fromText(row.dialect),
    wants: row.wants === WANTS_CODES.outcome ? "outcome" : "events",
    taskId,
    createdAt: row.created_at,
    cursor: row.cursor,
  };
}
