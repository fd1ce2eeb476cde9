import type { LogEntry, TaskEvent } from "../../model/event.ts";
import type { TaskFold } from "../../model/fold.ts";
import type { Message } from "../../model/message.ts";
import type { TaskState } from "../../model/task.ts";
import {
  type Draft,
  type EventExtras,
  emptyDraft,
  type FlushWaiter,
  type InFlightWrite,
  mergeChunks,
  NO_EXTRAS,
  type PendingEvent,
  splitAtSecondClaim,
  toEntries,
  toWorking,
} from "./task-write.ts";

/** One write of the store holds up all others: what waits for it is bounded in size, not only in number. */
const MAX_PENDING_BYTES = 4 * 1024 * 1024;

/**
 * The log of a task as it is being written: what is committed (`fold`), what is on its way to the store (`inFlight`) and
 * what the next write will say. Events get their numbers when they are handed to the store, after merging.
 */
export class TaskLog {
  readonly fold: TaskFold;
  /** Of all that is kept of the task, what waits to be written included. */
  bytes: number;
  #state: TaskState;
  #next: Draft;
  #inFlight: InFlightWrite | undefined;

  constructor(fold: TaskFold, bytes: number) {
    this.fold = fold;
    this.bytes = bytes;
    this.#state = fold.number === 0 ? "TASK_STATE_SUBMITTED" : fold.status.state;
    this.#next = emptyDraft([], bytes, undefined);
  }

  get state(): TaskState {
    return this.#state;
  }

  get inFlight(): InFlightWrite | undefined {
    return this.#inFlight;
  }

  /** Whether there is something to write. */
  get hasContent(): boolean {
    const { begins, events, turn } = this.#next;
    return events.length > 0 || turn !== undefined || begins !== undefined;
  }

  isAhead(maxEvents: number): boolean {
    const { bytesBefore, events } = this.#next;
    return events.length >= maxEvents || this.bytes - bytesBefore >= MAX_PENDING_BYTES;
  }

  /** False: the event was merged into the one before, because more than `mergeAfter` wait. */
  add(event: TaskEvent, extras: EventExtras, mergeAfter: number): boolean {
    const { events } = this.#next;
    if ("statusUpdate" in event) this.#state = event.statusUpdate.status.state;
    else if (extras === NO_EXTRAS && events.length > mergeAfter) {
      const last = events[events.length - 1] as PendingEvent;
      const merged = last.received === undefined ? mergeChunks(last.event, event) : undefined;
      if (merged !== undefined) {
        last.event = merged;
        return false;
      }
    }
    const { received, request, claim, deliveries } = extras;
    events.push({ event, received, request, claim, deliveries });
    return true;
  }

  announceTurn(turn: number): void {
    this.#next = { ...this.#next, turn };
  }

  /** That the run waits in line (false), or begins (true). What was not written of the one is taken back by the other. */
  announceRun(begins: boolean): void {
    this.#next = { ...this.#next, begins: this.#next.begins === undefined ? begins : undefined };
  }

  whenFlushed(): Promise<void> {
    const draft = this.hasContent ? this.#next : this.#inFlight?.draft;
    if (draft === undefined) return Promise.resolve();
    return new Promise((resolve, reject) => {
      draft.flushed.push({ resolve, reject });
    });
  }

  /** Hands the next write over, with the lease if it is to be released and nothing is left to write. */
  take(releases: boolean): InFlightWrite | undefined {
    if (this.#inFlight !== undefined) return undefined;
    const next = this.#next;
    const rest = splitAtSecondClaim(next.events);
    const release = releases && rest === undefined;
    if (!this.hasContent && !release) return undefined;
    const { entries, frame } = toEntries(next.events, this.fold.number, next.frame);
    this.#next = emptyDraft(rest ?? [], this.bytes, frame);
    this.#inFlight = { draft: next, entries, release };
    if (rest !== undefined) this.#next.flushed.push(...next.flushed.splice(0));
    return this.#inFlight;
  }

  /** The store has accepted the write. */
  commit(): InFlightWrite | undefined {
    const written = this.#inFlight;
    if (written === undefined) return undefined;
    const { draft, entries } = written;
    for (let index = 0; index < entries.length; index++) {
      this.fold.apply(entries[index] as LogEntry, (draft.events[index] as PendingEvent).event);
    }
    this.#inFlight = undefined;
    return written;
  }

  /** The write was not made: what it said goes before what came meanwhile, without the event of the `dropped` message. */
  putBack(dropped?: Message): InFlightWrite | undefined {
    const refused = this.#inFlight;
    if (refused === undefined) return undefined;
    this.#inFlight = undefined;
    const { draft } = refused;
    const next = this.#next;
    const again = draft.events.filter(({ received }) => received === undefined || received !== dropped);
    this.#next = {
      ...next,
      events: [...again, ...next.events],
      turn: next.turn ?? draft.turn,
      // Both: the run that waited in line has begun meanwhile, and none of it was written.
      begins: next.begins === undefined || draft.begins === undefined ? (next.begins ?? draft.begins) : undefined,
      flushed: [...draft.flushed, ...next.flushed],
    };
    this.#state = this.#stateAfterNext();
    if (!this.hasContent) for (const { resolve } of this.#next.flushed.splice(0)) resolve();
    return refused;
  }

  /** Another node has written. A message it accepted must still be answered, so that the task does not complete yet. */
  rebase(hasMessages: boolean): void {
    if (hasMessages) for (const pending of this.#next.events) pending.event = toWorking(pending.event);
    this.#state = this.#stateAfterNext();
  }

  /** Forgets what is not committed; returns those who wait for it. */
  clear(): readonly FlushWaiter[] {
    const waiting = [...(this.#inFlight?.draft.flushed ?? []), ...this.#next.flushed];
    this.#inFlight = undefined;
    this.#next = emptyDraft([], this.bytes, undefined);
    return waiting;
  }

  #stateAfterNext(): TaskState {
    const { events } = this.#next;
    for (let index = events.length - 1; index >= 0; index--) {
      const { event } = events[index] as PendingEvent;
      if ("statusUpdate" in event) return event.statusUpdate.status.state;
    }
    return this.fold.number === 0 ? "TASK_STATE_SUBMITTED" : this.fold.status.state;
  }
}
