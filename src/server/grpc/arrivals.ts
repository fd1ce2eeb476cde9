/** Something that is waited for. */
export interface Arriving {
  /** It did not arrive in time. */
  giveUp(): void;
}

/**
 * Requests whose message has not come in full. What takes longer than the time allowed, and at most twice as long, is
 * given up. Two generations and one timer: the usual request costs an entry in a set, not a timer of its own.
 */
export class Arrivals {
  #young = new Set<Arriving>();
  #old = new Set<Arriving>();
  readonly #timer: NodeJS.Timeout;

  constructor(allowedMs: number) {
    this.#timer = setInterval(() => this.#age(), allowedMs);
    this.#timer.unref();
  }

  add(one: Arriving): void {
    this.#young.add(one);
  }

  delete(one: Arriving): void {
    if (!this.#young.delete(one)) this.#old.delete(one);
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #age(): void {
    const late = this.#old;
    this.#old = this.#young;
    this.#young = new Set();
    for (const one of late) one.giveUp();
  }
}
