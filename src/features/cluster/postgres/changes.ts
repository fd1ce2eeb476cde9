import { isTerminal, type TaskState, type TaskStatus } from "../../../core/model/task.ts";
import type {
  Append,
  DeliveryPut,
  DeliveryRegistration,
  Refusal,
  RequestCancel,
  Submit,
} from "../../../core/store/contract.ts";
import { type EncodedWrite, messageSegmentOf, type Segment, sizeOf } from "../../../core/store/encode-writes.ts";
import {
  findRefusal,
  isDeliverable,
  type LeaseState,
  leaseAfterAppend,
  leaseAtSubmit,
  scopeKey,
  statusTime,
} from "../../../core/store/rules.ts";
import { STATE_CODES, textOrNull, toText, WANTS_CODES } from "../../../core/store/stored-text.ts";
import type { TaskRow } from "./add-tasks.ts";
import type { ChangeRow } from "./change-tasks.ts";
import { toPutRows } from "./deliveries.ts";
import type { FoundTask } from "./guards.ts";
import type { KeyColumns, PutRow, SegmentRow, WrittenRow } from "./statement-parts.ts";

/** Writes that change the row of a task. */
export type ChangeWrite = Append | DeliveryPut | RequestCancel;

/** What a write is to do, as rows of a statement; `place` among the writes of the statement is theirs, from 1. */
interface Decided<Row> {
  readonly row: Row;
  readonly segments: (place: number) => SegmentRow[];
  readonly puts: (place: number) => PutRow[];
  readonly registrations: readonly DeliveryRegistration[];
  /** The task as the write leaves it. */
  readonly after: FoundTask;
}

export type DecidedChange = Decided<ChangeRow>;
export type DecidedSubmit = Decided<TaskRow>;

type PlainRefusal = Exclude<Refusal, "duplicate">;

const NO_DELIVERIES = -1;

export function decideChange(
  write: ChangeWrite,
  segments: readonly Segment[],
  task: FoundTask | undefined,
  expired: ReadonlySet<string>,
): PlainRefusal | DecidedChange {
  if (task === undefined) return "missing";
  if (write.kind === "delivery-put") {
    if (scopeKey(task.scope) !== scopeKey(write)) return "missing";
    return change(task, {
      ...NOTHING,
      id: write.id,
      registrations: [write.delivery],
      cursor: write.after ?? task.number,
    });
  }
  const refusal = findRefusal(task, write, { isExpired: (node) => expired.has(node) });
  if (refusal !== undefined) return refusal;
  if (write.kind === "append") {
    const { id, status, metadata, deliveries: registrations = [], idempotency } = write;
    const lease = leaseAfterAppend(task, write);
    return change(task, { id, segments, lease, status, metadata, registrations, cursor: task.number, idempotency });
  }
  const lease = write.take === undefined ? task : { ...task, node: write.take, fence: task.fence + 1 };
  return change(task, { ...NOTHING, id: write.id, lease, cursor: task.number, cancel: true });
}

interface Effect {
  readonly id: string;
  readonly status?: Append["status"] | undefined;
  readonly metadata?: Append["metadata"] | undefined;
  readonly idempotency?: Append["idempotency"] | undefined;
  readonly segments: readonly Segment[];
  readonly registrations: readonly DeliveryRegistration[];
  readonly lease?: LeaseState;
  readonly cursor: number;
  readonly cancel?: boolean;
}

const NOTHING = { segments: [], registrations: [] } as const;

function change(task: FoundTask, effect: Effect): DecidedChange {
  const { id, segments, lease = task, status, metadata, registrations, cursor, idempotency, cancel = false } = effect;
  const state = status?.state ?? task.state;
  const ended = status !== undefined && isTerminal(status.state);
  const events = segments.reduce((sum, { first, last }) => sum + last - first + 1, 0);
  const number = task.number + events;
  const parts = toSegments(segments, task.messageSegment, ended);
  const [first] = parts;
  const after: FoundTask = {
    ...task,
    version: task.version + 1,
    number,
    state,
    fence: lease.fence,
    node: lease.node,
    turn: lease.turn,
    attempt: lease.attempt,
    messageSegment: messageSegmentOf(segments, task.messageSegment),
    deliveries: task.deliveries || registrations.length > 0,
  };
  return {
    row: {
      seq: task.seq,
      version: task.version,
      number,
      fence: after.fence,
      node: textOrNull(after.node),
      turn: after.turn,
      attempt: after.attempt,
      messageSegment: after.messageSegment,
      bytes: sizeOf(segments),
      cancel,
      registers: registrations.length > 0,
      dueWants: task.deliveries && events > 0 ? dueWants(state) : NO_DELIVERIES,
      events,
      first: first?.first ?? null,
      last: first?.last ?? null,
      earlier: first?.earlier ?? null,
      terminal: first?.terminal ?? false,
      body: first?.body ?? null,
      oldState: STATE_CODES[task.state],
      oldStatusTime: task.statusTime,
      oldMoved: task.moved,
      state: status === undefined ? null : STATE_CODES[status.state],
      ended,
      status: status === undefined ? null : JSON.stringify(status),
      statusTime: timeOf(status),
      metadata: status === undefined || metadata === undefined ? null : JSON.stringify(metadata),
      ...toKey(idempotency),
    },
    segments: (write) => parts.slice(1).map((part) => ({ write, ...part })),
    puts: (write) => toPutRows(write, registrations, { id, scope: task.scope, number, state }, cursor),
    registrations,
    after,
  };
}

/** Deliveries that want at most this are due. */
function dueWants(state: TaskState): number {
  return isDeliverable("outcome", state) ? WANTS_CODES.outcome : WANTS_CODES.events;
}

export function decideSubmit(
  write: Submit,
  { segments, metadata }: Pick<EncodedWrite, "segments" | "metadata">,
  scope: number,
  flush: number,
): DecidedSubmit {
  const { id, status, entries, deliveries: registrations = [] } = write;
  const { agent, tenant, owner } = write;
  const lease = leaseAtSubmit(write);
  const ended = isTerminal(status.state);
  const number = entries.length;
  const parts = toSegments(segments, null, ended);
  const messageSegment = messageSegmentOf(segments, null);
  const [first] = parts;
  const task = { id, scope: { agent, tenant, owner }, number, state: status.state };
  return {
    row: {
      id: toText(id),
      scope,
      context: toText(write.contextId),
      state: STATE_CODES[status.state],
      ended,
      status: JSON.stringify(status),
      statusTime: timeOf(status),
      number,
      fence: lease.fence,
      node: textOrNull(lease.node),
      turn: lease.turn,
      attempt: lease.attempt,
      messageSegment,
      dialect: toText(write.dialect),
      metadata,
      bytes: sizeOf(segments),
      registers: registrations.length > 0,
      last: first?.last ?? 0,
      body: first?.body ?? "",
      ...toKey(write.idempotency),
    },
    segments: (place) => parts.slice(1).map((part) => ({ write: place, ...part })),
    puts: (place) => toPutRows(place, registrations, task, 0, write.notifyAfterMs),
    registrations,
    after: {
      ...task,
      ...lease,
      seq: 0,
      version: 1,
      flush,
      statusTime: 0,
      moved: "",
      messageSegment,
      deliveries: registrations.length > 0,
    },
  };
}

/** As the statement has left it: some of it only the database knows. */
export function toKnownTask(after: FoundTask, { seq, moved, status_ts }: WrittenRow): FoundTask {
  return { ...after, seq, moved: moved ?? after.moved, statusTime: status_ts ?? after.statusTime };
}

function toSegments(segments: readonly Segment[], earlier: number | null, ended: boolean): Omit<SegmentRow, "write">[] {
  let messages = earlier;
  return segments.map((segment) => {
    const { first, last, body } = segment;
    const terminal = ended && segment === segments.at(-1);
    const row = { first, last, earlier: messages, terminal, body: body.toString() };
    if (segment.bringsMessage) messages = last;
    return row;
  });
}

/** Null: none that is usable, so that it counts as of now. */
function timeOf(status: TaskStatus | undefined): number | null {
  const time = status === undefined ? Number.NaN : statusTime(status, Number.NaN);
  return Number.isNaN(time) ? null : time;
}

function toKey(claim: Append["idempotency"]): KeyColumns {
  if (claim === undefined) return { key: null, fingerprint: null, keyTtl: null };
  return { key: toText(claim.key), fingerprint: toText(claim.fingerprint), keyTtl: claim.ttlMs };
}
