import { LogEntry } from "../../model/event.ts";
import { isTerminal } from "../../model/task.ts";
import { TransientMap } from "../../model/transient.ts";
import type { Cursor, Wakeup } from "../../store/contract.ts";
import type { EngineContext } from "../options.ts";

const TAIL_LENGTH = 256;
/** A reader that is behind by more reads the store. */
const MAX_TAIL_BYTES = 8 * 1024 * 1024;
const READ_LIMIT = 64;
/** Idle topics looked at per sweep, in turn, so that ten thousand quiet readers cost next to nothing. */
const SWEEP_BATCH_SIZE = 500;

/** Committed entries of one task that were written here while there was a reader: a cache, never the truth. */
interface Topic {
  readonly id: string;
  readonly readers: Set<LogReader>;
  tail: LogEntry[];
  tailBytes: number;
}

/**
 * All readers of all logs in this process. A reader is a cursor, not a queue: however slow it is, it costs nothing but
 * its place. Wake-ups are hints; a sweep finds what they missed.
 */
export class LogReaders {
  readonly #context: EngineContext;
  readonly #topics = new TransientMap<string, Topic>();
  readonly #unsubscribe: () => void;
  #cancelSweep: (() => void) | undefined;
  #sweepPosition = 0;

  constructor(context: EngineContext) {
    this.#context = context;
    this.#unsubscribe = context.store.wakeups.subscribe((wakeup) => this.#wake(wakeup));
  }

  /** `upToDate`: the caller knows that nothing follows `after` yet, so the store need not be asked. */
  open(id: string, after: number, upToDate = false): LogReader {
    let topic = this.#topics.get(id);
    if (topic === undefined) {
      topic = { id, readers: new Set(), tail: [], tailBytes: 0 };
      this.#topics.set(id, topic);
      this.#sweepLater();
    }
    const reader = new LogReader(this, topic, after, !upToDate);
    topic.readers.add(reader);
    return reader;
  }

  /** Entries that just became durable; kept at hand if this task has a reader. */
  cache(id: string, entries: readonly LogEntry[]): void {
    const topic = this.#topics.get(id);
    if (topic === undefined || entries.length === 0) return;
    const last = topic.tail.at(-1);
    if (topic.tailBytes > MAX_TAIL_BYTES || (last !== undefined && entries[0]?.number !== last.number + 1)) {
      topic.tail = [];
      topic.tailBytes = 0;
    }
    for (const entry of entries) topic.tailBytes += entry.size;
    if (topic.tail.length === 0) topic.tail = entries.slice();
    else topic.tail.push(...entries);
    if (topic.tail.length > 2 * TAIL_LENGTH) topic.tail = topic.tail.slice(-TAIL_LENGTH);
  }

  release(topic: Topic, reader: LogReader): void {
    topic.readers.delete(reader);
    if (topic.readers.size === 0 && this.#topics.get(topic.id) === topic) this.#topics.delete(topic.id);
  }

  /** What follows the cursor; undefined if the task is gone. */
  /** Waits for a store that is away: a stream that has begun continues when it is back. */
  readStore(cursor: Cursor): Promise<readonly LogEntry[] | undefined> {
    return this.#context.storeReturn.retry(() => this.#read(cursor));
  }

  async #read(cursor: Cursor): Promise<readonly LogEntry[] | undefined> {
    const [read] = await this.#context.store.read([cursor], READ_LIMIT);
    if (read?.kind === "entries") return read.entries;
    // A reader that waits for a task's first event may be woken before it is written.
    if (read?.kind !== "compacted") return cursor.after === 0 ? [] : undefined;
    const { historyPage } = this.#context.limits;
    const snapshot = await this.#context.store.snapshot(cursor.id, { history: historyPage, artifacts: true });
    return snapshot === undefined ? undefined : [LogEntry.of(snapshot.number, { task: snapshot.task })];
  }

  close(): void {
    this.#unsubscribe();
    this.#cancelSweep?.();
    for (const topic of this.#topics.values()) for (const reader of [...topic.readers]) reader.close();
  }

  #wake(wakeup: Wakeup | "all"): void {
    if (wakeup === "all") {
      for (const topic of this.#topics.values()) wakeReaders(topic);
      return;
    }
    if (wakeup.log === undefined || this.#topics.size === 0) return;
    for (const id of wakeup.log) {
      const topic = this.#topics.get(id);
      if (topic !== undefined) wakeReaders(topic);
    }
  }

  #sweepLater(): void {
    if (this.#cancelSweep !== undefined) return;
    this.#cancelSweep = this.#context.clock.after(this.#context.times.sweepMs, () => {
      this.#sweep()
        .catch((error: unknown) => this.#context.log.warn({ err: error }, "Looking for missed wake-ups failed."))
        .finally(() => {
          this.#cancelSweep = undefined;
          if (this.#topics.size > 0) this.#sweepLater();
        });
    });
  }

  async #sweep(): Promise<void> {
    const topics = this.#nextTopics();
    if (topics.length === 0) return;
    const numbers = await this.#context.store.numbers(topics.map((topic) => topic.id));
    topics.forEach((topic, index) => {
      const number = numbers[index] ?? 0;
      for (const reader of topic.readers) {
        // A task that is gone has no number: a reader that had seen something of it must learn that.
        const isGone = number === 0 && reader.position > 0;
        if (reader.waiting && (isGone || reader.position < number)) {
          this.#context.meter.count("wakeups_missed");
          reader.wake();
        }
      }
    });
  }

  #nextTopics(): Topic[] {
    const all = this.#topics.values();
    if (all.length <= SWEEP_BATCH_SIZE) return all;
    const start = this.#sweepPosition % all.length;
    this.#sweepPosition = start + SWEEP_BATCH_SIZE;
    return [...all.slice(start, start + SWEEP_BATCH_SIZE)];
  }
}

function wakeReaders(topic: Topic): void {
  for (const reader of topic.readers) reader.wake();
}

/** At least one, or undefined once the reader is closed. */
type NextEntries = readonly LogEntry[] | undefined;

/** One reader's place in one log. */
export class LogReader {
  readonly #readers: LogReaders;
  readonly #topic: Topic;
  #position: number;
  #closed = false;
  #wakened: boolean;
  #resume: ((entries: NextEntries | Promise<NextEntries>) => void) | undefined;

  constructor(readers: LogReaders, topic: Topic, after: number, wakened: boolean) {
    this.#readers = readers;
    this.#topic = topic;
    this.#position = after;
    this.#wakened = wakened;
  }

  get position(): number {
    return this.#position;
  }
  get waiting(): boolean {
    return this.#resume !== undefined;
  }

  /** While it waits, a reader is one promise and nothing more: there may be ten thousand of them. */
  next(): Promise<NextEntries> {
    if (this.#closed) return Promise.resolve(undefined);
    const entries = this.#takeTail();
    if (entries !== undefined) return Promise.resolve(entries);
    if (this.#wakened) return this.#readUp();
    return new Promise((resolve) => {
      this.#resume = resolve;
    });
  }

  /** There may be something new. */
  wake(): void {
    this.#wakened = true;
    const resume = this.#resume;
    if (resume === undefined) return;
    this.#resume = undefined;
    // Not with `next()`: a promise that is resolved by another takes two more turns of the microtask queue.
    resume(this.#closed ? undefined : (this.#takeTail() ?? this.#readUp()));
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#readers.release(this.#topic, this);
    this.wake();
  }

  #takeTail(): NextEntries {
    const { tail } = this.#topic;
    const first = tail[0];
    if (first === undefined || first.number > this.#position + 1) return undefined;
    const skip = this.#position + 1 - first.number;
    if (skip >= tail.length) return undefined;
    // The tail ends where this process last wrote. What others wrote since is announced again, or found by the sweep.
    this.#wakened = false;
    return this.#advance(tail.slice(skip));
  }

  async #readUp(): Promise<NextEntries> {
    // Cleared before the read: a wake-up during it must lead to another one.
    this.#wakened = false;
    const entries = await this.#readers.readStore({ id: this.#topic.id, after: this.#position });
    if (this.#closed) return undefined;
    if (entries === undefined) {
      this.close();
      return undefined;
    }
    if (entries.length === 0) return this.next();
    // There may be more than fits into one read.
    this.#wakened = true;
    return this.#advance(entries);
  }

  #advance(entries: readonly LogEntry[]): readonly LogEntry[] {
    this.#position = (entries.at(-1) as LogEntry).number;
    return entries;
  }
}

/** Whether a task's stream is over with this entry. */
export function endsStream(entry: LogEntry, endOnInputRequired: boolean): boolean {
  const state = entry.state;
  if (state === undefined) return false;
  return isTerminal(state) || (endOnInputRequired && state === "TASK_STATE_INPUT_REQUIRED");
}
