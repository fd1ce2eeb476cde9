import { type Contestant, type ContestantName, launch } from "./contestants/launch.ts";
import type { AgentName, LinkSettings, Settings } from "./contestants/protocol.ts";
import type { Sample, Samples } from "./measures.ts";
import type { Target } from "./verdict.ts";
import type { Workspace } from "./workspace.ts";

export interface Context {
  rounds: number;
  /** Returns the full size, or the small one for a quick run. */
  size(full: number, quick: number): number;
  workspace: Workspace;
}

export interface Scenario {
  name: string;
  title: string;
  targets: readonly Target[];
  run(context: Context, record: Recorder): Promise<void>;
}

/** One contestant of a comparison. */
export interface Entry {
  label: string;
  contestant: ContestantName;
  agent: AgentName;
  store: "memory" | "sqlite";
  link?: LinkSettings;
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
        const store = context.workspace.newStore(entry.store);
        const settings = { agent: entry.agent, store, ...(entry.link && { link: entry.link }) };
        const sample = await withContestant(entry.contestant, settings, (contestant) => measure(contestant, entry));
        record.add(entry.label, sample);
      } catch (error) {
        record.fail(entry.label, error);
      }
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

/** Runs some work and returns its throughput and the server's CPU cost per unit. */
export async function costOf(
  contestant: Contestant,
  work: () => Promise<{ completed: number; seconds: number }>,
  unitsEach = 1,
): Promise<{ perSecond: number; cpuMicros: number }> {
  const before = await contestant.cpu();
  const { completed, seconds } = await work();
  const after = await contestant.cpu();
  return { perSecond: completed / seconds, cpuMicros: (after - before) / (completed * unitsEach) };
}
