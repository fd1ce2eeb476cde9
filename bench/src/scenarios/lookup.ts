import { call, calls, runLoad } from "../client/load.ts";
import { requestBytes, rpc } from "../client/requests.ts";
import type { Contestant } from "../contestants/launch.ts";
import type { Sample } from "../measures.ts";
import { type Context, costOf, inTurn, type Recorder, type Scenario, withContestant } from "../scenario.ts";
import type { Target } from "../verdict.ts";
import { fillTasks, type StoreKind } from "../workspace.ts";

const connections = 8;
const pageSize = 50;
const few = 1_000;
const stores = ["memory", "sqlite"] as const;
const lookups = ["get", "first page", "last page"] as const;

type Lookup = (typeof lookups)[number];
type Requests = Record<Lookup, Buffer[]>;

function labelOf(lookup: Lookup, amount: "few" | "many", store: StoreKind): string {
  return `${lookup}, ${amount} tasks, ${store}`;
}

function nextPage(since: "nothing" | "many tasks", store: StoreKind): string {
  return `next page, ${since} since, ${store}`;
}

export const lookup: Scenario = {
  name: "lookup",
  title:
    "get and list with many tasks (1,000,000 in SQLite, 100,000 in memory) against 1,000; the next page after 20,000 tasks ended since the first",
  setup: "Dragoman beside itself, in turn on warm servers: the same requests, pages of 50 tasks.",
  targets: stores.flatMap((store): Target[] => [
    ...lookups.map(
      (name): Target => ({
        measure: "cpuMicros",
        of: labelOf(name, "many", store),
        times: labelOf(name, "few", store),
        atMost: 1.3,
      }),
    ),
    {
      measure: "cpuMicros",
      of: nextPage("many tasks", store),
      times: nextPage("nothing", store),
      atMost: 1.3,
    },
  ]),
  async run(context, record) {
    for (const store of stores) await measureStore(context, record, store);
  },
};

async function measureStore(context: Context, record: Recorder, store: StoreKind): Promise<void> {
  const many = context.size(store === "memory" ? 100_000 : 1_000_000, 2_000);
  const storeOf = async (tasks: number) => (store === "memory" ? "memory:" : context.workspace.filledStore(tasks));
  await withContestant("dragoman", { agent: "echo", store: await storeOf(few) }, async (small) =>
    withContestant("dragoman", { agent: "echo", store: await storeOf(many) }, async (large) => {
      if (store === "memory") {
        await fillTasks(small, few);
        await fillTasks(large, many);
      }
      const fewRequests = await requestsFor(small, few);
      const manyRequests = await requestsFor(large, many);
      const measurements: Record<string, () => Promise<Sample>> = {};
      for (const name of lookups) {
        const count = context.size(name === "get" ? 8_000 : 2_000, 100);
        measurements[labelOf(name, "few", store)] = () => cost(small, fewRequests[name], count);
        measurements[labelOf(name, "many", store)] = () => cost(large, manyRequests[name], count);
      }
      await inTurn(context, record, measurements);
      const pages = context.size(1_000, 100);
      await inTurn(context, record, {
        [nextPage("nothing", store)]: async () => cost(small, [await nextPageOf(small)], pages),
        [nextPage("many tasks", store)]: async () => {
          const request = await nextPageOf(small);
          await fillTasks(small, context.size(20_000, 500));
          return cost(small, [request], pages);
        },
      });
    }),
  );
}

function cost(contestant: Contestant, requests: readonly Buffer[], count: number): Promise<Sample> {
  return costOf(contestant, () => runLoad(contestant, { connections, count }, calls(requests)));
}

interface Page {
  tasks: { id: string }[];
  nextPageToken: string;
}

function pageRequest(contestant: Contestant, pageToken?: string): Buffer {
  return requestBytes(contestant, rpc("ListTasks", { pageSize, pageToken }));
}

/** The request for the second page of the list as it is now. */
async function nextPageOf(contestant: Contestant): Promise<Buffer> {
  const { nextPageToken } = await call<Page>(contestant, "ListTasks", { pageSize });
  return pageRequest(contestant, nextPageToken);
}

/** Pages through the whole list once, to obtain the token of the last page and ids from all over the list. */
async function requestsFor(contestant: Contestant, expected: number): Promise<Requests> {
  const ids = new Set<string>();
  let pageToken = "";
  let lastToken = "";
  do {
    lastToken = pageToken;
    const page = await call<Page>(contestant, "ListTasks", { pageSize, pageToken });
    for (const task of page.tasks) ids.add(task.id);
    pageToken = page.nextPageToken;
  } while (pageToken);
  if (ids.size !== expected) throw new Error(`${expected} tasks stored, ${ids.size} listed`);
  const step = Math.max(1, Math.floor(ids.size / 1_000));
  const sampled = [...ids].filter((_, index) => index % step === 0);
  return {
    get: sampled.map((id) => requestBytes(contestant, rpc("GetTask", { id }))),
    "first page": [pageRequest(contestant)],
    "last page": [pageRequest(contestant, lastToken)],
  };
}
