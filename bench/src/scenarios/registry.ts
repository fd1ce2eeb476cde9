import type { Connection } from "../client/connection.ts";
import { runLoad } from "../client/load.ts";
import { type Endpoint, requestBytes } from "../client/requests.ts";
import { BodySink } from "../client/sinks.ts";
import type { Contestant } from "../contestants/launch.ts";
import type { Settings } from "../contestants/protocol.ts";
import type { Sample } from "../measures.ts";
import { type Context, costOf, inTurn, type Scenario, withContestant } from "../scenario.ts";
import { quantile } from "../statistics.ts";
import type { Target } from "../verdict.ts";

const connections = 8;
/** So many that a commit of the store has several registrations in it. */
const fillConnections = 64;
const repetitions = 5;
const amounts = ["few", "many"] as const;

type Amount = (typeof amounts)[number];

const searchOf = (amount: Amount) => `search, ${amount} agents`;
const listOf = (amount: Amount) => `page of a list, ${amount} agents`;

export const registry: Scenario = {
  name: "registry",
  title: "search among 100,000 agents against 10,000; their memory; the start of a server with so many",
  setup:
    "Dragoman beside itself with SQLite: cards of three skills, registered inline, with words as frequent as in language; searches of one to four " +
    "words over HTTP, ten results each. Start-up is the CPU of a new process until its first search is answered.",
  targets: [
    { measure: "cpuMicros", of: searchOf("many"), times: searchOf("few"), atMost: 5 },
    { measure: "p99CpuMicros", of: searchOf("many"), alone: true, atMost: 10_000 },
    { measure: "cpuMicros", of: listOf("many"), times: listOf("few"), atMost: 1.3 },
    { measure: "agentKilobytes", of: "memory, many agents", alone: true, atMost: 6 },
    { measure: "cpuMillis", of: "start-up, many agents", alone: true, atMost: 25_000 },
  ] satisfies Target[],
  async run(context, record) {
    const counts = { few: context.size(10_000, 200), many: context.size(100_000, 1_000) };
    const stores = { few: context.workspace.newStore("sqlite"), many: context.workspace.newStore("sqlite") };
    for (const amount of amounts) {
      await withContestant("dragoman", settingsOf(stores[amount]), async (contestant) => {
        const before = await contestant.memory();
        record.add(`register, ${amount} agents`, await costOf(contestant, () => fill(contestant, counts[amount])));
        await search(contestant, context.size(200, 20));
        const after = await contestant.memory();
        const agentKilobytes =
          (after.heapUsed + after.external - before.heapUsed - before.external) / 1024 / counts[amount];
        record.add(`memory, ${amount} agents`, { agentKilobytes });
      });
    }
    for (const amount of amounts) {
      for (let round = 0; round < Math.min(context.rounds, 3); round++) {
        record.add(`start-up, ${amount} agents`, await startOnce(stores[amount]));
      }
    }
    await withContestant("dragoman", settingsOf(stores.few), (few) =>
      withContestant("dragoman", settingsOf(stores.many), (many) => measure(context, record, { few, many })),
    );
  },
};

type Both = Readonly<Record<Amount, Contestant>>;

function measure(context: Context, record: Parameters<Scenario["run"]>[1], both: Both): Promise<void> {
  const count = context.size(1_000, 40);
  return inTurn(
    context,
    record,
    Object.fromEntries(
      amounts.flatMap((amount) => [
        [searchOf(amount), () => searchCost(both[amount], count)],
        [listOf(amount), () => costOf(both[amount], () => list(both[amount], count))],
      ]),
    ),
  );
}

const settingsOf = (store: string): Settings => ({
  agent: "echo",
  store,
  options: { registry: { agentsPerOwner: 1_000_000, agents: 1_000_000 } },
});

async function startOnce(store: string): Promise<Sample> {
  return withContestant("dragoman", settingsOf(store), async (contestant) => {
    await search(contestant, 1);
    return { cpuMillis: (await contestant.cpu()) / 1_000 };
  });
}

/** CPU per search, and its distribution over different searches, each made several times. */
async function searchCost(contestant: Contestant, count: number): Promise<Sample> {
  const { cpuMicros, perSecond } = await costOf(contestant, () => search(contestant, count));
  const each: number[] = [];
  for (let query = 0; query < count / 5; query++) {
    const before = await contestant.cpu();
    await search(contestant, repetitions, query);
    each.push(((await contestant.cpu()) - before) / repetitions);
  }
  return {
    ...(cpuMicros !== undefined && { cpuMicros }),
    ...(perSecond !== undefined && { perSecond }),
    p50CpuMicros: quantile(each, 0.5),
    p99CpuMicros: quantile(each, 0.99),
  };
}

/** Numbers that look random and are the same in every run. */
function createRandom(seed: number): () => number {
  let state = seed + 1;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}

const vocabulary = 20_000;

/** The nth word occurs about n times less often than the first, as in language. */
const wordOf = (random: () => number) => `w${Math.floor(vocabulary ** random()).toString(36)}`;
const textOf = (random: () => number, words: number) => Array.from({ length: words }, () => wordOf(random)).join(" ");

function cardOf(number: number): object {
  const random = createRandom(number);
  const skill = () => ({
    id: `skill_${Math.floor(random() * 2_000)}`,
    name: textOf(random, 3),
    description: textOf(random, 15),
    tags: [wordOf(random), wordOf(random)],
    examples: [textOf(random, 8), textOf(random, 8)],
  });
  return {
    name: `${textOf(random, 2)} ${number}`,
    description: textOf(random, 20),
    version: "1.0.0",
    supportedInterfaces: [
      { url: `https://agent-${number}.example.com/a2a`, protocolBinding: "JSONRPC", protocolVersion: "1.0" },
    ],
    capabilities: { streaming: true },
    defaultInputModes: ["text/plain"],
    defaultOutputModes: ["text/plain"],
    skills: [skill(), skill(), skill()],
  };
}

function fill(contestant: Contestant, count: number) {
  let next = 0;
  return post(
    contestant,
    count,
    "/registry/agents",
    () => ({ card: cardOf(next++) }),
    '"registration"',
    fillConnections,
  );
}

/** With `fixed`, always the same search. */
function search(contestant: Contestant, count: number, fixed?: number) {
  let next = 0;
  const bodyOf = () => {
    const random = createRandom(7_000_000 + (fixed ?? next++));
    return { query: { text: textOf(random, 1 + Math.floor(random() * 4)) }, federation: "none" };
  };
  return post(contestant, count, "/registry/search", bodyOf, '"results"', fixed === undefined ? connections : 1);
}

function list(contestant: Contestant, count: number) {
  const request = Buffer.from(
    `GET /registry/agents?pageSize=20&binding=JSONRPC HTTP/1.1\r\nHost: 127.0.0.1:${contestant.port}\r\n\r\n`,
  );
  return load(contestant, count, () => request, '"items"');
}

function post(
  { port }: Endpoint,
  count: number,
  path: string,
  bodyOf: () => object,
  mark: string,
  atOnce = connections,
) {
  const endpoint = { port, path };
  return load(endpoint, count, () => requestBytes(endpoint, { body: bodyOf() }), mark, atOnce);
}

function load(endpoint: Endpoint, count: number, next: () => Buffer, mark: string, atOnce = connections) {
  return runLoad(endpoint, { connections: atOnce, count }, () => {
    const sink = new BodySink();
    return async (connection: Connection) => {
      await connection.exchange(next(), sink);
      const body = sink.take();
      if (!body.includes(mark)) throw new Error(`unexpected answer: ${body.toString("utf8", 0, 500)}`);
      return 1;
    };
  });
}
