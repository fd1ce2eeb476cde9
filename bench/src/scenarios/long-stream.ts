import { runLoad, streams } from "../client/load.ts";
import { chunkBytes } from "../contestants/protocol.ts";
import { costOf, type Scenario, withContestant } from "../scenario.ts";
import type { Target } from "../verdict.ts";

const stores = ["memory", "sqlite"] as const;
const lengths = { short: 200, long: 10_000 } as const;

type Store = (typeof stores)[number];
type Length = keyof typeof lengths;

function labelOf(length: Length, store: Store): string {
  return `a chunk of ${lengths[length].toLocaleString("en")}, ${store}`;
}

export const longStream: Scenario = {
  name: "long-stream",
  title: "cost of one chunk in a stream of 10,000 and in one of 200",
  targets: stores.map(
    (store): Target => ({
      measure: "cpuMicros",
      of: labelOf("long", store),
      times: labelOf("short", store),
      atMost: 1.2,
    }),
  ),
  async run(context, record) {
    const chunksEach = context.size(100_000, 20_000);
    for (const store of stores) {
      const settings = { agent: "stream", store: context.workspace.newStore(store) } as const;
      await withContestant("dragoman", settings, async (contestant) => {
        for (let round = -1; round < context.rounds; round++) {
          for (const length of ["short", "long"] as const) {
            const chunks = lengths[length];
            const until = { requests: chunksEach / chunks };
            const load = () => runLoad(contestant, 1, until, streams(contestant, chunks, chunkBytes));
            const sample = await costOf(contestant, load, chunks);
            // Round -1 is a warm-up.
            if (round >= 0) record.add(labelOf(length, store), { cpuMicros: sample.cpuMicros });
          }
        }
      });
    }
  },
};
