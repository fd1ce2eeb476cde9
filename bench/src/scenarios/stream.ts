import { runLoad, streams } from "../client/load.ts";
import { chunkBytes } from "../contestants/protocol.ts";
import { compare, costOf, type Entry, type Scenario } from "../scenario.ts";

const connections = 8;
const chunks = 200;

const entries: Entry[] = [
  { label: "dragoman memory", contestant: "dragoman", agent: "stream", store: "memory" },
  { label: "dragoman SQLite", contestant: "dragoman", agent: "stream", store: "sqlite" },
  { label: "a2a-js memory", contestant: "a2a-js", agent: "stream", store: "memory" },
  { label: "bare, a write per event", contestant: "bare", agent: "stream", store: "memory" },
];

export const stream: Scenario = {
  name: "stream",
  title: `streaming send, ${chunks} chunks of ${chunkBytes} bytes, ${connections} connections`,
  targets: [
    { measure: "perSecond", of: "dragoman memory", times: "a2a-js memory", atLeast: 50 },
    { measure: "perSecond", of: "dragoman memory", times: "bare, a write per event", atLeast: 0.8 },
    { measure: "perSecond", of: "dragoman SQLite", times: "a2a-js memory", atLeast: 25 },
  ],
  run: (context, record) =>
    compare(context, record, entries, async (contestant) => {
      let framesEach = 0;
      const load = async (seconds: number) => {
        const result = await runLoad(contestant, connections, { seconds }, streams(contestant, chunks, chunkBytes));
        framesEach = result.frames / result.completed;
        return result;
      };
      await load(context.size(1.5, 0.3));
      const cost = await costOf(contestant, () => load(context.size(3, 0.4)));
      return { ...cost, framesEach };
    }),
};
