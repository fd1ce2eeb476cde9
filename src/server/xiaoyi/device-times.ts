/** When devices were last told something: a device may be known to several entries, and has a longer life than a process. */
import type { Log } from "../../model/ports.ts";
import type { KeptMap } from "./kept-map.ts";

/** The platform says yes to what comes sooner to one device, and shows none of it. */
export const DEVICE_SPACING_MS = 15_000;

export class DeviceTimes {
  readonly #kept: KeptMap<number>;
  readonly #log: Log;
  /** Only of late. */
  readonly #toldAt = new Map<string, number>();

  constructor(kept: KeptMap<number>, log: Log) {
    this.#kept = kept;
    this.#log = log;
  }

  /** Takes up what an earlier process noted. */
  async load(): Promise<void> {
    for (const [pushId, at] of await this.#kept.entries()) {
      if (!this.#toldAt.has(pushId)) this.#toldAt.set(pushId, at);
    }
  }

  /** When a device may be told something again. */
  readyAt(pushId: string): number {
    return (this.#toldAt.get(pushId) ?? Number.NEGATIVE_INFINITY) + DEVICE_SPACING_MS;
  }

  /** What was noted before is kept then. */
  settled(): Promise<void> {
    return this.#kept.settled();
  }

  note(pushId: string, now: number): void {
    for (const [known, at] of this.#toldAt) if (now - at >= DEVICE_SPACING_MS) this.#toldAt.delete(known);
    this.#toldAt.set(pushId, now);
    this.#kept.set(pushId, now).catch((error: unknown) => {
      this.#log.warn({ err: error }, "When a phone was last told something could not be kept.");
    });
  }
}
