import type { Clock } from "../../model/ports.ts";
import type {
  DeliveryClaim,
  DeliveryClaimQuery,
  DeliveryClaims,
  DeliveryGroup,
  DeliveryPage,
  DeliveryProgress,
  DeliveryQuery,
  DeliveryRegistration,
  OwnedDelivery,
  PendingDelivery,
  PendingDeliveryQuery,
  Redelivered,
  Redelivery,
  StoredDelivery,
} from "../contract.ts";
import {
  applyDeliveryProgress,
  type DeliveryEffects,
  type DeliveryState,
  groupOf,
  isDeliverable,
  laneOf,
  NO_EFFECTS,
  registeredState,
} from "../rules.ts";
import type { TaskRecord } from "./task-record.ts";

interface DeliveryEntry {
  readonly place: number;
  readonly record: TaskRecord;
  readonly delivery: Omit<StoredDelivery, "cursor">;
  readonly lane: string;
  state: DeliveryState;
  claim: number;
}

/** The deliveries of all tasks. Apart from the tasks, because most have none and should not pay for a member. */
export class Deliveries {
  readonly #clock: Clock;
  /** By group and id, in the order of creation: replacing a value keeps its place in a map. */
  readonly #byTask = new Map<TaskRecord, Map<string, DeliveryEntry>>();
  /** By route, those that have something left to deliver or were given up. */
  readonly #open = new Map<string, Set<DeliveryEntry>>();
  #lastPlace = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The record knows how far its log goes and how the task stands. */
  put(
    record: TaskRecord,
    registrations: readonly DeliveryRegistration[],
    cursor: number,
    notifyAfterMs = 0,
  ): DeliveryEffects {
    const due = new Set<string>();
    const held: DeliveryClaim[] = [];
    const now = this.#clock.now();
    for (const registration of registrations) {
      const entry = this.#putOne(record, registration, cursor, now, notifyAfterMs);
      const { dueAt, holder } = entry.state;
      if (holder !== undefined) held.push(toClaim(entry));
      else if (dueAt !== undefined && dueAt <= now) due.add(registration.route);
    }
    return { due: [...due], held };
  }

  #putOne(
    record: TaskRecord,
    registration: DeliveryRegistration,
    cursor: number,
    now: number,
    notifyAfterMs: number,
  ): DeliveryEntry {
    const { heldBy: _, ...registered } = registration;
    const known = this.#byTask.get(record);
    const entries = known ?? new Map<string, DeliveryEntry>();
    if (known === undefined) this.#byTask.set(record, entries);
    const key = keyOf(groupOf(registered.route), registered.id);
    const earlier = entries.get(key);
    if (earlier !== undefined) this.#close(earlier);
    const state = registeredState(registration, earlier?.state.cursor ?? cursor, record, now, notifyAfterMs);
    const entry: DeliveryEntry = {
      place: earlier?.place ?? ++this.#lastPlace,
      record,
      delivery: { ...registered, taskId: record.id, createdAt: earlier?.delivery.createdAt ?? now },
      lane: laneOf(registered),
      state,
      claim: (earlier?.claim ?? 0) + 1,
    };
    entries.set(key, entry);
    this.#keep(entry, state);
    return entry;
  }

  delete(record: TaskRecord, group: DeliveryGroup, id: string): void {
    const entry = this.#byTask.get(record)?.get(keyOf(group, id));
    if (entry !== undefined) this.#remove(entry);
  }

  /** The task is gone. */
  deleteAll(record: TaskRecord): void {
    for (const entry of this.#byTask.get(record)?.values() ?? []) this.#close(entry);
    this.#byTask.delete(record);
  }

  get(record: TaskRecord | undefined, group: DeliveryGroup, id: string): OwnedDelivery | undefined {
    if (record === undefined) return undefined;
    const found = this.#byTask.get(record)?.get(keyOf(group, id));
    return found === undefined ? undefined : { delivery: toStored(found), scope: record.scope };
  }

  list(record: TaskRecord | undefined, { group, after = 0, limit }: DeliveryQuery): DeliveryPage | undefined {
    if (record === undefined) return undefined;
    const following: DeliveryEntry[] = [];
    for (const entry of this.#byTask.get(record)?.values() ?? []) {
      if (groupOf(entry.delivery.route) !== group || entry.place <= after) continue;
      if (following.push(entry) > limit) break;
    }
    const shown = following.slice(0, limit);
    const last = shown.at(-1);
    return {
      deliveries: shown.map(toStored),
      next: following.length > shown.length && last !== undefined ? last.place : undefined,
      scope: record.scope,
    };
  }

  /** The task has events that its deliveries do not know. */
  markDue(record: TaskRecord): DeliveryEffects {
    const entries = this.#byTask.size === 0 ? undefined : this.#byTask.get(record);
    if (entries === undefined) return NO_EFFECTS;
    const now = this.#clock.now();
    const due = new Set<string>();
    for (const entry of entries.values()) {
      const { delivery, state } = entry;
      if (!isDeliverable(delivery.wants, record.state)) continue;
      if (state.holder !== undefined || state.deadAt !== undefined || state.attempts > 0) continue;
      if (state.dueAt !== undefined && state.dueAt <= now) continue;
      this.#keep(entry, { ...state, dueAt: now });
      due.add(delivery.route);
    }
    return { due: [...due] };
  }

  progress(record: TaskRecord, write: DeliveryProgress): "missing" | "fenced" | DeliveryEffects {
    const entry = [...(this.#byTask.get(record)?.values() ?? [])].find(({ place }) => place === write.place);
    if (entry === undefined) return "missing";
    if (entry.claim !== write.claim || entry.state.holder === undefined) return "fenced";
    const { route, wants } = entry.delivery;
    const now = this.#clock.now();
    const state = applyDeliveryProgress(entry.state, wants, write, record, now);
    if (state === undefined) this.#remove(entry);
    else this.#keep(entry, state);
    const isDue = state?.holder === undefined && state?.dueAt !== undefined && state.dueAt <= now;
    return isDue ? { due: [route] } : NO_EFFECTS;
  }

  claim({ node, route, max, ttlMs, perLane, busy }: DeliveryClaimQuery): DeliveryClaims {
    const now = this.#clock.now();
    const counts = new Map(busy);
    const due: DeliveryEntry[] = [];
    let nextAt = Number.POSITIVE_INFINITY;
    for (const entry of this.#open.get(route) ?? []) {
      const { dueAt } = entry.state;
      if (dueAt === undefined) continue;
      if (dueAt <= now) due.push(entry);
      else nextAt = Math.min(nextAt, dueAt);
    }
    const claims: DeliveryClaim[] = [];
    for (const entry of due.sort(byDueTime)) {
      const count = counts.get(entry.lane) ?? 0;
      if (claims.length >= max || count >= perLane) continue;
      counts.set(entry.lane, count + 1);
      entry.claim++;
      this.#keep(entry, { ...entry.state, holder: node, dueAt: now + ttlMs });
      claims.push(toClaim(entry));
    }
    return { claims, nextInMs: nextAt === Number.POSITIVE_INFINITY ? undefined : nextAt - now };
  }

  pending({ after = 0, limit, dead = false, taskId }: PendingDeliveryQuery): PendingDelivery[] {
    return [...this.#open.values()]
      .flatMap((entries) => [...entries])
      .filter(({ place, state }) => place > after && (!dead || state.deadAt !== undefined))
      .filter(({ record }) => taskId === undefined || record.id === taskId)
      .sort((one, other) => one.place - other.place)
      .slice(0, limit)
      .map(toPending);
  }

  redeliver({ taskId, deliveryId, from }: Redelivery): Redelivered[] {
    const made: Redelivered[] = [];
    for (const [record, entries] of this.#byTask) {
      if (taskId !== undefined && record.id !== taskId) continue;
      for (const entry of entries.values()) {
        if (taskId !== undefined && deliveryId !== undefined && entry.delivery.id !== deliveryId) continue;
        const { state } = entry;
        const failing = state.deadAt !== undefined || (taskId !== undefined && state.attempts > 0);
        if (!failing && (taskId === undefined || from === undefined)) continue;
        const first = taskId === undefined || from === undefined ? state.cursor : Math.max(from - 1, 0);
        entry.claim++;
        const cursor = Math.min(state.cursor, first);
        this.#keep(entry, { ...INITIAL_STATE, cursor, dueAt: this.#clock.now() });
        const { id, dialect } = entry.delivery;
        made.push({ taskId: record.id, deliveryId: id, dialect, scope: record.scope });
      }
    }
    return made;
  }

  #remove(entry: DeliveryEntry): void {
    const { record, delivery } = entry;
    const entries = this.#byTask.get(record);
    entries?.delete(keyOf(groupOf(delivery.route), delivery.id));
    if (entries?.size === 0) this.#byTask.delete(record);
    this.#close(entry);
  }

  #close(entry: DeliveryEntry): void {
    const { route } = entry.delivery;
    const entries = this.#open.get(route);
    entries?.delete(entry);
    if (entries?.size === 0) this.#open.delete(route);
  }

  #keep(entry: DeliveryEntry, state: DeliveryState): void {
    entry.state = state;
    // At the end again: of two that are due at the same moment, the one that came back last is behind.
    this.#close(entry);
    if (state.dueAt === undefined && state.deadAt === undefined) return;
    const { route } = entry.delivery;
    const entries = this.#open.get(route) ?? new Set();
    this.#open.set(route, entries.add(entry));
  }
}

const INITIAL_STATE = { attempts: 0, holder: undefined, lastError: undefined, deadAt: undefined };

function keyOf(group: DeliveryGroup, id: string): string {
  return `${group} ${id}`;
}

function byDueTime(one: DeliveryEntry, other: DeliveryEntry): number {
  return (one.state.dueAt ?? 0) - (other.state.dueAt ?? 0);
}

function toStored({ delivery, state }: DeliveryEntry): StoredDelivery {
  return { ...delivery, cursor: state.cursor };
}

function toClaim(entry: DeliveryEntry): DeliveryClaim {
  const { place, claim, lane, record, state } = entry;
  return { delivery: toStored(entry), place, claim, attempts: state.attempts, lane, scope: record.scope };
}

function toPending({ place, record, delivery, state }: DeliveryEntry): PendingDelivery {
  const { cursor, attempts, dueAt, lastError, deadAt } = state;
  return {
    place,
    taskId: record.id,
    deliveryId: delivery.id,
    route: delivery.route,
    address: delivery.address,
    dialect: delivery.dialect,
    scope: record.scope,
    cursor,
    number: record.number,
    attempts,
    dueAt,
    lastError,
    deadAt,
  };
}
