import type { TaskState } from "../../../core/model/task.ts";
import {
  type DeliveryClaim,
  type DeliveryDelete,
  type DeliveryGroup,
  type DeliveryPage,
  type DeliveryQuery,
  type DeliveryRegistration,
  type OwnedDelivery,
  type Scope,
  type StoredDelivery,
  WEBHOOK_ROUTE,
} from "../../../core/store/contract.ts";
import { type DeliveryEffects, groupOf, isDeliverable, laneOf, NO_EFFECTS } from "../../../core/store/rules.ts";
import { textOrNull, toText, unescapeText, WANTS_CODES } from "../../../core/store/stored-text.ts";
import type { Database } from "./connection.ts";
import type { PutRow, WrittenRow } from "./statement-parts.ts";

export interface DeliveryRow {
  readonly place: number;
  readonly id: string;
  readonly route: string;
  readonly address: string;
  readonly secret: string | null;
  readonly dialect: string;
  readonly wants: number;
  readonly created_at: number;
  readonly cursor: number;
}

interface OwnedRow extends DeliveryRow {
  readonly agent: string;
  readonly tenant: string;
  readonly owner: string;
}

/** Of `delivery d`. */
export const DELIVERY_COLUMNS =
  "d.place, d.id, d.route, d.address, d.secret, d.dialect, d.wants, d.created_at, d.cursor";
/** Of `scope s`. */
export const SCOPE_COLUMNS = "s.agent, s.tenant, s.owner";

export type Deliveries = ReturnType<typeof createDeliveries>;

/** Where events of tasks are delivered. They are registered by the statements that write to tasks. */
export function createDeliveries({ query }: Database) {
  return {
    async get(taskId: string, group: DeliveryGroup, deliveryId: string): Promise<OwnedDelivery | undefined> {
      const [row] = await query<OwnedRow>(
        `SELECT ${DELIVERY_COLUMNS}, ${SCOPE_COLUMNS} FROM @task t JOIN @scope s ON s.id = t.scope
         JOIN @delivery d ON d.task = t.seq WHERE t.id = $1 AND d.id = $2 AND (d.route = '${WEBHOOK_ROUTE}') = $3`,
        [toText(taskId), toText(deliveryId), group === "webhooks"],
      );
      return row && { delivery: toDelivery(taskId, row), scope: toScope(row) };
    },

    async list(taskId: string, { group, after = 0, limit }: DeliveryQuery): Promise<DeliveryPage | undefined> {
      const rows = await query<OwnedRow | (OwnedRow & { place: null })>(
        `SELECT ${SCOPE_COLUMNS}, d.* FROM @task t JOIN @scope s ON s.id = t.scope LEFT JOIN LATERAL (
           SELECT ${DELIVERY_COLUMNS} FROM @delivery d
           WHERE d.task = t.seq AND d.place > $2 AND (d.route = '${WEBHOOK_ROUTE}') = $3 ORDER BY d.place LIMIT $4
         ) d ON true WHERE t.id = $1 ORDER BY d.place`,
        [toText(taskId), after, group === "webhooks", limit + 1],
      );
      const [first] = rows;
      if (first === undefined) return undefined;
      const found = rows.filter((row) => row.place !== null);
      const shown = found.slice(0, limit);
      const last = shown.at(-1);
      return {
        deliveries: shown.map((row) => toDelivery(taskId, row)),
        next: found.length > shown.length && last !== undefined ? last.place : undefined,
        scope: toScope(first),
      };
    },

    async deleteAll(deletes: readonly { readonly seq: number; readonly write: DeliveryDelete }[]): Promise<void> {
      await query(
        `DELETE FROM @delivery d USING unnest($1::bigint[], $2::text[], $3::boolean[]) AS i (task, id, webhook)
         WHERE d.task = i.task AND d.id = i.id AND (d.route = '${WEBHOOK_ROUTE}') = i.webhook`,
        [
          deletes.map(({ seq }) => seq),
          deletes.map(({ write }) => toText(write.deliveryId)),
          deletes.map(({ write }) => write.group === "webhooks"),
        ],
      );
    },
  };
}

/** A task as a write leaves it. */
interface WrittenTask {
  readonly id: string;
  readonly scope: Scope;
  readonly number: number;
  readonly state: TaskState;
}

/** The last of several with the same id counts. `cursor` is that of one that is new; nothing is due for `notifyAfterMs`. */
export function toPutRows(
  write: number,
  registrations: readonly DeliveryRegistration[],
  { number, state }: WrittenTask,
  cursor: number,
  notifyAfterMs = 0,
): PutRow[] {
  const rows = new Map<string, PutRow>();
  for (const registration of registrations) {
    const { id, route, address, secret, dialect, wants, heldBy } = registration;
    rows.set(`${groupOf(route)} ${id}`, {
      write,
      id: toText(id),
      route: toText(route),
      webhook: route === WEBHOOK_ROUTE,
      address: toText(address),
      secret: textOrNull(secret),
      dialect: toText(dialect),
      wants: WANTS_CODES[wants],
      lane: toText(laneOf(registration)),
      holder: textOrNull(heldBy?.node),
      cursor,
      dueBelow: isDeliverable(wants, state) ? number : 0,
      wait: heldBy?.ttlMs ?? notifyAfterMs,
    });
  }
  return [...rows.values()];
}

/** What a statement did to the deliveries of one of its tasks. */
export function toEffects(
  row: WrittenRow,
  registrations: readonly DeliveryRegistration[],
  task: WrittenTask,
): DeliveryEffects {
  const due = new Set((row.due ?? []).map(unescapeText));
  if (registrations.length === 0) return due.size === 0 ? NO_EFFECTS : { due: [...due] };
  const held: DeliveryClaim[] = [];
  for (const registration of registrations) {
    const { heldBy, ...registered } = registration;
    const isWebhook = registration.route === WEBHOOK_ROUTE;
    const put = row.put?.find(({ id, webhook }) => webhook === isWebhook && id === toText(registration.id));
    if (put === undefined) continue;
    if (put.due) due.add(registration.route);
    if (heldBy === undefined) continue;
    held.push({
      delivery: { ...registered, taskId: task.id, createdAt: put.created_at, cursor: put.cursor },
      place: put.place,
      claim: put.claim,
      attempts: 0,
      lane: laneOf(registration),
      scope: task.scope,
    });
  }
  return { due: [...due], held };
}

export function toScope({ agent, tenant, owner }: Scope): Scope {
  return { agent: unescapeText(agent), tenant: unescapeText(tenant), owner: unescapeText(owner) };
}

export function toDelivery(taskId: string, row: DeliveryRow): StoredDelivery {
  return {
    id: unescapeText(row.id),
    route: unescapeText(row.route),
    address: unescapeText(row.address),
    secret: row.secret === null ? undefined : unescapeText(row.secret),
    dialect: unescapeText(row.dialect),
    wants: row.wants === WANTS_CODES.outcome ? "outcome" : "events",
    taskId,
    createdAt: row.created_at,
    cursor: row.cursor,
  };
}
