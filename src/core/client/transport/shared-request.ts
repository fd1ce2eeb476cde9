import type { Signal } from "../../model/abort.ts";

interface Flight<T> {
  readonly made: Promise<T>;
  readonly controller: AbortController;
  waiting: number;
}

/** A request shared by several callers: made once, and aborted only when none of them waits for it any more. */
export class SharedRequest<T> {
  readonly #make: (signal: AbortSignal) => Promise<T>;
  #flight: Flight<T> | undefined;

  constructor(make: (signal: AbortSignal) => Promise<T>) {
    this.#make = make;
  }

  /** It is being made, so that the next caller shares it. */
  get isMade(): boolean {
    return this.#flight !== undefined;
  }

  /** Rejects with the reason of the signal when that is aborted, whatever becomes of the request. */
  async join(signal: Signal | undefined): Promise<T> {
    const flight = this.#flight ?? this.#start();
    flight.waiting++;
    let leave = (): void => {};
    const left = new Promise<never>((_resolve, reject) => {
      leave = () => reject(signal?.reason);
      if (signal?.aborted === true) leave();
      else signal?.addEventListener("abort", leave, { once: true });
    });
    try {
      return await Promise.race([flight.made, left]);
    } finally {
      signal?.removeEventListener("abort", leave);
      if (--flight.waiting === 0) flight.controller.abort();
    }
  }

  #start(): Flight<T> {
    const controller = new AbortController();
    const made = this.#make(controller.signal).finally(() => {
      if (this.#flight === flight) this.#flight = undefined;
    });
    const flight: Flight<T> = { made, controller, waiting: 0 };
    // An aborted request is not shared any more: the next call starts another.
    controller.signal.addEventListener("abort", () => {
      if (this.#flight === flight) this.#flight = undefined;
    });
    this.#flight = flight;
    return flight;
  }
}
