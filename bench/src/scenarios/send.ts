import { runLoad, sends } from "../client/load.ts";
import { comparison, type Entry } from "../scenario.ts";

const connections = 64;

/** The contestants of sends and streams: ours, the SDK and the baseline, in memory and durable. */
export function allContestants(agent: "echo" | "stream", share: { memory: number; sqlite: number }): Entry[] {
  return [
    { label: "bare node:http", contestant: "bare", agent, store: "memory" },
    { label: "dragoman memory", contestant: "dragoman", agent, store: "memory" },
    { label: "dragoman SQLite", contestant: "dragoman", agent, store: "sqlite" },
    { label: "a2a-js memory", contestant: "a2a-js", agent, store: "memory", share: share.memory },
    { label: "a2a-js SQLite", contestant: "a2a-js", agent, store: "sqlite", share: share.sqlite },
  ];
}

export const setup =
  "All answer A2A 1.0 over JSON-RPC with a task that was working, has an artifact and is completed. @a2a-js/sdk is mounted on " +
  "Express as documented, NODE_ENV=production; SQLite is its own store on the same driver, WAL, synchronous=FULL (syncs are " +
  "counted in `durability`). Bare node:http parses the request and answers the same task, which it does not store.";

export const send = comparison({
  name: "send",
  title: `blocking send, ${connections} connections`,
  setup,
  targets: [
    { measure: "cpuMicros", of: "dragoman memory", times: "bare node:http", atMost: 1.3 },
    { measure: "cpuMicros", of: "a2a-js memory", times: "dragoman memory", atLeast: 8 },
    { measure: "cpuMicros", of: "dragoman SQLite", times: "bare node:http", atMost: 2.2 },
    { measure: "cpuMicros", of: "a2a-js SQLite", times: "dragoman SQLite", atLeast: 20 },
    { measure: "cpuMicros", of: "a2a-js memory", times: "dragoman SQLite", atLeast: 4 },
  ],
  entries: allContestants("echo", { memory: 0.25, sqlite: 0.1 }),
  counts: { warmUp: 20_000, measured: 30_000, quick: 1_000 },
  load: (contestant) => (count) => runLoad(contestant, { connections, count }, sends),
});
