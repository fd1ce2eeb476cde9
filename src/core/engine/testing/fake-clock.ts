import type { Clock } from "../../model/ports.ts";

interface Timer {
  readonly at: number;
  readonly run: () => void;
}

/** Time that stands still until a test moves it. */
export class FakeClock implements Clock {
  #now = Date.UTC(2026, 0, 1);
  readonly #timers = new Set<Timer>();

  now(): number {
    return this.#now;
  }

  after(milliseconds: number, run: () => void): () => void {
    const timer = { at: this.#now + milliseconds, run };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** Moves time on; every timer on the way runs at its moment, and what it started comes to rest before the next. */
  async advance(milliseconds: number): Promise<void> {
    await settle();
    const end = this.#now + milliseconds;
    for (let due = this.#next(end); due !== undefined; due = this.#next(end)) {
      this.#timers.delete(due);
      this.#now = Math.max(this.#now, due.at);
      due.run();
      await settle();
    }
    this.#now = end;
  }

  #next(end: number): Timer | undefined {
    let earliest: Timer | undefined;
    for (const timer of this.#timers) {
      if (timer.at <= end && (earliest === undefined || timer.at < earliest.at)) earliest = timer;
    }
    return earliest;
  }
}

/** Lets everything that is ready run: group commits take one turn of the event loop each. */
export async function settle(turns = 8): Promise<void> {
  for (let turn = 0; turn < turns; turn++) {
    await new Promise<void>((resolve) => {
      setImmediate(resolve);
    });
  }
}

/** What the promise comes to without any time passing; fails if that is nothing. */
export async function promptly<T>(promise: Promise<T>): Promise<T> {
  const late = settle(40).then(() => {
    throw new Error("Nothing came, and nothing is left to happen.");
  });
  return Promise.race([promise, late]);
}
