import { call, calls, runLoad, sends, streams } from "../client/load.ts";
import { requestBytes, rpc } from "../client/requests.ts";
import type { Contestant } from "../contestants/launch.ts";
import type { Measure, Sample } from "../measures.ts";
import { type Context, costOf, inTurn, type Recorder, type Scenario, withContestant } from "../scenario.ts";
import type { Target } from "../verdict.ts";
import { fillTasks, type StoreKind } from "../workspace.ts";
import { costOnDatabase } from "./postgres.ts";

const connections = 8;
const pageSize = 50;
const few = 1_000;
const stores = ["memory", "sqlite"] as const;
const lookups = ["get", "first page", "last page", "page of a rare state"] as const;

type Lookup = (typeof lookups)[number];
type Requests = Record<Lookup, Buffer[]>;

function labelOf(lookup: Lookup, amount: "few" | "many", store: StoreKind): string {
  return `${lookup}, ${amount} tasks, ${store}`;
}

function nextPage(since: "nothing" | "many tasks", store: StoreKind): string {
  return `next page, ${since} since, ${store}`;
}

function targetsOf(store: StoreKind, measure: Measure, atMost = 1.3): Target[] {
  const pairs = [
    ...lookups.map((name) => [labelOf(name, "many", store), labelOf(name, "few", store)] as const),
    [nextPage("many tasks", store), nextPage("nothing", store)] as const,
  ];
  return pairs.map(([of, times]) => ({ measure, of, times, atMost }));
}

const setup = "Dragoman beside itself, in turn on warm servers: the same requests, pages of 50 tasks.";

export const lookup: Scenario = {
  name: "lookup",
  title:
    "get and list with many tasks (1,000,000 in SQLite, 100,000 in memory) against 1,000; the next page after 20,000 tasks ended since the first",
  setup,
  targets: stores.flatMap((store) => targetsOf(store, "cpuMicros")),
  async run(context, record) {
    for (const store of stores) {
      const storeOf = async (tasks: number) => (store === "memory" ? "memory:" : context.workspace.filledStore(tasks));
      await measureStore(context, record, store, storeOf);
    }
  },
};

const amounts = ["few", "many"] as const;
const works = ["send", "stream"] as const;
const working = (work: (typeof works)[number], amount: (typeof amounts)[number]) =>
  `${work}, ${amount} tasks, postgres`;

export const postgresLookup: Scenario = {
  name: "postgres-lookup",
  title:
    "send, stream, get and list with 1,000,000 tasks in PostgreSQL against 1,000; the next page after 20,000 tasks ended",
  setup: `${setup} The tasks are those of an SQLite file, copied by \`dragoman store copy\`. CPU of the database is that of all its processes.`,
  targets: [
    ...targetsOf("postgres", "cpuMicros"),
    ...targetsOf("postgres", "databaseCpuMicros", 1.5),
    ...works.flatMap((work): Target[] => [
      { measure: "cpuMicros", of: working(work, "many"), times: working(work, "few"), atMost: 1.3 },
      { measure: "databaseCpuMicros", of: working(work, "many"), times: working(work, "few"), atMost: 1.5 },
    ]),
  ],
  async run(context, record) {
    await context.workspace.startDatabase();
    const copies = new Map<number, Promise<string>>();
    const storeOf = (tasks: number) => {
      const copy = copies.get(tasks) ?? context.workspace.filledStore(tasks, "postgres");
      copies.set(tasks, copy);
      return copy;
    };
    await measureStore(context, record, "postgres", storeOf);
    await measureStreams(context, record, storeOf);
  },
};

type StoreOf = (tasks: number) => Promise<string>;

/** On the tasks of the other measurements. */
async function measureStreams(context: Context, record: Recorder, storeOf: StoreOf): Promise<void> {
  const count = context.size(400, 10);
  const cost = (contestant: Contestant) =>
    costOnDatabase(context, [contestant], () => runLoad(contestant, { connections, count }, streams(200)));
  const agent = "stream";
  await withContestant("dragoman", { agent, store: await storeOf(few) }, async (small) =>
    withContestant("dragoman", { agent, store: await storeOf(context.size(1_000_000, 2_000)) }, async (large) => {
      await inTurn(context, record, {
        [working("stream", "few")]: () => cost(small),
        [working("stream", "many")]: () => cost(large),
      });
    }),
  );
}

async function measureStore(context: Context, record: Recorder, store: StoreKind, storeOf: StoreOf): Promise<void> {
  const many = context.size(store === "memory" ? 100_000 : 1_000_000, 2_000);
  const cost = (contestant: Contestant, requests: readonly Buffer[], count: number) => {
    const work = () => runLoad(contestant, { connections, count }, calls(requests));
    return store === "postgres" ? costOnDatabase(context, [contestant], work) : costOf(contestant, work);
  };
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
      if (store === "postgres") {
        const count = context.size(10_000, 200);
        const send = (contestant: Contestant) =>
          costOnDatabase(context, [contestant], () => runLoad(contestant, { connections: 64, count }, sends));
        measurements[working("send", "few")] = () => send(small);
        measurements[working("send", "many")] = () => send(large);
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
    "page of a rare state": [requestBytes(contestant, rpc("ListTasks", { pageSize, status: "TASK_STATE_WORKING" }))],
  };
}
