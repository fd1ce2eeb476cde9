import type { LogEntry } from "../../model/event.ts";
import type { Clock } from "../../model/ports.ts";
import { isTerminal } from "../../model/task.ts";
import type {
  Append,
  DeliveryDelete,
  DeliveryProgress,
  DeliveryPut,
  Discard,
  Remember,
  RequestCancel,
  Submit,
  Write,
  WriteResult,
} from "../contract.ts";
import {
  acceptWrite,
  assertOneWritePerTask,
  findRefusal,
  joinEffects,
  leaseAfterAppend,
  leaseAtSubmit,
  NO_EFFECTS,
  statusTime,
} from "../rules.ts";
import { encodeSegment } from "../segment.ts";
import type { Liveness } from "../single-process.ts";
import type { Connection } from "./connection.ts";
import type { CommitCounters } from "./counters.ts";
import { fallBackIfDamaged, isDamage } from "./damage.ts";
import type { Deliveries } from "./deliveries.ts";
import type { DeliveryOutbox } from "./delivery-claims.ts";
import type { SqliteStatement } from "./driver.ts";
import type { IdempotencyKeys } from "./idempotency-keys.ts";
import { hasMessages } from "./reader.ts";
import type { Records } from "./records.ts";
import { columns, STATE_CODES, type StoredText, stateOf, textOrNull, textOrUndefined, toText } from "./rows.ts";

interface GuardRow {
  readonly seq: number;
  readonly scope: number;
  readonly state: number;
  readonly number: number;
  readonly fence: number;
  readonly node: StoredText | null;
  readonly turn: number;
  readonly attempt: number;
  readonly status_ts: number;
  readonly stamp: number;
  readonly message_segment: number | null;
  readonly deliveries: number;
  /** Only a discard asks for these. */
  readonly bytes?: number;
  readonly idempotency_key?: StoredText | null;
}

const GUARD_COLUMNS = "seq, scope, state, number, fence, turn, attempt, status_ts, stamp, message_segment, deliveries";

/** A task as a write finds it, within the transaction. */
type FoundTask = ReturnType<typeof fromGuardRow>;

interface WriterParts {
  readonly connection: Connection;
  readonly clock: Clock;
  readonly liveness: Liveness;
  readonly keys: IdempotencyKeys;
  readonly counters: CommitCounters;
  readonly deliveries: Deliveries;
  readonly outbox: DeliveryOutbox;
  readonly records: Records;
}

/** All changes that callers ask for: one transaction per group, each write judged by the rows as it finds them. */
export class Writer {
  readonly #connection: Connection;
  readonly #clock: Clock;
  readonly #liveness: Liveness;
  readonly #keys: IdempotencyKeys;
  readonly #counters: CommitCounters;
  readonly #deliveries: Deliveries;
  readonly #outbox: DeliveryOutbox;
  readonly #records: Records;
  readonly #statements: ReturnType<typeof prepare>;
  #nextSeq: number;

  constructor({ connection, clock, liveness, keys, counters, deliveries, outbox, records }: WriterParts) {
    this.#connection = connection;
    this.#clock = clock;
    this.#liveness = liveness;
    this.#keys = keys;
    this.#counters = counters;
    this.#deliveries = deliveries;
    this.#outbox = outbox;
    this.#records = records;
    this.#statements = prepare(connection);
    this.#nextSeq = (this.#statements.maxSeq.get()?.seq ?? 0) + 1;
  }

  write(writes: readonly Write[]): WriteResult[] {
    if (writes.length === 0) return [];
    assertOneWritePerTask(writes);
    return fallBackIfDamaged(
      () => this.#counters.commit(() => writes.map((write) => this.#apply(write))),
      () => writes.map((write) => this.#applyAlone(write)),
    );
  }

  /** A task that cannot be read does not exist for those who write to it, and is in no other's way. */
  #applyAlone(write: Write): WriteResult {
    try {
      return this.#counters.commit(() => this.#apply(write));
    } catch (error) {
      if (write.kind === "submit" || !("id" in write) || !isDamage(error)) throw error;
      this.#connection.reportDamage(`task ${write.id}`, error);
      return { ok: false, refusal: "missing" };
    }
  }

  #apply(write: Write): WriteResult {
    if (write.kind === "submit") return this.#submit(write);
    if (write.kind === "record-put" || write.kind === "record-delete") return this.#records.write(write);
    const { guard, guardOfDiscard } = this.#statements;
    const row = (write.kind === "discard" ? guardOfDiscard : guard).get(toText(write.id));
    const task = row === undefined ? undefined : fromGuardRow(row);
    if (write.kind === "delivery-put" || write.kind === "delivery-delete") return this.#register(task, write);
    if (write.kind === "delivery-progress") return this.#progress(task, write);
    if (write.kind === "append" && task !== undefined && write.idempotency !== undefined) {
      const record = this.#keys.find(task.scope, write.idempotency.key);
      if (record !== undefined) return { ok: false, refusal: "duplicate", record };
    }
    const refusal = findRefusal(task, write, this.#liveness);
    if (refusal !== undefined) return { ok: false, refusal };
    return this.#change(task as FoundTask, write);
  }

  #submit(write: Submit): WriteResult {
    const scope = this.#connection.internScope(write);
    const { idempotency, status, entries } = write;
    if (idempotency !== undefined) {
      const record = this.#keys.find(scope, idempotency.key);
      if (record !== undefined) return { ok: false, refusal: "duplicate", record };
    }
    const now = this.#clock.now();
    const ended = isTerminal(status.state);
    const lease = leaseAtSubmit(write);
    const seq = this.#nextSeq;
    const number = entries.length;
    const messages = hasMessages(entries);
    const metadata = metadataOf(entries);
    const body = encodeSegment(entries);
    const bytes = Buffer.byteLength(body);
    const added = this.#statements.addTask.run(
      seq,
      toText(write.id),
      scope,
      toText(write.contextId),
      STATE_CODES[status.state],
      ended ? 0 : 1,
      JSON.stringify(status),
      statusTime(status, now),
      ended ? now : null,
      this.#counters.nextStamp,
      now,
      number,
      lease.fence,
      textOrNull(lease.node),
      lease.turn,
      lease.attempt,
      messages ? number : null,
      toText(write.dialect),
      textOrNull(idempotency?.key),
      metadata,
      bytes,
    );
    if (added === 0) return { ok: false, refusal: "exists" };
    this.#nextSeq++;
    this.#addSegment(seq, entries, body, null, ended);
    this.#counters.addTasks(scope, status.state, 1);
    this.#counters.addBytes(scope, bytes);
    this.#counters.events += number;
    if (lease.node !== undefined) this.#liveness.recordLease(lease.node);
    if (idempotency !== undefined) this.#keys.add(scope, write.id, idempotency);
    if (write.deliveries === undefined) return { ok: true, number, fence: lease.fence };
    const task = { id: write.id, seq, scope, number, state: status.state };
    return acceptWrite(number, lease.fence, this.#deliveries.put(task, write.deliveries, 0, write.notifyAfterMs));
  }

  #register(task: FoundTask | undefined, write: DeliveryPut | DeliveryDelete): WriteResult {
    if (task === undefined || task.scope !== this.#connection.findScope(write))
      return { ok: false, refusal: "missing" };
    const { number, fence } = task;
    this.#counters.markChanged();
    if (write.kind === "delivery-put") {
      const { id, delivery, after = number } = write;
      return acceptWrite(number, fence, this.#deliveries.put({ ...task, id }, [delivery], after));
    }
    this.#deliveries.delete(task.seq, write.group, write.deliveryId);
    return { ok: true, number, fence };
  }

  #progress(task: FoundTask | undefined, write: DeliveryProgress): WriteResult {
    const result = task === undefined ? "missing" : this.#outbox.progress(task, write);
    if (task === undefined || typeof result === "string") {
      return { ok: false, refusal: result === "fenced" ? "fenced" : "missing" };
    }
    return acceptWrite(task.number, task.fence, result);
  }

  #change(task: FoundTask, write: Append | Discard | RequestCancel | Remember): WriteResult {
    switch (write.kind) {
      case "append":
        return this.#append(task, write);
      case "discard":
        this.#discard(task, write);
        break;
      case "request-cancel":
        return this.#requestCancel(task, write);
      case "remember":
        if (write.value === undefined) this.#statements.forget.run(task.seq, toText(write.key));
        else this.#statements.remember.run(task.seq, toText(write.key), toText(write.value));
        break;
    }
    this.#counters.markChanged();
    return { ok: true, number: task.number, fence: task.fence };
  }

  #requestCancel({ seq, number, fence }: FoundTask, { take }: RequestCancel): WriteResult {
    this.#counters.markChanged();
    this.#statements.requestCancel.run(seq);
    if (take === undefined) return { ok: true, number, fence };
    this.#statements.takeLease.run(toText(take), seq);
    this.#liveness.recordLease(take);
    return { ok: true, number, fence: fence + 1 };
  }

  #discard(task: FoundTask, { id, reply }: Discard): void {
    if (task.idempotencyKey !== undefined) this.#keys.setReply(task.scope, task.idempotencyKey, id, reply);
    this.#counters.removeTask(task);
  }

  #append(task: FoundTask, write: Append): WriteResult {
    const { entries, status } = write;
    const lease = leaseAfterAppend(task, write);
    const number = task.number + entries.length;
    const messages = hasMessages(entries) ? number : task.messageSegment;
    const body = encodeSegment(entries);
    const bytes = Buffer.byteLength(body);
    this.#addSegment(task.seq, entries, body, task.messageSegment, status !== undefined && isTerminal(status.state));
    if (bytes > 0) this.#counters.addBytes(task.scope, bytes);
    const run = [number, lease.fence, textOrNull(lease.node), lease.turn, lease.attempt, messages, bytes] as const;
    if (status === undefined) this.#statements.advance.run(...run, task.seq);
    else {
      const stamp = this.#counters.nextStamp;
      const now = this.#clock.now();
      if (this.#counters.isViewed(task.stamp)) {
        const position = [task.scope, task.statusTime, toText(write.id)] as const;
        this.#statements.addPastPosition.run(...position, stamp, task.stamp, task.seq, now);
      }
      const end = isTerminal(status.state) ? ([0, now] as const) : ([1, null] as const);
      const moved = [
        STATE_CODES[status.state],
        ...end,
        JSON.stringify(status),
        statusTime(status, now),
        stamp,
      ] as const;
      this.#statements.advanceStatus.run(...run, ...moved, task.seq);
      if (status.state !== task.state) {
        this.#counters.addTasks(task.scope, task.state, -1);
        this.#counters.addTasks(task.scope, status.state, 1);
      }
    }
    this.#counters.events += entries.length;
    this.#counters.markChanged();
    if (typeof write.lease === "object") this.#liveness.recordLease(write.lease.take);
    if (write.idempotency !== undefined) this.#keys.add(task.scope, write.id, write.idempotency);
    const { state } = status ?? task;
    const grown = task.deliveries && entries.length > 0 ? this.#outbox.markDue(task.seq, state) : NO_EFFECTS;
    if (write.deliveries === undefined) return acceptWrite(number, lease.fence, grown);
    const { seq, scope } = task;
    const put = this.#deliveries.put({ id: write.id, seq, scope, number, state }, write.deliveries, task.number);
    return acceptWrite(number, lease.fence, joinEffects(grown, put));
  }

  #addSegment(seq: number, entries: readonly LogEntry[], body: string, earlier: number | null, ended: boolean): void {
    const first = entries[0];
    const last = entries.at(-1);
    if (first === undefined || last === undefined) return;
    this.#statements.addSegment.run(seq, last.number, first.number, earlier, ended ? 1 : 0, body);
  }
}

function prepare({ driver }: Connection) {
  return {
    maxSeq: driver.prepare<{ seq: number | null }>("SELECT max(seq) AS seq FROM task"),
    guard: driver.prepare<GuardRow>(`SELECT ${columns(GUARD_COLUMNS, "node")} FROM task WHERE id = ?`),
    guardOfDiscard: driver.prepare<GuardRow>(
      `SELECT ${columns(`${GUARD_COLUMNS}, bytes`, "node, idempotency_key")} FROM task WHERE id = ?`,
    ),
    addTask: driver.prepare(
      `INSERT INTO task (seq, id, scope, context, state, open, status, status_ts, ended_at, stamp, created_at,
         number, fence, node, turn, attempt, message_segment, dialect, idempotency_key, metadata, bytes)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`,
    ),
    addSegment: driver.prepare(
      "INSERT INTO segment (task, last, first, earlier, terminal, body) VALUES (?, ?, ?, ?, ?, ?)",
    ),
    addPastPosition: driver.prepare(
      "INSERT INTO past_position (scope, status_ts, id, until, since, task, left_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
    ),
    advance: driver.prepare(
      `UPDATE task SET number = ?, fence = ?, node = ?, turn = ?, attempt = ?, message_segment = ?, bytes = bytes + ?
       WHERE seq = ?`,
    ),
    advanceStatus: driver.prepare(
      `UPDATE task SET number = ?, fence = ?, node = ?, turn = ?, attempt = ?, message_segment = ?, bytes = bytes + ?,
         state = ?, open = ?, ended_at = ?, status = ?, status_ts = ?, stamp = ? WHERE seq = ?`,
    ),
    requestCancel: driver.prepare("UPDATE task SET cancel = 1 WHERE seq = ?"),
    takeLease: driver.prepare("UPDATE task SET node = ?, fence = fence + 1 WHERE seq = ?"),
    remember: driver.prepare("INSERT OR REPLACE INTO memory (task, key, value) VALUES (?, ?, ?)"),
    forget: driver.prepare("DELETE FROM memory WHERE task = ? AND key = ?"),
  } satisfies Record<string, SqliteStatement<object>>;
}

function fromGuardRow(row: GuardRow) {
  return {
    seq: row.seq,
    scope: row.scope,
    state: stateOf(row.state),
    number: row.number,
    fence: row.fence,
    node: textOrUndefined(row.node),
    turn: row.turn,
    attempt: row.attempt,
    statusTime: row.status_ts,
    stamp: row.stamp,
    messageSegment: row.message_segment,
    deliveries: row.deliveries === 1,
    bytes: row.bytes ?? 0,
    idempotencyKey: textOrUndefined(row.idempotency_key),
  };
}

function metadataOf(entries: readonly LogEntry[]): string | null {
  const event = entries[0]?.event;
  const metadata = event !== undefined && "task" in event ? event.task.metadata : undefined;
  return metadata === undefined ? null : JSON.stringify(metadata);
}
