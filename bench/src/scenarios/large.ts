import { Connection } from "../client/connection.ts";
import { calls, type LoadResult, requests, runLoad, startTasks } from "../client/load.ts";
import { message, requestBytes, rpc } from "../client/requests.ts";
import { BodySink } from "../client/sinks.ts";
import type { Contestant } from "../contestants/launch.ts";
import { compare, costOf, type Entry, type Scenario } from "../scenario.ts";
import { median } from "../statistics.ts";

const bytes = 5 * 1024 * 1024;
const large = requests(
  message("0123456789abcdef".repeat(bytes / 16), { configuration: { historyLength: 0 } }),
  "TASK_STATE_COMPLETED",
);

const entries: Entry[] = [
  { label: "bare node:http", contestant: "bare", agent: "echo", store: "memory" },
  { label: "dragoman memory", contestant: "dragoman", agent: "echo", store: "memory" },
  { label: "dragoman SQLite", contestant: "dragoman", agent: "echo", store: "sqlite" },
];

export const largeMessages: Scenario = {
  name: "large",
  title: "a message of 5 MB that is echoed, one at a time; and how long others wait meanwhile",
  setup:
    "Bare node:http parses the 5 MB and answers them in an artifact, as the agent does; none returns the history. Others read " +
    "a small task in a loop (of bare: send a small message); of their waits the longest during each large message counts, and " +
    "the median of these. @a2a-js/sdk is left out: its body parser refuses more than 100 KB.",
  targets: ["dragoman memory", "dragoman SQLite"].flatMap((of) => [
    { measure: "cpuMicros", of, times: "bare node:http", atMost: 1.5 },
    { measure: "waitMillis", of, alone: true, atMost: 20 },
  ]),
  run: (context, record) =>
    compare(context, record, entries, async (contestant, entry) => {
      const send = (count: number) => runLoad(contestant, { connections: 1, count }, large);
      await send(context.size(10, 2));
      const cost = await costOf(contestant, () => send(context.size(20, 2)));
      const waits = await waitsDuring(contestant, entry, send, context.size(20, 2));
      return { ...cost, waitMillis: median(waits) };
    }),
};

/** The longest wait of another caller during each of some large messages, in milliseconds. */
async function waitsDuring(
  contestant: Contestant,
  { contestant: name }: Entry,
  send: (count: number) => Promise<LoadResult>,
  messages: number,
): Promise<number[]> {
  const request = name === "bare" ? requestBytes(contestant, message("hello")) : await readOfTask(contestant);
  await runLoad(contestant, { connections: 1, count: 200 }, calls([request]));
  const connection = await Connection.open(contestant.port);
  const sink = new BodySink();
  const waits: number[] = [];
  for (let sent = 0; sent < messages; sent++) {
    let isSent = false;
    let longest = 0;
    const sending = send(1).finally(() => {
      isSent = true;
    });
    while (!isSent) {
      const start = performance.now();
      await connection.exchange(request, sink);
      longest = Math.max(longest, performance.now() - start);
      sink.take();
    }
    await sending;
    waits.push(longest);
  }
  connection.close();
  return waits;
}

async function readOfTask(contestant: Contestant): Promise<Buffer> {
  const [task] = await startTasks(contestant, 1);
  return requestBytes(contestant, rpc("GetTask", { id: task?.id }));
}
