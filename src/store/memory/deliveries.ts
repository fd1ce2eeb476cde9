import type { Clock } from "../../model/ports.ts";
import type {
  OwnedPushConfig,
  PushClaim,
  PushClaimQuery,
  PushClaims,
  PushConfigList,
  PushConfigQuery,
  PushDelivery,
  PushDeliveryQuery,
  PushProgress,
  PushRegistration,
  Redelivered,
  Redelivery,
  StoredPushConfig,
} from "../contract.ts";
import { applyPushProgress, hostOf, type PushState } from "../rules.ts";
import type { TaskRecord } from "./task-record.ts";

interface ConfigEntry {
  readonly place: number;
  readonly record: TaskRecord;
  config: Omit<StoredPushConfig, "cursor">;
  host: string;
  state: PushState;
  claim: number;
}

/** The push configs of all tasks. Apart from the tasks, because most have none and should not pay for a member. */
export class PushConfigs {
  readonly #clock: Clock;
  /** By id, in the order of creation: replacing a value keeps its place in a map. */
  readonly #byTask = new Map<TaskRecord, Map<string, ConfigEntry>>();
  /** Those that have something left to tell, or were given up. */
  readonly #open = new Set<ConfigEntry>();
  #lastPlace = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The record knows how far its log goes. Says whether a config has something to tell at once. */
  put(record: TaskRecord, configs: readonly PushRegistration[], cursor: number, notifyAfter = 0): boolean {
    return configs.map((config) => this.#putOne(record, config, cursor, notifyAfter)).includes(true);
  }

  #putOne(record: TaskRecord, registered: PushRegistration, cursor: number, notifyAfter: number): boolean {
    const known = this.#byTask.get(record);
    const configs = known ?? new Map<string, ConfigEntry>();
    if (known === undefined) this.#byTask.set(record, configs);
    const now = this.#clock.now();
    const earlier = configs.get(registered.id);
    const from = earlier?.state.cursor ?? cursor;
    const config = { ...registered, taskId: record.id, createdAt: earlier?.config.createdAt ?? now };
    const state = {
      ...INITIAL_STATE,
      cursor: from,
      dueAt: from < record.number ? Math.max(now, notifyAfter) : undefined,
    };
    const place = earlier?.place ?? ++this.#lastPlace;
    if (earlier !== undefined) this.#open.delete(earlier);
    const placed = { place, record, config, host: hostOf(registered.url), state, claim: (earlier?.claim ?? 0) + 1 };
    configs.set(registered.id, placed);
    this.#keep(placed, state);
    return state.dueAt !== undefined && state.dueAt <= now;
  }

  delete(record: TaskRecord, configId: string): void {
    const configs = this.#byTask.get(record);
    const placed = configs?.get(configId);
    if (configs === undefined || placed === undefined) return;
    configs.delete(configId);
    this.#open.delete(placed);
    if (configs.size === 0) this.#byTask.delete(record);
  }

  /** The task is gone. */
  deleteAll(record: TaskRecord): void {
    for (const placed of this.#byTask.get(record)?.values() ?? []) this.#open.delete(placed);
    this.#byTask.delete(record);
  }

  get(record: TaskRecord | undefined, configId: string): OwnedPushConfig | undefined {
    if (record === undefined) return undefined;
    const found = this.#byTask.get(record)?.get(configId);
    return found === undefined ? undefined : { config: toStoredConfig(found), scope: record.scope };
  }

  list(record: TaskRecord | undefined, { after = 0, limit }: PushConfigQuery): PushConfigList | undefined {
    if (record === undefined) return undefined;
    const following: ConfigEntry[] = [];
    for (const placed of this.#byTask.get(record)?.values() ?? []) {
      if (placed.place > after && following.push(placed) > limit) break;
    }
    const shown = following.slice(0, limit);
    const last = shown.at(-1);
    return {
      configs: shown.map(toStoredConfig),
      ...(following.length > shown.length && last !== undefined ? { next: last.place } : undefined),
      scope: record.scope,
    };
  }

  /** The task has events that its configs do not know. Says whether that makes one due. */
  markDue(record: TaskRecord): boolean {
    if (this.#byTask.size === 0) return false;
    let due = false;
    for (const placed of this.#byTask.get(record)?.values() ?? []) {
      const { state } = placed;
      const now = this.#clock.now();
      if (state.holder !== undefined || state.deadAt !== undefined || state.attempts > 0) continue;
      if (state.dueAt !== undefined && state.dueAt <= now) continue;
      this.#keep(placed, { ...state, dueAt: now });
      due = true;
    }
    return due;
  }

  progress(record: TaskRecord, write: PushProgress): "missing" | "fenced" | boolean {
    const placed = [...(this.#byTask.get(record)?.values() ?? [])].find(({ place }) => place === write.place);
    if (placed === undefined) return "missing";
    if (placed.claim !== write.claim || placed.state.holder === undefined) return "fenced";
    const now = this.#clock.now();
    const state = applyPushProgress(placed.state, write, record.number, now);
    this.#keep(placed, state);
    return state.holder === undefined && state.dueAt !== undefined && state.dueAt <= now;
  }

  claim({ node, max, ttlMs, perHost, busy }: PushClaimQuery): PushClaims {
    const now = this.#clock.now();
    const counts = new Map(busy);
    const waiting = [...this.#open].filter(({ state }) => state.dueAt !== undefined).sort(byDueTime);
    const claims: PushClaim[] = [];
    let nextAt: number | undefined;
    for (const placed of waiting) {
      const dueAt = placed.state.dueAt as number;
      if (dueAt > now) {
        nextAt = dueAt;
        break;
      }
      const count = counts.get(placed.host) ?? 0;
      if (claims.length >= max || count >= perHost) continue;
      counts.set(placed.host, count + 1);
      placed.claim++;
      this.#keep(placed, { ...placed.state, holder: node, dueAt: now + ttlMs });
      const { place, claim, host, record } = placed;
      const { attempts } = placed.state;
      claims.push({ config: toStoredConfig(placed), place, claim, attempts, host, scope: record.scope });
    }
    return { claims, ...(nextAt === undefined ? undefined : { nextAt }) };
  }

  deliveries({ after = 0, limit, dead = false, taskId }: PushDeliveryQuery): PushDelivery[] {
    return [...this.#open]
      .filter(({ place, state }) => place > after && (!dead || state.deadAt !== undefined))
      .filter(({ record }) => taskId === undefined || record.id === taskId)
      .sort((one, other) => one.place - other.place)
      .slice(0, limit)
      .map(toDelivery);
  }

  redeliver({ taskId, configId, from }: Redelivery): Redelivered[] {
    const due: Redelivered[] = [];
    for (const [record, configs] of this.#byTask) {
      if (taskId !== undefined && record.id !== taskId) continue;
      for (const placed of configs.values()) {
        if (taskId !== undefined && configId !== undefined && placed.config.id !== configId) continue;
        const { state } = placed;
        const failing = state.deadAt !== undefined || (taskId !== undefined && state.attempts > 0);
        if (!failing && (taskId === undefined || from === undefined)) continue;
        const first = taskId === undefined || from === undefined ? state.cursor : Math.max(from - 1, 0);
        placed.claim++;
        this.#keep(placed, { ...INITIAL_STATE, cursor: Math.min(state.cursor, first), dueAt: this.#clock.now() });
        const { id, dialect } = placed.config;
        due.push({ taskId: record.id, configId: id, dialect, scope: record.scope });
      }
    }
    return due;
  }

  #keep(placed: ConfigEntry, state: PushState): void {
    placed.state = state;
    // At the end again: of two that are due at the same moment, the one that came back last is behind.
    this.#open.delete(placed);
    if (state.dueAt !== undefined || state.deadAt !== undefined) this.#open.add(placed);
  }
}

const INITIAL_STATE = { attempts: 0, holder: undefined, lastError: undefined, deadAt: undefined };

function byDueTime(one: ConfigEntry, other: ConfigEntry): number {
  return (one.state.dueAt ?? 0) - (other.state.dueAt ?? 0);
}

function toStoredConfig({ config, state }: ConfigEntry): StoredPushConfig {
  return { ...config, cursor: state.cursor };
}

function toDelivery({ place, record, config, state }: ConfigEntry): PushDelivery {
  const { cursor, attempts, dueAt, lastError, deadAt } = state;
  return {
    place,
    taskId: record.id,
    configId: config.id,
    url: config.url,
    dialect: config.dialect,
    scope: record.scope,
    cursor,
    number: record.number,
    attempts,
    ...(dueAt === undefined ? undefined : { dueAt }),
    ...(lastError === undefined ? undefined : { lastError }),
    ...(deadAt === undefined ? undefined : { deadAt }),
  };
}
