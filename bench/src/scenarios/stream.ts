import { runLoad, streams } from "../client/load.ts";
import { chunkBytes } from "../contestants/protocol.ts";
import { comparison, costOf, inTurn, type Scenario, withContestant } from "../scenario.ts";
import type { Target } from "../verdict.ts";
import { allContestants, setup } from "./send.ts";

const chunks = 200;
const streamSetup = `${setup} A stream counts only when all its text arrived and the task ended completed; merging of chunks is switched off.`;

export const burst = comparison({
  name: "stream",
  title: `streaming send, ${chunks} chunks of ${chunkBytes} bytes written at once, 8 streams; per stream`,
  setup: streamSetup,
  targets: [
    { measure: "cpuMicros", of: "dragoman memory", times: "bare node:http", atMost: 1.4 },
    { measure: "cpuMicros", of: "a2a-js memory", times: "dragoman memory", atLeast: 35 },
    { measure: "cpuMicros", of: "dragoman SQLite", times: "bare node:http", atMost: 2.4 },
    { measure: "cpuMicros", of: "a2a-js memory", times: "dragoman SQLite", atLeast: 20 },
  ],
  entries: allContestants("stream", { memory: 0.04, sqlite: 0.02 }),
  counts: { warmUp: 1_000, measured: 1_500, quick: 100 },
  load: (contestant) => (count) => runLoad(contestant, { connections: 8, count }, streams(chunks)),
});

const pacedStreams = 32;
const pauseMillis = 20;
/** Enough chunks to be warm would take long at the full pause; with fewer, a chunk costs up to twice as much. */
const warmUpMillis = 2;

function pacedLoad(pause: number): Parameters<typeof comparison>[0]["load"] {
  return (contestant, context) => (count) =>
    runLoad(
      contestant,
      { connections: pacedStreams, count, spreadMillis: pause },
      streams(context.size(chunks, 10), pause),
    );
}

export const paced = comparison({
  name: "paced-stream",
  title: `streaming send, a chunk of ${chunkBytes} bytes every ${pauseMillis} ms as language models write, ${pacedStreams} streams out of step; per chunk`,
  setup: `${streamSetup} Each agent waits for its own timer before a chunk, so a durable contestant cannot collect chunks of one stream. All are warmed up by five times as many streams with pauses of ${warmUpMillis} ms.`,
  targets: [
    { measure: "cpuMicros", of: "dragoman memory", times: "bare node:http", atMost: 1.4 },
    { measure: "cpuMicros", of: "a2a-js memory", times: "dragoman memory", atLeast: 5 },
    { measure: "cpuMicros", of: "dragoman SQLite", times: "bare node:http", atMost: 2.5 },
    { measure: "cpuMicros", of: "a2a-js memory", times: "dragoman SQLite", atLeast: 3 },
  ],
  entries: allContestants("stream", { memory: 1, sqlite: 1 }),
  counts: { warmUp: 5 * pacedStreams, measured: pacedStreams, quick: pacedStreams },
  warmUp: pacedLoad(warmUpMillis),
  load: pacedLoad(pauseMillis),
  unitsEach: (context) => context.size(chunks, 10),
});

const stores = ["memory", "sqlite"] as const;
const lengths = [200, 10_000] as const;

function labelOf(length: (typeof lengths)[number], store: (typeof stores)[number]): string {
  return `a chunk of ${length.toLocaleString("en")}, ${store}`;
}

export const longStream: Scenario = {
  name: "long-stream",
  title: "cost of one chunk in a stream of 10,000 and in one of 200",
  setup: "Dragoman beside itself, in turn on one warm server: as many chunks in either case.",
  targets: stores.map(
    (store): Target => ({
      measure: "cpuMicros",
      of: labelOf(10_000, store),
      times: labelOf(200, store),
      atMost: 1.2,
    }),
  ),
  async run(context, record) {
    const total = context.size(100_000, 10_000);
    for (const store of stores) {
      const settings = { agent: "stream", store: context.workspace.newStore(store) } as const;
      await withContestant("dragoman", settings, (contestant) => {
        const measurements = lengths.map((length) => {
          const options = { connections: 1, count: total / length };
          const work = () => runLoad(contestant, options, streams(length));
          return [labelOf(length, store), () => costOf(contestant, work, length)] as const;
        });
        return inTurn(context, record, Object.fromEntries(measurements));
      });
    }
  },
};
