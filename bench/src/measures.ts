/** Everything a scenario can measure, and how to print it. */
export const measures = {
  cpuMicros: { title: "CPU µs each", digits: 1 },
  databaseCpuMicros: { title: "CPU µs of the database", digits: 1 },
  p50CpuMicros: { title: "p50 CPU µs", digits: 0 },
  p99CpuMicros: { title: "p99 CPU µs", digits: 0 },
  cpuMillis: { title: "CPU ms", digits: 0 },
  perSecond: { title: "per second", digits: 0 },
  framesEach: { title: "frames each", digits: 1 },
  syncsEach: { title: "syncs each", digits: 2 },
  p50Millis: { title: "p50 ms", digits: 2 },
  p99Millis: { title: "p99 ms", digits: 2 },
  addedMillis: { title: "p50 ms added", digits: 2 },
  takeOverMillis: { title: "ms until taken over", digits: 0 },
  waitMillis: { title: "ms that others wait", digits: 1 },
  fileShare: { title: "file size after pruning / before", digits: 2 },
  streamKilobytes: { title: "RSS KB per stream", digits: 2 },
  heldBytes: { title: "heap bytes held per closed stream", digits: 0 },
  openRssKilobytes: { title: "RSS KB each while open", digits: 2 },
  openHeapKilobytes: { title: "heap KB each while open", digits: 2 },
  endedHeapKilobytes: { title: "heap KB each when ended", digits: 2 },
  agentKilobytes: { title: "KB per agent", digits: 2 },
} as const satisfies Record<string, { title: string; digits: number }>;

export type Measure = keyof typeof measures;

/** The measurements of one contestant in one round. */
export type Sample = Partial<Record<Measure, number>>;

/** Samples of all rounds by the contestant's label, in printing order. */
export type Samples = ReadonlyMap<string, readonly Sample[]>;

export function series(samples: Samples, label: string, measure: Measure): number[] {
  return (samples.get(label) ?? []).flatMap((sample) => sample[measure] ?? []);
}
