import { Connection } from "../client/connection.ts";
import { call, calls, runLoad } from "../client/load.ts";
import { rpcRequest } from "../client/requests.ts";
import type { Contestant } from "../contestants/launch.ts";
import { type Context, costOf, type Recorder, type Scenario, withContestant } from "../scenario.ts";
import type { Target } from "../verdict.ts";
import { fillTasks } from "../workspace.ts";

const connections = 8;
const pageSize = 50;
const few = 100;
const stores = ["memory", "sqlite"] as const;
const lookups = ["get", "first page", "last page"] as const;

type Store = (typeof stores)[number];
type Lookup = (typeof lookups)[number];
type Requests = Record<Lookup, Buffer[]>;

function labelOf(lookup: Lookup, amount: "few" | "many", store: Store): string {
  return `${lookup}, ${amount} tasks, ${store}`;
}

export const lookup: Scenario = {
  name: "lookup",
  title: "get and list with 100,000 tasks (many) against 100 (few)",
  targets: stores.flatMap((store) =>
    lookups.map(
      (name): Target => ({
        measure: "cpuMicros",
        of: labelOf(name, "many", store),
        times: labelOf(name, "few", store),
        atMost: 1.2,
      }),
    ),
  ),
  async run(context, record) {
    for (const store of stores) await measureStore(context, record, store);
  },
};

async function measureStore(context: Context, record: Recorder, store: Store): Promise<void> {
  const many = context.size(100_000, 1_000);
  const storeOf = async (tasks: number) => (store === "memory" ? "memory:" : context.workspace.filledStore(tasks));
  const fewStore = await storeOf(few);
  const manyStore = await storeOf(many);
  await withContestant("dragoman", { agent: "echo", store: fewStore }, (small) =>
    withContestant("dragoman", { agent: "echo", store: manyStore }, async (large) => {
      if (store === "memory") {
        await fillTasks(small, few);
        await fillTasks(large, many);
      }
      const contestants = [
        { amount: "few", contestant: small, requests: await requestsFor(small, few) },
        { amount: "many", contestant: large, requests: await requestsFor(large, many) },
      ] as const;
      for (let round = -1; round < context.rounds; round++) {
        for (const name of lookups) {
          for (const { amount, contestant, requests } of round % 2 === 0 ? contestants : contestants.toReversed()) {
            const count = context.size(name === "get" ? 8_000 : 2_000, 100);
            const load = () => runLoad(contestant, connections, { requests: count }, calls(requests[name]));
            const sample = await costOf(contestant, load);
            // Round -1 is a warm-up.
            if (round >= 0) record.add(labelOf(name, amount, store), sample);
          }
        }
      }
    }),
  );
}

interface Page {
  tasks: { id: string }[];
  nextPageToken: string;
  totalSize: number;
}

/** Pages through the whole list once, to obtain the token of the last page and ids from all over the list. */
async function requestsFor(contestant: Contestant, expected: number): Promise<Requests> {
  const connection = await Connection.open(contestant.port);
  const ids: string[] = [];
  let pageToken = "";
  let lastToken = "";
  do {
    lastToken = pageToken;
    const page = await call<Page>(connection, contestant, "ListTasks", { pageSize, pageToken });
    for (const task of page.tasks) ids.push(task.id);
    pageToken = page.nextPageToken;
  } while (pageToken);
  connection.close();
  if (new Set(ids).size !== expected) throw new Error(`${expected} tasks stored, ${new Set(ids).size} listed`);
  const step = Math.max(1, Math.floor(ids.length / 1_000));
  const sampled = ids.filter((_, index) => index % step === 0);
  return {
    get: sampled.map((id) => rpcRequest(contestant, "GetTask", { id })),
    "first page": [rpcRequest(contestant, "ListTasks", { pageSize })],
    "last page": [rpcRequest(contestant, "ListTasks", { pageSize, pageToken: lastToken })],
  };
}
