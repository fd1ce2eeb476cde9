import type { Clock } from "../../model/ports.ts";
import { isTerminal } from "../../model/task.ts";
import type {
  Append,
  DeliveryDelete,
  DeliveryProgress,
  DeliveryPut,
  Discard,
  RecordWrite,
  Remember,
  RequestCancel,
  Submit,
  Write,
  WriteResult,
} from "../contract.ts";
import { type EncodedWrite, messageSegmentOf, type Segment, sizeOf } from "../encode-writes.ts";
import {
  acceptWrite,
  findRefusal,
  joinEffects,
  leaseAfterAppend,
  leaseAtSubmit,
  NO_EFFECTS,
  statusTime,
} from "../rules.ts";
import type { Liveness } from "../single-process.ts";
import { STATE_CODES, textOrNull, toText } from "../stored-text.ts";
import type { Connection } from "./connection.ts";
import type { CommitCounters } from "./counters.ts";
import { fallBackIfDamaged, isDamage } from "./damage.ts";
import type { Deliveries } from "./deliveries.ts";
import type { DeliveryOutbox } from "./delivery-claims.ts";
import type { IdempotencyKeys } from "./idempotency-keys.ts";
import type { Records } from "./records.ts";
import { type FoundTask, fromGuardRow, prepareWrites } from "./write-statements.ts";

/** Tasks that are streaming at the same time; beyond that their rows are read again. */
const MAX_KNOWN_TASKS = 10_000;

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
  readonly #statements: ReturnType<typeof prepareWrites>;
  #nextSeq: number;
  /** Tasks to whose logs was appended and nothing else since, as they stand. No other process changes their rows. */
  readonly #known = new Map<string, FoundTask>();
  #rollbacks = 0;

  constructor({ connection, clock, liveness, keys, counters, deliveries, outbox, records }: WriterParts) {
    this.#connection = connection;
    this.#clock = clock;
    this.#liveness = liveness;
    this.#keys = keys;
    this.#counters = counters;
    this.#deliveries = deliveries;
    this.#outbox = outbox;
    this.#records = records;
    this.#statements = prepareWrites(connection);
    this.#nextSeq = (this.#statements.maxSeq.get()?.seq ?? 0) + 1;
  }

  write(writes: readonly EncodedWrite[]): WriteResult[] {
    const isOneStatement = this.#isOneStatement(writes);
    return fallBackIfDamaged(
      () => this.#counters.commit(() => writes.map((write) => this.#apply(write)), 1, isOneStatement),
      () => writes.map((write) => this.#applyAlone(write)),
    );
  }

  /** A chunk of one stream, where no other task has anything to write: how language models write. */
  #isOneStatement(writes: readonly EncodedWrite[]): boolean {
    const [first] = writes;
    if (writes.length !== 1 || first?.segments.length !== 1) return false;
    const { write } = first;
    if (write.kind !== "append" || !isOnlyForLog(write)) return false;
    return this.#known.get(write.id)?.deliveries === false;
  }

  /** The same for another connection, which is to run the statements. Rejects writes to damaged tasks. */
  plan(writes: readonly EncodedWrite[]) {
    return this.#counters.plan(() => writes.map((write) => this.#apply(write)));
  }

  /** A task that cannot be read does not exist for those who write to it, and is in no other's way. */
  #applyAlone(encoded: EncodedWrite): WriteResult {
    const { write } = encoded;
    try {
      return this.#counters.commit(() => this.#apply(encoded));
    } catch (error) {
      if (write.kind === "submit" || !("id" in write) || !isDamage(error)) throw error;
      this.#connection.reportDamage(`task ${write.id}`, error);
      return { ok: false, refusal: "missing" };
    }
  }

  #apply({ write, segments, metadata }: EncodedWrite): WriteResult {
    if (write.kind === "submit") return this.#submit(write, segments, metadata);
    if (write.kind === "record-put" || write.kind === "record-delete") return this.#records.write(write);
    const task = this.#find(write);
    if (write.kind === "delivery-put" || write.kind === "delivery-delete") return this.#register(task, write);
    if (write.kind === "delivery-progress") return this.#progress(task, write);
    if (write.kind === "append" && task !== undefined && write.idempotency !== undefined) {
      const record = this.#keys.find(task.scope, write.idempotency.key);
      if (record !== undefined) return { ok: false, refusal: "duplicate", record };
    }
    const refusal = findRefusal(task, write, this.#liveness);
    if (refusal !== undefined) return { ok: false, refusal };
    return this.#change(task as FoundTask, write, segments);
  }

  /** Leases have moved without a write. */
  forgetTasks(): void {
    this.#known.clear();
  }

  #find(write: Exclude<Write, Submit | RecordWrite>): FoundTask | undefined {
    if (this.#rollbacks !== this.#connection.rollbacks) {
      this.#rollbacks = this.#connection.rollbacks;
      this.#known.clear();
    }
    if (write.kind === "append") {
      const known = this.#known.get(write.id);
      if (known !== undefined) return known;
    }
    this.#known.delete(write.id);
    const { guard, guardOfDiscard } = this.#statements;
    const row = (write.kind === "discard" ? guardOfDiscard : guard).get(toText(write.id));
    return row === undefined ? undefined : fromGuardRow(row);
  }

  #submit(write: Submit, segments: readonly Segment[], metadata: string | null): WriteResult {
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
    const bytes = sizeOf(segments);
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
      messageSegmentOf(segments, null),
      toText(write.dialect),
      textOrNull(idempotency?.key),
      metadata,
      bytes,
    );
    if (added === 0) return { ok: false, refusal: "exists" };
    this.#nextSeq++;
    this.#addSegments(seq, segments, null, ended);
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

  #change(
    task: FoundTask,
    write: Append | Discard | RequestCancel | Remember,
    segments: readonly Segment[],
  ): WriteResult {
    switch (write.kind) {
      case "append":
        return this.#append(task, write, segments);
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
    this.#counters.removeTask({ ...task, number: task.rowNumber });
  }

  #append(task: FoundTask, write: Append, segments: readonly Segment[]): WriteResult {
    if (isOnlyForLog(write)) return this.#appendToLog(task, write, segments);
    this.#known.delete(write.id);
    const { entries, status } = write;
    const lease = leaseAfterAppend(task, write);
    const number = task.number + entries.length;
    const messages = messageSegmentOf(segments, task.messageSegment);
    const bytes = sizeOf(segments) + this.#catchUp(task);
    this.#addSegments(task.seq, segments, task.messageSegment, status !== undefined && isTerminal(status.state));
    if (bytes > 0) this.#counters.addBytes(task.scope, bytes);
    const run = [number, lease.fence, textOrNull(lease.node), lease.turn, lease.attempt, messages, bytes] as const;
    if (status === undefined) this.#statements.advance.run(...run, task.seq);
    else {
      const stamp = this.#counters.nextStamp;
      const now = this.#clock.now();
      if (status.state !== task.state && this.#counters.mayHavePast) {
        this.#statements.movePast.run(STATE_CODES[status.state], task.seq);
      }
      if (this.#counters.isViewed(task.stamp)) {
        const position = [task.scope, task.statusTime, toText(write.id)] as const;
        this.#statements.addPastPosition.run(...position, stamp, task.stamp, now, STATE_CODES[status.state], task.seq);
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
      if (write.metadata !== undefined) this.#statements.setMetadata.run(JSON.stringify(write.metadata), task.seq);
      if (status.state !== task.state) {
        this.#counters.addTasks(task.scope, task.state, -1);
        this.#counters.addTasks(task.scope, status.state, 1);
      }
    }
    this.#counters.events += number - task.rowNumber;
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

  /** A chunk of a stream costs one row: that of the task would be written again and again for a number. */
  #appendToLog(task: FoundTask, { id, entries }: Append, segments: readonly Segment[]): WriteResult {
    const { seq, scope, state, fence, messageSegment } = task;
    const number = task.number + entries.length;
    this.#addSegments(seq, segments, messageSegment, false);
    this.#counters.growLog(seq, scope, sizeOf(segments), entries.length);
    if (this.#known.size >= MAX_KNOWN_TASKS) this.#known.clear();
    this.#known.set(id, { ...task, number });
    return acceptWrite(number, fence, task.deliveries ? this.#outbox.markDue(seq, state) : NO_EFFECTS);
  }

  /** Returns the bytes of the log that the row of the task does not include; with the present write it will. */
  #catchUp({ seq, number, rowNumber }: FoundTask): number {
    if (number === rowNumber) return 0;
    this.#counters.catchUp(seq);
    return this.#statements.bytesAfter.get(seq, rowNumber, seq)?.bytes ?? 0;
  }

  #addSegments(seq: number, segments: readonly Segment[], earlier: number | null, ended: boolean): void {
    let messages = earlier;
    for (const segment of segments) {
      const { first, last, body } = segment;
      const terminal = ended && segment === segments.at(-1) ? 1 : 0;
      this.#statements.addSegment.run(seq, last, first, messages, terminal, body);
      if (segment.bringsMessage) messages = last;
    }
  }
}

/** Changes neither the status of the task nor its lease, turn, history or deliveries. */
function isOnlyForLog({ status, fence, lease, turn, begins, idempotency, deliveries, entries }: Append): boolean {
  if (status !== undefined || fence === undefined || entries.length === 0) return false;
  if (lease !== undefined || turn !== undefined || begins !== undefined) return false;
  return idempotency === undefined && deliveries === undefined;
}
