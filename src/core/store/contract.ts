import type { LogEntry } from "../model/event.ts";
import type { JsonObject } from "../model/json.ts";
import type { Message } from "../model/message.ts";
import type { TaskState, TaskStatus } from "../model/task.ts";
import type {
  DeliveryClaim,
  DeliveryClaimQuery,
  DeliveryClaims,
  DeliveryDelete,
  DeliveryGroup,
  DeliveryPage,
  DeliveryProgress,
  DeliveryPut,
  DeliveryQuery,
  DeliveryRegistration,
  OwnedDelivery,
  PendingDelivery,
  PendingDeliveryQuery,
  Redelivered,
  Redelivery,
} from "./delivery-contract.ts";
import type { Cursor, CursorRead, ListPage, ListQuery, Scope, Snapshot, SnapshotOptions } from "./read-contract.ts";
import type { RecordQuery, RecordWrite, StoredRecord } from "./record-contract.ts";

export type * from "./delivery-contract.ts";
export { registersDeliveries, WEBHOOK_ROUTE } from "./delivery-contract.ts";
export { describeStoreError } from "./errors.ts";
export * from "./read-contract.ts";
export type * from "./record-contract.ts";

/**
 * The one contract every store fulfils; `contract-suite.ts` is its meaning in tests.
 *
 * A store is one transaction domain: log, leases, idempotency, memory and deliveries of a task change together or not at
 * all.
 * Every write names what it expects to find, so that it may be repeated and may race. Nothing is answered before it is
 * as durable as the store can make it.
 *
 * Leases, claims, keys and retention follow the store's clock alone: callers give durations, and no node's clock is
 * compared with another's. Times that a store returns are for people. Status timestamps are part of the events; they
 * order lists and decide nothing else.
 */
export interface TaskStore {
  /** For people: `memory`, or `sqlite` with its file. */
  readonly description: string;

  /** Whether what is written outlives the process. */
  readonly durable: boolean;

  /** Whether other processes may serve the same store at the same time. Default: one process owns it alone. */
  readonly shared?: boolean;

  /**
   * Group commit: answered by position once all accepted writes are durable. A refused write changes nothing and never
   * fails its neighbours; a call that rejects may have made any of its writes, each as a whole. At most one write per
   * task, else the call rejects: so a store can make the group one statement. Progress of a delivery changes a row of its
   * own and is not counted, as long as no delivery of its task is registered or deleted in the same call; it is applied
   * after the other writes. Records are not part of a task: at most one write per record.
   */
  write(writes: readonly Write[]): Promise<readonly WriteResult[]>;

  head(id: string): Promise<TaskHead | undefined>;

  /** The task folded from its log, with the number it stood at, both from one consistent view. */
  snapshot(id: string, options: SnapshotOptions): Promise<Snapshot | undefined>;

  /**
   * What follows each cursor, one answer per cursor in order; one call serves all readers of a node. An unknown task
   * gives `missing`. At most `limit` entries are given per cursor, never fewer than one if there is one.
   */
  read(cursors: readonly Cursor[], limit: number): Promise<readonly CursorRead[]>;

  /** Where each task's log stands now (0 for an unknown task): the cheap question of a reader that missed its wake-up. */
  numbers(ids: readonly string[]): Promise<readonly number[]>;

  /**
   * Tasks by status timestamp and id, newest first. Every task that existed when the first page was read is on exactly
   * one page, at the position it had then, however many tasks change meanwhile; a page costs the same whether they do
   * or not. With a filter by state a page shows only tasks that have the state when it is read. A list that is
   * continued after more than `LIST_VIEW_MS` may miss tasks that changed in the meantime; it still shows none twice.
   */
  list(query: ListQuery): Promise<ListPage>;

  /** What a caller's key stands for, while it is retained. */
  findIdempotencyRecord(key: IdempotencyScope): Promise<IdempotencyRecord | undefined>;

  /**
   * Keeps the node alive for `ttlMs`; after that its leases may be claimed. In a store that one process owns alone the
   * leases of earlier processes end at the first heartbeat. Returns tasks this node holds whose cancellation was
   * requested elsewhere. `report` is what the node says of itself, as JSON text.
   */
  heartbeat(node: string, ttlMs: number, report?: string): Promise<readonly string[]>;

  /** Nodes that share the store, for operators; absent where one process owns it. */
  nodes?(): Promise<readonly StoreNode[]>;

  /**
   * Take over tasks whose node is gone, and active ones that no node holds, each with a higher fence and one more
   * attempt than before. Only tasks of the named agents: those of an agent that is not served here wait for one that does.
   */
  claim(node: string, agents: readonly string[], max: number): Promise<readonly Lease[]>;

  /** Durable memory of a task's runs: survives a crash, ends with the task's pruning. JSON text by key. */
  memory(id: string): Promise<ReadonlyMap<string, string>>;

  /** One delivery of a task; undefined for an unknown task or id. */
  delivery(id: string, group: DeliveryGroup, deliveryId: string): Promise<OwnedDelivery | undefined>;

  /** A task's deliveries of one group in the order they were created; undefined for an unknown task. */
  deliveries(id: string, query: DeliveryQuery): Promise<DeliveryPage | undefined>;

  /**
   * Takes deliveries of a route that are due, those that have waited longest first. A claim ends by itself, and in a
   * store that one process owns alone those of earlier incarnations end at the first beat.
   */
  claimDeliveries(query: DeliveryClaimQuery): Promise<DeliveryClaims>;

  /** Deliveries of all routes that have something left to deliver or were given up, in the order they were created. */
  pendingDeliveries(query: PendingDeliveryQuery): Promise<readonly PendingDelivery[]>;

  /** Makes deliveries due again. May be done beside the process that serves the store. Returns which. */
  redeliver(redelivery: Redelivery): Promise<readonly Redelivered[]>;

  /** A small fact that is kept beside tasks, as JSON text; undefined if there is none or it has expired. */
  record(space: string, key: string): Promise<string | undefined>;

  /** Records of a space in the order of their keys, those that have expired left out. */
  records(space: string, query: RecordQuery): Promise<readonly StoredRecord[]>;

  /** Reduce logs of tasks that ended at least `ageMs` ago to their snapshots. Returns how many; at most `max`. */
  compact(ageMs: number, max: number): Promise<number>;

  /**
   * Delete tasks that ended at least `ageMs` ago, at most `max`, and what has expired: idempotency keys, records, and
   * positions kept for lists. Returns how many tasks.
   */
  prune(ageMs: number, max: number): Promise<number>;

  /** Gives some of the space back that nothing uses any more. True: there is more. */
  shrink?(): Promise<boolean>;

  /**
   * What an owner's tasks take up, in bytes of their logs and snapshots. Asked before each message, so it costs the same
   * however many tasks there are. May lag behind writes, as may `stats` and the `total` of a list, by `COUNTER_LAG_MS`:
   * a row that every write has to change would make all nodes wait for each other.
   */
  storedBytes(owner: string): Promise<number>;

  stats(): Promise<StoreStats>;

  /**
   * Rejects while writes fail. Asked often: it writes something to find out only if that is not known from a write of
   * late. A store without it is taken to accept writes.
   */
  checkWritable?(): Promise<void>;

  /** Hints that something changed. May be lost, doubled or late without harm: every listener also looks by itself. */
  readonly wakeups: Wakeups;

  close(): Promise<void>;
}

/** A process that shares the store with others. Times are by the clock of the store. */
export interface StoreNode {
  readonly id: string;
  readonly host?: string;
  readonly pid?: number;
  readonly upMs: number;
  /** When its newest heartbeat came. */
  readonly beatAt: number;
  readonly beatAgoMs: number;
  readonly alive: boolean;
  /** It has announced its end. */
  readonly left: boolean;
  /** Open tasks that it holds. */
  readonly tasks: number;
  /** The report of its newest heartbeat, as JSON text. */
  readonly report?: string;
}

/** What may have changed, for nodes that want to look. */
export interface Wakeup {
  /** Tasks whose logs grew, or that are gone. */
  readonly log?: readonly string[];
  /** Tasks whose cancellation was requested. */
  readonly cancel?: readonly string[];
  /** A task may be waiting for a node to claim it, or one of `log` has a message for the node that runs it. */
  readonly work?: true;
  /** A delivery may be due. */
  readonly deliveries?: true;
}

export interface Wakeups {
  publish(wakeup: Wakeup): void;
  /** `"all"` when it is not known what changed. The returned function ends the subscription. */
  subscribe(listener: (wakeup: Wakeup | "all") => void): () => void;
}

export interface TaskHead extends Scope {
  readonly id: string;
  readonly contextId: string;
  readonly status: TaskStatus;
  /** Number of the newest event. */
  readonly number: number;
  /** Events up to this number exist only in the snapshot; 0 while the log is whole. */
  readonly floor: number;
  readonly fence: number;
  /** Node that runs the task, if one does. */
  readonly node: string | undefined;
  /** Number of the event whose message the current or next turn answers. */
  readonly turn: number;
  /** Runs begun for the current turn; 0 while the first waits in line. */
  readonly attempt: number;
  readonly cancelRequested: boolean;
  /** What its log or snapshot takes up, roughly. */
  readonly bytes: number;
  readonly dialect: string;
  readonly createdAt: number;
}

export interface Lease {
  readonly head: TaskHead;
  readonly fence: number;
}

export interface Submit extends Scope {
  readonly kind: "submit";
  readonly id: string;
  readonly contextId: string;
  readonly dialect: string;
  /** Numbered from 1; the first is the `task` event. May include the terminal one. */
  readonly entries: readonly LogEntry[];
  /** The status after the last entry. */
  readonly status: TaskStatus;
  /** The task's metadata after the last entry; absent: that of the task event. */
  readonly metadata?: JsonObject;
  readonly turn: number;
  /** The node that takes the lease (fence 1); absent: the task waits for a claim. Ignored if the entries end the task. */
  readonly node?: string;
  /** False: the run waits in line and has not begun, so that a crash finds nothing half done. Default: true. */
  readonly begins?: boolean;
  readonly idempotency?: IdempotencyClaim;
  /** Registered for the task that this write creates; they follow it from before its first event. */
  readonly deliveries?: readonly DeliveryRegistration[];
  /** For this long nothing of a task of one event is delivered: it may still be discarded. Absent: it will not be. */
  readonly notifyAfterMs?: number;
}

/** Under which key a repeat of the message will be recognised, within the task's scope. */
export interface IdempotencyClaim {
  readonly key: string;
  readonly fingerprint: string;
  /** How long repeats are recognised. */
  readonly ttlMs: number;
}

export interface Append {
  readonly kind: "append";
  readonly id: string;
  /** Number of the newest event the writer knows; the entries begin at the next. */
  readonly expect: number;
  /**
   * Present on every write of a run: refused if the lease moved on. Absent: a message from outside the run. It leaves
   * the lease where it is, and becomes the current turn of a task that is interrupted and that no node holds.
   */
  readonly fence?: number;
  readonly entries: readonly LogEntry[];
  /** The status after the last entry, and beside it the task's metadata, if any entry changed them. */
  readonly status?: TaskStatus;
  readonly metadata?: JsonObject;
  readonly turn?: number;
  /** `take`: lease the task to the node with fence + 1 (refused as `fenced` while another node holds it); `release`: give it up. A terminal status always releases. */
  readonly lease?: { readonly take: string } | "release";
  /**
   * With a `take`: as in a submit. With a `release`, false: the task is handed over by a node that ends, and all its runs
   * so far count as one. Else true: the run that waited in line begins now; false: one that a claim has counted waits in
   * line, and is not counted yet.
   */
  readonly begins?: boolean;
  readonly idempotency?: IdempotencyClaim;
  /** Registered as by a `delivery-put`; they follow the task from before the entries of this write. */
  readonly deliveries?: readonly DeliveryRegistration[];
}

/** Take back a task that turned out to be answered by a plain message: it and its log vanish. */
export interface Discard {
  readonly kind: "discard";
  readonly id: string;
  readonly fence: number;
  /** Number of the newest event the writer knows: refused as `position` if there is another since. */
  readonly expect?: number;
  /** Kept under the task's idempotency key, if it has one. */
  readonly reply: Message;
}

export interface RequestCancel {
  readonly kind: "request-cancel";
  readonly id: string;
  /** The node that takes the lease, with fence + 1, from a node that had its time to end the task and did not. */
  readonly take?: string;
}

export interface Remember {
  readonly kind: "remember";
  readonly id: string;
  readonly fence: number;
  readonly key: string;
  /** JSON text; undefined forgets the key. */
  readonly value: string | undefined;
}

export type Write =
  | (Submit | Append | Discard | RequestCancel | Remember)
  | (DeliveryPut | DeliveryDelete | DeliveryProgress)
  | RecordWrite;

/**
 * `exists`: another task has that id. `duplicate`: the key is known (see `record`). `missing`: no such task.
 * `position`: the log is not where the writer thought. `fenced`: another run holds the lease. `terminal`: it ended.
 */
export type Refusal = "exists" | "duplicate" | "missing" | "position" | "fenced" | "terminal";

/** `number` and `fence` are those of the task, 0 for a record. */
export interface AcceptedWrite {
  readonly ok: true;
  readonly number: number;
  readonly fence: number;
  /** Routes whose deliveries may be due since this write. */
  readonly due?: readonly string[];
  /** Deliveries that were registered as held. */
  readonly held?: readonly DeliveryClaim[];
}

export type WriteResult =
  | AcceptedWrite
  | { readonly ok: false; readonly refusal: Exclude<Refusal, "duplicate"> }
  | { readonly ok: false; readonly refusal: "duplicate"; readonly record: IdempotencyRecord };

export interface IdempotencyScope extends Scope {
  readonly key: string;
}

export interface IdempotencyRecord {
  readonly fingerprint: string;
  readonly taskId: string;
  /** Set when the send was answered without a task. */
  readonly reply: Message | undefined;
}

/** A counter includes every write that was answered at least this long ago. @public for stores. */
export const COUNTER_LAG_MS = 5_000;

export interface StoreStats {
  readonly tasks: number;
  readonly byState: Readonly<Partial<Record<TaskState, number>>>;
  readonly events: number;
  readonly bytes: number;
  /** Of `bytes`, those that hold nothing: new tasks use them, or they are given back. */
  readonly freeBytes: number;
  readonly schemaVersion: number;
}
