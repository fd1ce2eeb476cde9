import { ChunkFrame, LogEntry, type RequestDetails, type TaskEvent } from "../../model/event.ts";
import { type TaskFold, updateMetadata } from "../../model/fold.ts";
import type { JsonObject, Writable } from "../../model/json.ts";
import { isPlainText, type Message } from "../../model/message.ts";
import { type TaskStatus, withParts } from "../../model/task.ts";
import type { Append, DeliveryRegistration, IdempotencyClaim, Submit } from "../../store/contract.ts";

/** What travels with an event that a caller's message brought. */
export interface EventExtras {
  /** Not for the first message of a task, which is in the task itself. */
  readonly received?: Message | undefined;
  readonly request?: RequestDetails | undefined;
  /** Makes a repeat of the message known; written together with its event. */
  readonly claim?: IdempotencyClaim | undefined;
  /** Where what follows is to be delivered; registered together with the event. */
  readonly deliveries?: readonly DeliveryRegistration[] | undefined;
}

export interface PendingEvent extends EventExtras {
  event: TaskEvent;
}

export const NO_EXTRAS: EventExtras = {};

/** Someone who waits until a write is durable. */
export interface FlushWaiter {
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/** What a write of a task is to say. */
export interface Draft {
  readonly events: PendingEvent[];
  /** The number of the message that is answered from now on. */
  readonly turn: number | undefined;
  /** Of the run: that it waits in line (false), or that it begins (true). */
  readonly begins: boolean | undefined;
  readonly flushed: FlushWaiter[];
  /** Bytes of the task when the draft before was handed to the store, and the frame of its newest chunk of text. */
  readonly bytesBefore: number;
  readonly frame: ChunkFrame | undefined;
}

export function emptyDraft(events: PendingEvent[], bytesBefore: number, frame: ChunkFrame | undefined): Draft {
  return { events, turn: undefined, begins: undefined, flushed: [], bytesBefore, frame };
}

/** A write that the store has been given, with what it is to be made from again if it must be repeated. */
export interface InFlightWrite {
  readonly draft: Draft;
  readonly entries: readonly LogEntry[];
  readonly release: boolean;
}

/** Takes off what the next write cannot say, because the store takes one claim with each. Undefined: it can say all. */
export function splitAtSecondClaim(events: PendingEvent[]): PendingEvent[] | undefined {
  let claims = 0;
  const second = events.findIndex(({ claim }) => claim !== undefined && ++claims === 2);
  return second < 0 ? undefined : events.splice(second);
}

/** Events with their numbers, which begin after that one. */
export function toEntries(events: readonly PendingEvent[], after: number, before: ChunkFrame | undefined) {
  let frame = before;
  const entries = events.map(({ event, received, request }, index) => {
    const own = ChunkFrame.of(event, frame);
    if (own !== undefined) frame = own;
    return LogEntry.of(after + 1 + index, event, received, request, own);
  });
  return { entries, frame };
}

/** What the writes of a task say of it each time. */
type WrittenTask = Omit<Submit, "kind" | "entries" | "status" | "turn"> & {
  readonly fold: TaskFold;
  readonly fence: number;
};

/** The first write of a task, which may already be its last. */
export function toSubmit(task: WrittenTask, { draft, entries, release }: InFlightWrite, node: string): Submit {
  const { begins, events } = draft;
  const claim = findClaim(events);
  const deliveries = collectDeliveries(events);
  // A second event comes from the agent, and with one the task stays.
  const notifyAfterMs = deliveries === undefined || entries.length > 1 ? undefined : task.notifyAfterMs;
  const submit: Writable<Submit> = {
    kind: "submit",
    id: task.id,
    agent: task.agent,
    tenant: task.tenant,
    owner: task.owner,
    contextId: task.contextId,
    dialect: task.dialect,
    entries,
    status: lastStatus(entries) as TaskStatus,
    turn: 1,
  };
  const metadata = findMetadata(task, entries);
  if (metadata !== undefined) submit.metadata = metadata;
  if (!release) submit.node = node;
  if (begins !== undefined) submit.begins = begins;
  if (claim !== undefined) submit.idempotency = claim;
  if (deliveries !== undefined) submit.deliveries = deliveries;
  if (notifyAfterMs !== undefined) submit.notifyAfterMs = notifyAfterMs;
  return submit;
}

/** `taker`: the node that takes the lease of a parked task with this write. */
export function toAppend(task: WrittenTask, inFlight: InFlightWrite, taker: string | undefined): Append {
  const { draft, entries, release } = inFlight;
  const { begins, events, turn } = draft;
  const status = lastStatus(entries);
  const claim = findClaim(events);
  const deliveries = collectDeliveries(events);
  // Member by member: this is made for every chunk, and spreading what is absent costs more than the rest of it.
  const append: Writable<Append> = {
    kind: "append",
    id: task.id,
    expect: task.fold.number,
    fence: task.fence,
    entries,
  };
  if (status !== undefined) {
    append.status = status;
    const metadata = findMetadata(task, entries);
    if (metadata !== undefined) append.metadata = metadata;
  }
  if (turn !== undefined) append.turn = turn;
  if (taker !== undefined) append.lease = { take: taker };
  if (release) append.lease = "release";
  if (begins !== undefined) append.begins = begins;
  if (claim !== undefined) append.idempotency = claim;
  if (deliveries !== undefined) append.deliveries = deliveries;
  return append;
}

/** Whether two entries are one: many statuses of one moment look the same, but each message comes with one of them. */
export function isSameEntry(one: LogEntry, other: LogEntry | undefined): boolean {
  return one.json === other?.json && one.received?.messageId === other.received?.messageId;
}

/** What is left of a completion when the task continues: its message. */
export function toWorking(event: TaskEvent): TaskEvent {
  if (!("statusUpdate" in event) || event.statusUpdate.status.state !== "TASK_STATE_COMPLETED") return event;
  const { statusUpdate } = event;
  return { statusUpdate: { ...statusUpdate, status: { ...statusUpdate.status, state: "TASK_STATE_WORKING" } } };
}

function findClaim(events: readonly PendingEvent[]): IdempotencyClaim | undefined {
  for (const { claim } of events) if (claim !== undefined) return claim;
  return undefined;
}

/** In the order they came; undefined, and nothing allocated, for the many writes without any. */
function collectDeliveries(events: readonly PendingEvent[]): readonly DeliveryRegistration[] | undefined {
  let found: readonly DeliveryRegistration[] | undefined;
  for (const { deliveries } of events) {
    if (deliveries !== undefined) found = found === undefined ? deliveries : [...found, ...deliveries];
  }
  return found;
}

function lastStatus(entries: readonly LogEntry[]): TaskStatus | undefined {
  for (let index = entries.length - 1; index >= 0; index--) {
    const event = (entries[index] as LogEntry).event;
    if ("statusUpdate" in event) return event.statusUpdate.status;
    if ("task" in event) return event.task.status;
  }
  return undefined;
}

/** Nothing for the many writes that do not change it. */
function findMetadata(task: WrittenTask, entries: readonly LogEntry[]): JsonObject | undefined {
  let before = task.fold.metadata;
  let metadata = before;
  for (const { event } of entries) {
    if ("task" in event) {
      before = event.task.metadata;
      metadata = before;
    } else if ("statusUpdate" in event && event.statusUpdate.metadata !== undefined) {
      metadata = updateMetadata(metadata, event.statusUpdate.metadata);
    }
  }
  return metadata === before ? undefined : metadata;
}

/** Merging stops here, so that a run that never pauses is slowed down by the count of its events. */
const MAX_MERGED_TEXT = 64 * 1024;

/** Two adjacent plain-text chunks of one artifact as one chunk, or undefined if they must stay apart. */
export function mergeChunks(earlier: TaskEvent, later: TaskEvent): TaskEvent | undefined {
  if (!("artifactUpdate" in earlier) || !("artifactUpdate" in later)) return undefined;
  const first = earlier.artifactUpdate;
  const second = later.artifactUpdate;
  if (second.append !== true || first.lastChunk === true || first.artifact.artifactId !== second.artifact.artifactId) {
    return undefined;
  }
  if (first.metadata !== undefined || second.metadata !== undefined) return undefined;
  const { artifact } = second;
  if (artifact.metadata !== undefined || artifact.description !== undefined || artifact.extensions !== undefined) {
    return undefined;
  }
  if (artifact.name !== undefined && artifact.name !== first.artifact.name) return undefined;
  const left = first.artifact.parts;
  const last = left.at(-1);
  const next = artifact.parts[0];
  if (artifact.parts.length !== 1 || last === undefined || next === undefined) return undefined;
  if (!isPlainText(last) || !isPlainText(next) || last.text.length > MAX_MERGED_TEXT) return undefined;
  const parts = left.slice();
  parts[parts.length - 1] = { text: last.text + next.text };
  return {
    artifactUpdate: {
      ...first,
      artifact: withParts(first.artifact, parts),
      ...(second.lastChunk === true ? { lastChunk: true } : undefined),
    },
  };
}
