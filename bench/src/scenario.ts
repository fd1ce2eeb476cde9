import type { LoadResult } from "./client/load.ts";
import { type Contestant, type ContestantName, launch } from "./contestants/launch.ts";
import type { Settings } from "./contestants/protocol.ts";
import type { Measure, Sample, Samples } from "./measures.ts";
import type { Target } from "./verdict.ts";
import type { StoreKind, Workspace } from "./workspace.ts";

export interface Context {
  rounds: number;
  /** Returns the full size, or the small one for a quick run. */
  size(full: number, quick: number): number;
  workspace: Workspace;
}

export interface Scenario {
  name: string;
  title: string;
  /** How the others are set up, and why their work is the same. */
  setup: string;
  targets: readonly Target[];
  /** Labels are `row → column`: these measures are printed as a table each. */
  grid?: readonly Measure[];
  run(context: Context, record: Recorder): Promise<void>;
}

/** One contestant of a comparison. */
export interface Entry extends Omit<Settings, "store"> {
  label: string;
  contestant: ContestantName;
  store: StoreKind;
  /** Fraction of the counts, for a contestant that is many times slower. Default: 1. */
  share?: number;
}

/** Collects samples and failures by label. */
export class Recorder {
  readonly #samples = new Map<string, Sample[]>();
  readonly failures = new Map<string, string>();

  get samples(): Samples {
    return this.#samples;
  }

  add(label: string, sample: Sample): void {
    const known = this.#samples.get(label);
    if (known) known.push(sample);
    else this.#samples.set(label, [sample]);
  }

  fail(label: string, error: unknown): void {
    this.failures.set(label, error instanceof Error ? error.message : String(error));
  }
}

interface Comparison extends Omit<Scenario, "run"> {
  entries: readonly Entry[];
  /** Numbers of requests (or streams, or messages), never times: every contestant then does all of its work. */
  counts: { readonly warmUp: number; readonly measured: number; readonly quick: number };
  load(contestant: Contestant, context: Context, entry: Entry): (count: number) => Promise<LoadResult>;
  /** Where the load takes its time, the same work in less of it. Default: `load`. */
  warmUp?: Comparison["load"];
  /** Units within each request that the CPU is counted by. Default: 1. */
  unitsEach?(context: Context): number;
}

/** A scenario that puts the same load on all entries. */
export function comparison({ entries, counts, load, warmUp = load, unitsEach, ...scenario }: Comparison): Scenario {
  return {
    ...scenario,
    run: (context, record) =>
      compare(context, record, entries, async (contestant, entry) => {
        const { share = 1 } = entry;
        await warmUp(contestant, context, entry)(Math.ceil(context.size(counts.warmUp, counts.quick) * share));
        const run = load(contestant, context, entry);
        const measured = Math.ceil(context.size(counts.measured, counts.quick) * share);
        return costOf(contestant, () => run(measured), unitsEach?.(context));
      }),
  };
}

/**
 * Measures all entries in every round, each in a fresh process with a fresh store, so that no round
 * inherits the heap of an earlier one. Every other round is in reverse order, so that no entry always goes first.
 */
export async function compare(
  context: Context,
  record: Recorder,
  entries: readonly Entry[],
  measure: (contestant: Contestant, entry: Entry) => Promise<Sample>,
): Promise<void> {
  for (let round = 0; round < context.rounds; round++) {
    for (const entry of round % 2 === 0 ? entries : entries.toReversed()) {
      if (record.failures.has(entry.label)) continue;
      try {
        const settings = { ...entry, store: context.workspace.newStore(entry.store) };
        const sample = await withContestant(entry.contestant, settings, (contestant) => measure(contestant, entry));
        record.add(entry.label, sample);
      } catch (error) {
        record.fail(entry.label, error);
      }
    }
  }
}

/** Measures by label, in turn on warm servers; a first round is the warm-up. */
export async function inTurn(
  context: Context,
  record: Recorder,
  measurements: Readonly<Record<string, () => Promise<Sample>>>,
): Promise<void> {
  const all = Object.entries(measurements);
  for (let round = -1; round < context.rounds; round++) {
    for (const [label, measure] of round % 2 === 0 ? all : all.toReversed()) {
      const sample = await measure();
      if (round >= 0) record.add(label, sample);
    }
  }
}

export async function withContestant<Result>(
  name: ContestantName,
  settings: Settings,
  use: (contestant: Contestant) => Promise<Result>,
): Promise<Result> {
  const contestant = await launch(name, settings);
  try {
    return await use(contestant);
  } finally {
    await contestant.stop();
  }
}

/** Runs some work and returns what it cost the server: CPU per unit. */
export async function costOf(contestant: Contestant, work: () => Promise<LoadResult>, unitsEach = 1): Promise<Sample> {
  const before = await contestant.cpu();
  const { completed, frames, seconds } = await work();
  const after = await contestant.cpu();
  return {
    cpuMicros: (after - before) / (completed * unitsEach),
    perSecond: completed / seconds,
    ...(frames !== completed && { framesEach: frames / completed }),
  };
}
