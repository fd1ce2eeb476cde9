/** How much each of many holds at this moment. Whoever holds nothing costs nothing. */
export class Shares {
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

  /** False, and nothing is taken, if the holder has as much as it may. Nobody in particular is never refused. */
  take(holder: string | undefined): boolean {
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
