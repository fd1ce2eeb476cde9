import { Connection } from "../client/connection.ts";
import { startTasks } from "../client/load.ts";
import { requestBytes, rpc } from "../client/requests.ts";
import type { Contestant, ContestantName } from "../contestants/launch.ts";
import { compare, type Entry, type Scenario } from "../scenario.ts";

const tasks = 100;
const openedAtOnce = 100;
/** File descriptors that a process needs besides the sockets of the streams. */
const spareDescriptors = 200;

const entries: Entry[] = [
  { label: "bare node:http", contestant: "bare", agent: "hold", store: "memory" },
  { label: "dragoman memory", contestant: "dragoman", agent: "hold", store: "memory" },
  { label: "a2a-js memory", contestant: "a2a-js", agent: "hold", store: "memory" },
];

export const subscriptions: Scenario = {
  name: "subscriptions",
  title: "10,000 idle subscriptions to 100 running tasks",
  setup:
    "@a2a-js/sdk as in send; bare node:http opens an event stream and writes one event. Resident memory after garbage " +
    "collection, before, with all streams open and after they closed.",
  targets: [
    { measure: "streamKilobytes", of: "dragoman memory", times: "bare node:http", atMost: 1.2 },
    { measure: "streamKilobytes", of: "dragoman memory", times: "a2a-js memory", atMost: 0.6 },
    { measure: "heldBytes", of: "dragoman memory", alone: true, atMost: 256 },
  ],
  async run(context, record) {
    const count = context.size(10_000, 500);
    requireDescriptors(count);
    const rounds = Math.min(context.rounds, 3);
    await compare({ ...context, rounds }, record, entries, (contestant, entry) =>
      measureStreams(contestant, entry.contestant, count),
    );
  },
};

async function measureStreams(contestant: Contestant, kind: ContestantName, count: number) {
  const started = kind === "bare" ? [{ id: "none" }] : await startTasks(contestant, tasks, { returnImmediately: true });
  const ids = started.map(({ id }) => id);
  // The first streams also allocate compiled code and pools that persist: they run before the measurement.
  await closeAll(contestant, await openStreams(contestant, ids, Math.ceil(count / 10)));
  const before = await contestant.memory();
  const opened = await openStreams(contestant, ids, count);
  const open = await contestant.memory();
  await closeAll(contestant, opened);
  const after = await contestant.memory();
  return {
    streamKilobytes: (open.rss - before.rss) / 1024 / count,
    heldBytes: (after.heapUsed - before.heapUsed) / count,
  };
}

/** Opens streams in batches; a stream counts as open when its first frame has arrived. */
async function openStreams(contestant: Contestant, ids: readonly string[], count: number): Promise<Connection[]> {
  const opened: Connection[] = [];
  while (opened.length < count) {
    const batch = Array.from({ length: Math.min(openedAtOnce, count - opened.length) }, (_, index) =>
      openStream(contestant, ids[index % ids.length]!),
    );
    opened.push(...(await Promise.all(batch)));
  }
  return opened;
}

async function openStream(contestant: Contestant, id: string): Promise<Connection> {
  const connection = await Connection.open(contestant.port);
  await new Promise<void>((resolve, reject) => {
    const refused = () => reject(new Error("a subscription ended at once"));
    const request = requestBytes(contestant, rpc("SubscribeToTask", { id }));
    connection.exchange(request, { body: () => resolve(), end: refused }).catch(reject);
  });
  return connection;
}

async function closeAll(contestant: Contestant, connections: readonly Connection[]): Promise<void> {
  for (const connection of connections) connection.close();
  // A server has processed every close once it responds on a connection opened afterwards.
  (await Connection.open(contestant.port)).close();
}

function requireDescriptors(streams: number): void {
  const report = process.report.getReport() as { userLimits?: { open_files?: { soft: number | "unlimited" } } };
  const limit = report.userLimits?.open_files?.soft ?? "unlimited";
  if (limit !== "unlimited" && limit < streams + spareDescriptors) {
    throw new Error(
      `only ${limit} files may be open, ${streams + spareDescriptors} are needed: raise it with ulimit -n`,
    );
  }
}
