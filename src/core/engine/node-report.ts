import type { CounterName, Meter } from "../model/ports.ts";

/** What a node says of itself with each heartbeat, for operators. Counts are since its start. */
export interface NodeReport {
  readonly agents: readonly string[];
  readonly queued: number;
  readonly streams: number;
  readonly commits: number;
  readonly events: number;
  readonly commitMs: number;
  readonly takenOver: number;
  readonly fenced: number;
  readonly missedWakeups: number;
}

/** Passes everything on, and remembers what is reported. */
export class ReportedMeter implements Meter {
  readonly #meter: Meter;
  readonly #counts = new Map<CounterName, number>();

  constructor(meter: Meter) {
    this.#meter = meter;
  }

  count(name: CounterName, by = 1): void {
    this.#counts.set(name, this.of(name) + by);
    this.#meter.count(name, by);
  }

  of(name: CounterName): number {
    return this.#counts.get(name) ?? 0;
  }

  report(
    agents: Iterable<string>,
    { queued, streams }: { readonly queued: number; readonly streams: number },
  ): NodeReport {
    return {
      agents: [...agents],
      queued,
      streams,
      commits: this.of("commits"),
      events: this.of("events_written"),
      commitMs: this.of("commit_milliseconds"),
      takenOver: this.of("runs_resumed") + this.of("runs_failed_by_crash"),
      fenced: this.of("runs_fenced"),
      missedWakeups: this.of("wakeups_missed"),
    };
  }
}
