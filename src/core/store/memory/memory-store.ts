import type { Clock } from "../../model/ports.ts";
import { isTerminal, STATE_CLASS, type TaskState } from "../../model/task.ts";
import {
  type Append,
  type DeliveryDelete,
  type DeliveryProgress,
  type DeliveryPut,
  type Discard,
  type IdempotencyClaim,
  type IdempotencyRecord,
  type IdempotencyScope,
  type Lease,
  LIST_VIEW_MS,
  type ListPage,
  type ListQuery,
  type Remember,
  type RequestCancel,
  type Scope,
  type StoreStats,
  type Submit,
  type TaskStore,
  type Write,
  type WriteResult,
} from "../contract.ts";
import {
  acceptWrite,
  assertOneWritePerTask,
  findRefusal,
  joinEffects,
  NO_EFFECTS,
  scopeKey,
  statusTime,
  takePage,
} from "../rules.ts";
import { createLiveness, createWakeups, type Liveness, parseView } from "../single-process.ts";
import { Deliveries } from "./deliveries.ts";
import { Records } from "./records.ts";
import { ScopeIndex } from "./scope-index.ts";
import { OwnerUsageCounter, TaskRecord } from "./task-record.ts";

/** Tasks for as long as the process lives. Every call does its work at once; its promise is already resolved. */
export function createMemoryStore(options: { readonly clock: Clock }): TaskStore {
  const core = new MemoryCore(options.clock);
  return {
    description: "memory",
    durable: false,
    wakeups: createWakeups(),
    write: async (writes) => core.write(writes),
    head: (id) => Promise.resolve(core.tasks.get(id)?.head()),
    snapshot: (id, how) => Promise.resolve(core.tasks.get(id)?.snapshot(how)),
    read: (cursors, limit) =>
      Promise.resolve(cursors.map(({ id, after }) => core.tasks.get(id)?.read(after, limit) ?? { kind: "missing" })),
    numbers: (ids) => Promise.resolve(ids.map((id) => core.tasks.get(id)?.number ?? 0)),
    list: (query) => Promise.resolve(core.list(query)),
    findIdempotencyRecord: (key) => Promise.resolve(core.findIdempotencyRecord(key)),
    heartbeat: (node, ttlMs) => Promise.resolve(core.heartbeat(node, ttlMs)),
    claim: (node, agents, max) => Promise.resolve(core.claim(node, agents, max)),
    memory: (id) => Promise.resolve(new Map(core.tasks.get(id)?.memory)),
    delivery: (id, group, deliveryId) => Promise.resolve(core.deliveries.get(core.tasks.get(id), group, deliveryId)),
    deliveries: (id, query) => Promise.resolve(core.deliveries.list(core.tasks.get(id), query)),
    claimDeliveries: (query) => Promise.resolve(core.deliveries.claim(query)),
    pendingDeliveries: (query) => Promise.resolve(core.deliveries.pending(query)),
    redeliver: (redelivery) => Promise.resolve(core.deliveries.redeliver(redelivery)),
    record: (space, key) => Promise.resolve(core.records.get(space, key)),
    records: (space, query) => Promise.resolve(core.records.list(space, query)),
    compact: (ageMs, max) => Promise.resolve(core.compact(ageMs, max)),
    prune: (ageMs, max) => Promise.resolve(core.prune(ageMs, max)),
    storedBytes: (owner) => Promise.resolve(core.storedBytes(owner)),
    stats: () => Promise.resolve(core.stats()),
    close: () => Promise.resolve(),
  };
}

class MemoryCore {
  readonly tasks = new Map<string, TaskRecord>();
  readonly deliveries: Deliveries;
  readonly records: Records;
  readonly #scopes = new Map<string, ScopeIndex>();
  readonly #usage = new OwnerUsageCounter();
  /** Tasks that a node runs, should run or waits with: few, however many have ended. */
  readonly #unended = new Set<TaskRecord>();
  /** In the order they ended. At the front are those that were pruned, then those that were compacted. */
  readonly #ended: TaskRecord[] = [];
  #pruned = 0;
  #compacted = 0;
  readonly #liveness: Liveness;
  readonly #clock: Clock;
  #lastScope: ScopeIndex | undefined;
  #commit = 0;
  /** The newest commit that a list of several pages began at: no list shows a position that was taken and left since. */
  #viewed = -1;
  #events = 0;
  #earliestExpiry = Number.POSITIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#liveness = createLiveness(clock);
    this.deliveries = new Deliveries(clock);
    this.records = new Records(clock);
  }

  write(writes: readonly Write[]): WriteResult[] {
    assertOneWritePerTask(writes);
    this.#commit++;
    const results: WriteResult[] = [];
    for (const write of writes) results.push(this.#apply(write));
    return results;
  }

  #apply(write: Write): WriteResult {
    if (write.kind === "submit") return this.#submit(write);
    if (write.kind === "record-put" || write.kind === "record-delete") return this.records.write(write);
    const record = this.tasks.get(write.id);
    if (write.kind === "delivery-put" || write.kind === "delivery-delete") return this.#register(record, write);
    if (write.kind === "delivery-progress") return this.#progress(record, write);
    const duplicate = write.kind === "append" ? this.#duplicate(record?.scope, write.idempotency) : undefined;
    if (duplicate !== undefined) return duplicate;
    const refusal = findRefusal(record, write, this.#liveness);
    if (refusal !== undefined) return { ok: false, refusal };
    return this.#change(record as TaskRecord, write);
  }

  #submit(write: Submit): WriteResult {
    const scope = this.#scopeOf(write);
    const duplicate = this.#duplicate(scope, write.idempotency);
    if (duplicate !== undefined) return duplicate;
    if (this.tasks.has(write.id)) return { ok: false, refusal: "exists" };
    const now = this.#clock.now();
    const record = new TaskRecord(scope, write, now);
    this.tasks.set(write.id, record);
    scope.add(record, statusTime(write.status, now), this.#commit);
    this.#events += record.number;
    this.#usage.addTask(record);
    if (isTerminal(write.status.state)) this.#end(record, now);
    else this.#unended.add(record);
    if (record.node !== undefined) this.#liveness.recordLease(record.node);
    this.#retain(record, write.idempotency);
    const { number, fence } = record;
    if (write.deliveries === undefined) return { ok: true, number, fence };
    return acceptWrite(number, fence, this.deliveries.put(record, write.deliveries, 0, write.notifyAfterMs));
  }

  #register(record: TaskRecord | undefined, write: DeliveryPut | DeliveryDelete): WriteResult {
    if (record === undefined || !record.scope.isScope(write)) return { ok: false, refusal: "missing" };
    const { number, fence } = record;
    if (write.kind === "delivery-put") {
      return acceptWrite(number, fence, this.deliveries.put(record, [write.delivery], write.after ?? number));
    }
    this.deliveries.delete(record, write.group, write.deliveryId);
    return { ok: true, number, fence };
  }

  #progress(record: TaskRecord | undefined, write: DeliveryProgress): WriteResult {
    const result = record === undefined ? "missing" : this.deliveries.progress(record, write);
    if (record === undefined || typeof result === "string") {
      return { ok: false, refusal: result === "fenced" ? "fenced" : "missing" };
    }
    return acceptWrite(record.number, record.fence, result);
  }

  #duplicate(scope: ScopeIndex | undefined, claim: IdempotencyClaim | undefined): WriteResult | undefined {
    if (scope === undefined || claim === undefined) return undefined;
    const known = scope.keys.get(claim.key);
    if (known === undefined || known.expiresAt <= this.#clock.now()) return undefined;
    return { ok: false, refusal: "duplicate", record: known.record };
  }

  #retain(record: TaskRecord, claim: IdempotencyClaim | undefined): void {
    if (claim === undefined) return;
    const { key, fingerprint, ttlMs } = claim;
    const expiresAt = this.#clock.now() + ttlMs;
    record.scope.keys.set(key, { record: { fingerprint, taskId: record.id, reply: undefined }, expiresAt });
    this.#earliestExpiry = Math.min(this.#earliestExpiry, expiresAt);
  }

  #change(record: TaskRecord, write: Append | Discard | RequestCancel | Remember): WriteResult {
    switch (write.kind) {
      case "append":
        return this.#append(record, write);
      case "discard": {
        const { idempotencyKey, scope } = record;
        const kept = idempotencyKey === undefined ? undefined : scope.keys.get(idempotencyKey);
        if (kept?.record.taskId === record.id) kept.record = { ...kept.record, reply: write.reply };
        this.#remove(record);
        break;
      }
      case "request-cancel":
        record.cancelRequested = true;
        if (write.take !== undefined) {
          record.setLease({ fence: record.fence + 1, node: write.take, turn: record.turn, attempt: record.attempt });
          this.#liveness.recordLease(write.take);
        }
        break;
      case "remember":
        if (write.value === undefined) record.memory?.delete(write.key);
        else {
          record.memory ??= new Map();
          record.memory.set(write.key, write.value);
        }
        break;
    }
    return { ok: true, number: record.number, fence: record.fence };
  }

  #append(record: TaskRecord, write: Append): WriteResult {
    const before = record.status.state;
    record.append(write);
    this.#retain(record, write.idempotency);
    this.#events += write.entries.length;
    this.#usage.markChanged(record);
    if (typeof write.lease === "object") this.#liveness.recordLease(write.lease.take);
    if (write.status !== undefined) {
      const now = this.#clock.now();
      const viewed = record.listEntry !== undefined && record.listEntry.since <= this.#viewed;
      const left = viewed ? { commit: this.#commit, at: now } : undefined;
      record.scope.move(record, before, statusTime(write.status, now), this.#commit, left);
      if (isTerminal(write.status.state)) this.#end(record, now);
    }
    const { number, fence } = record;
    const grown = write.entries.length > 0 ? this.deliveries.markDue(record) : NO_EFFECTS;
    if (write.deliveries === undefined) return acceptWrite(number, fence, grown);
    return acceptWrite(number, fence, joinEffects(grown, this.deliveries.put(record, write.deliveries, write.expect)));
  }

  #end(record: TaskRecord, now: number): void {
    record.endedAt = now;
    this.#unended.delete(record);
    this.#ended.push(record);
  }

  #remove(record: TaskRecord): void {
    this.tasks.delete(record.id);
    this.#unended.delete(record);
    this.deliveries.deleteAll(record);
    this.#events -= record.number;
    this.#usage.removeTask(record);
    record.scope.remove(record);
  }

  list(query: ListQuery): ListPage {
    const scope = this.#scopes.get(scopeKey(query));
    if (scope === undefined) return { tasks: [], total: 0 };
    const found = scope.page(query, query.after && parseView(query.after.view));
    const { tasks } = takePage(found.slice(0, query.limit), query.maxCharacters, ({ record }) => record.toTask(query));
    if (query.firstPageOnly === true) return { tasks, total: tasks.length };
    const last = found[tasks.length - 1];
    const total = scope.total(query);
    if (last === undefined || found.length <= tasks.length) return { tasks, total };
    if (query.after === undefined) this.#viewed = this.#commit;
    const view = query.after?.view ?? String(this.#commit);
    return { tasks, total, next: { timestamp: last.timestamp, id: last.record.id, view } };
  }

  findIdempotencyRecord(key: IdempotencyScope): IdempotencyRecord | undefined {
    const known = this.#scopes.get(scopeKey(key))?.keys.get(key.key);
    return known !== undefined && known.expiresAt > this.#clock.now() ? known.record : undefined;
  }

  heartbeat(node: string, ttlMs: number): string[] {
    this.#liveness.heartbeat(node, ttlMs);
    const cancelled: string[] = [];
    for (const record of this.#unended) {
      if (record.cancelRequested && record.node === node) cancelled.push(record.id);
    }
    return cancelled;
  }

  claim(node: string, agents: readonly string[], max: number): Lease[] {
    const leases: Lease[] = [];
    for (const record of this.#unended) {
      if (leases.length >= max) break;
      if (!this.#isAbandoned(record, node) || !agents.includes(record.scope.agent)) continue;
      record.setLease({ fence: record.fence + 1, node, turn: record.turn, attempt: record.attempt + 1 });
      leases.push({ head: record.head(), fence: record.fence });
    }
    if (leases.length > 0) this.#liveness.recordLease(node);
    return leases;
  }

  #isAbandoned(record: TaskRecord, claimant: string): boolean {
    if (record.node === undefined) return STATE_CLASS[record.status.state] === "active";
    return record.node !== claimant && this.#liveness.isExpired(record.node);
  }

  compact(ageMs: number, max: number): number {
    const from = this.#compacted;
    const endedBy = this.#clock.now() - ageMs;
    for (const end = Math.min(from + max, this.#ended.length); this.#compacted < end; this.#compacted++) {
      const record = this.#ended[this.#compacted] as TaskRecord;
      if (record.endedAt > endedBy) break;
      record.compact();
      this.#usage.markChanged(record);
    }
    return this.#compacted - from;
  }

  prune(ageMs: number, max: number): number {
    const now = this.#clock.now();
    const from = this.#pruned;
    for (const end = Math.min(from + max, this.#ended.length); this.#pruned < end; this.#pruned++) {
      const record = this.#ended[this.#pruned] as TaskRecord;
      if (record.endedAt > now - ageMs) break;
      this.#remove(record);
    }
    const count = this.#pruned - from;
    this.#compacted = Math.max(this.#compacted, this.#pruned);
    this.#dropPruned();
    this.#forgetKeys();
    this.records.deleteExpired();
    for (const scope of this.#scopes.values()) {
      scope.dropPast(now - LIST_VIEW_MS);
      if (scope.size === 0 && scope.keys.size === 0) this.#forgetScope(scope);
    }
    return count;
  }

  /** Not after each batch: what is left of the array has to move. */
  #dropPruned(): void {
    if (this.#pruned * 8 < this.#ended.length) return;
    this.#ended.splice(0, this.#pruned);
    this.#compacted -= this.#pruned;
    this.#pruned = 0;
  }

  storedBytes(owner: string): number {
    return this.#usage.bytesOf(owner, this.tasks.values());
  }

  stats(): StoreStats {
    const byState: Partial<Record<TaskState, number>> = {};
    for (const scope of this.#scopes.values()) {
      for (const [state, size] of scope.stateSizes()) if (size > 0) byState[state] = (byState[state] ?? 0) + size;
    }
    return { tasks: this.tasks.size, byState, events: this.#events, bytes: 0, freeBytes: 0, schemaVersion: 0 };
  }

  #forgetKeys(): void {
    const now = this.#clock.now();
    if (this.#earliestExpiry > now) return;
    this.#earliestExpiry = Number.POSITIVE_INFINITY;
    for (const { keys } of this.#scopes.values()) {
      for (const [key, { expiresAt }] of keys) {
        if (expiresAt <= now) keys.delete(key);
        else this.#earliestExpiry = Math.min(this.#earliestExpiry, expiresAt);
      }
    }
  }

  #scopeOf(scope: Scope): ScopeIndex {
    if (this.#lastScope?.isScope(scope)) return this.#lastScope;
    const key = scopeKey(scope);
    let index = this.#scopes.get(key);
    if (index === undefined) {
      index = new ScopeIndex(scope);
      this.#scopes.set(key, index);
    }
    this.#lastScope = index;
    return index;
  }

  #forgetScope(scope: ScopeIndex): void {
    this.#scopes.delete(scopeKey(scope));
    if (this.#lastScope === scope) this.#lastScope = undefined;
  }
}
