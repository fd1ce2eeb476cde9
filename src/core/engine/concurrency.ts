import type { Agent } from "./agent.ts";

/** An agent with the line of those that wait to be run by it. */
export interface ServedAgent {
  readonly name: string;
  agent: Agent;
  readonly queue: RunQueue;
}

/**
 * Limits the runs of one agent at a time. Waiting runs are started in turn by owner, so that one owner's thousand
 * tasks do not make the next owner wait for all of them; within an owner, first come first served.
 */
export class RunQueue {
  #limit: number;
  #running = 0;
  #waiting = 0;
  #starting = false;
  /** Insertion order is the order of turns: an owner that was served goes to the end. */
  readonly #byOwner = new Map<string, (() => void)[]>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  get waiting(): number {
    return this.#waiting;
  }

  get isFull(): boolean {
    return this.#running >= this.#limit;
  }

  /** True: run now. Otherwise `start` is called when it is this one's turn. Each start is matched by one `leave`. */
  enter(owner: string, start: () => void): boolean {
    if (this.#running < this.#limit) {
      this.#running++;
      return true;
    }
    const line = this.#byOwner.get(owner);
    if (line === undefined) this.#byOwner.set(owner, [start]);
    else line.push(start);
    this.#waiting++;
    return false;
  }

  leave(): void {
    this.#running--;
    this.#start();
  }

  /** For an agent that was replaced by one that runs more or fewer turns at a time. */
  resize(limit: number): void {
    this.#limit = limit;
    this.#start();
  }

  #start(): void {
    // A run that ends at once leaves while it is being started: the loop below continues then, without recursion.
    if (this.#starting) return;
    this.#starting = true;
    while (this.#running < this.#limit) {
      const start = this.#next();
      if (start === undefined) break;
      this.#running++;
      start();
    }
    this.#starting = false;
  }

  #next(): (() => void) | undefined {
    for (const [owner, line] of this.#byOwner) {
      const start = line.shift();
      this.#byOwner.delete(owner);
      if (line.length > 0) this.#byOwner.set(owner, line);
      if (start === undefined) continue;
      this.#waiting--;
      return start;
    }
    return undefined;
  }
}

/** Lets those who act under the same key act one after the other. */
export class KeyedMutex {
  readonly #last = new Map<string, Promise<unknown>>();

  async runExclusive<T>(key: string, act: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key);
    const turn = before === undefined ? act() : before.then(act, act);
    this.#last.set(key, turn);
    try {
      return await turn;
    } finally {
      if (this.#last.get(key) === turn) this.#last.delete(key);
    }
  }
}

/** How much each of many holders holds at this moment. A holder of nothing costs nothing. */
export class QuotaCounter {
  readonly #held = new Map<string, number>();
  readonly #most: number;

  constructor(most: number) {
    this.#most = most;
  }

  /** Of all together. */
  get total(): number {
    let total = 0;
    for (const held of this.#held.values()) total += held;
    return total;
  }

  /** False, and nothing is taken, if the holder has as much as it may. An undefined holder is never refused. */
  acquire(holder: string | undefined): boolean {
    if (holder === undefined) return true;
    const held = this.#held.get(holder) ?? 0;
    if (held >= this.#most) return false;
    this.#held.set(holder, held + 1);
    return true;
  }

  release(holder: string | undefined): void {
    if (holder === undefined) return;
    const left = (this.#held.get(holder) ?? 0) - 1;
    if (left > 0) this.#held.set(holder, left);
    else this.#held.delete(holder);
  }
}

/** How many tasks owners have under way, and the bytes of the messages in them. */
export class OwnerLoads {
  readonly #loads = new Map<string, { tasks: number; bytes: number }>();

  tasksOf(owner: string): number {
    return this.#loads.get(owner)?.tasks ?? 0;
  }

  bytesOf(owner: string): number {
    return this.#loads.get(owner)?.bytes ?? 0;
  }

  /** Negative numbers take away. An owner without a task costs nothing. */
  add(owner: string, tasks: number, bytes: number): void {
    const load = this.#loads.get(owner);
    if (load === undefined) {
      this.#loads.set(owner, { tasks, bytes });
      return;
    }
    load.tasks += tasks;
    load.bytes += bytes;
    if (load.tasks === 0) this.#loads.delete(owner);
  }
}
