/**
 * How many runs of one agent go on at a time. Whoever waits is served in turn by owner, so that one owner's thousand
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
    // A run that ends at once leaves while it is being started: the loop below goes on then, not deeper.
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
