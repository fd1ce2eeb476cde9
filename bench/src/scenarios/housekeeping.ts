import { stat } from "node:fs/promises";
import { setTimeout as pause } from "node:timers/promises";
import { Connection } from "../client/connection.ts";
import { call, startTasks } from "../client/load.ts";
import { requestBytes, rpc } from "../client/requests.ts";
import { BodySink } from "../client/sinks.ts";
import type { Contestant } from "../contestants/launch.ts";
import type { Settings } from "../contestants/protocol.ts";
import type { Sample } from "../measures.ts";
import { type Scenario, withContestant } from "../scenario.ts";
import { quantile } from "../statistics.ts";
import { fileOf } from "../workspace.ts";

const readers = 4;
const openTasks = 100;
/** Everything is old; tidying up begins when the first readings have warmed the server. */
const times = { compactAfterMs: 1, pruneAfterMs: 1, housekeepingMs: 4_000 };
const warmUp = 500;
/** A file that has not shrunk this long after its last task was deleted counts as one that does not. */
const shrinkMillis = 5_000;

export const housekeeping: Scenario = {
  name: "housekeeping",
  title: "GetTask while 50,000 old tasks are compacted and pruned, SQLite",
  setup:
    `Dragoman beside itself on copies of one store: ${readers} connections read ${openTasks} tasks that wait for input, with ` +
    "nothing to tidy up, and with everything old until the list of old tasks is empty.",
  targets: [
    { measure: "p99Millis", of: "while tidying up", times: "otherwise", atMost: 3 },
    { measure: "fileShare", of: "while tidying up", alone: true, atMost: 0.5 },
  ],
  async run(context, record) {
    const tasks = context.size(50_000, 2_000);
    const reads = context.size(20_000, 1_000);
    for (let round = 0; round < context.rounds; round++) {
      record.add("otherwise", await measureQuiet(await context.workspace.filledStore(tasks), reads));
      record.add("while tidying up", await measureBusy(await context.workspace.filledStore(tasks)));
    }
  },
};

function measureQuiet(store: string, reads: number): Promise<Sample> {
  return withContestant("dragoman", { agent: "ask", beside: "echo", store }, async (contestant) => {
    const { latencies, stop, until } = await startReading(contestant);
    await until(() => latencies.length >= warmUp + reads);
    await stop();
    return summarize(latencies.slice(warmUp));
  });
}

async function measureBusy(store: string): Promise<Sample> {
  const file = fileOf(store);
  const before = (await stat(file)).size;
  const settings: Settings = { agent: "ask", beside: "echo", store, options: { times } };
  const sample = await withContestant("dragoman", settings, async (contestant) => {
    const { latencies, stop, until } = await startReading(contestant);
    await until(() => latencies.length >= warmUp);
    if ((await oldTasks(contestant)) === 0) throw new Error("tidying up ended before the server was warm");
    // Reading writes nothing: when the log of SQLite changes, tidying up has begun.
    const { mtimeMs } = await stat(`${file}-wal`);
    await until(async () => (await stat(`${file}-wal`)).mtimeMs !== mtimeMs);
    const begun = latencies.length;
    await until(async () => (await oldTasks(contestant)) === 0);
    await stop();
    const deadline = performance.now() + shrinkMillis;
    await until(async () => (await stat(file)).size < before / 2 || performance.now() > deadline);
    return summarize(latencies.slice(begun));
  });
  return { ...sample, fileShare: (await stat(file)).size / before };
}

function summarize(latencies: readonly number[]): Sample {
  return { p50Millis: quantile(latencies, 0.5), p99Millis: quantile(latencies, 0.99) };
}

async function oldTasks(contestant: Contestant): Promise<number> {
  const echo = { ...contestant, path: "/agents/echo" };
  return (await call<{ totalSize: number }>(echo, "ListTasks", { pageSize: 1 })).totalSize;
}

interface Reading {
  /** How long each reading took, in milliseconds. */
  readonly latencies: readonly number[];
  /** Waits for a condition while reading continues. */
  until(isTrue: () => boolean | Promise<boolean>): Promise<void>;
  stop(): Promise<void>;
}

/** Reads tasks that are not tidied up, on several connections. */
async function startReading(contestant: Contestant): Promise<Reading> {
  const tasks = await startTasks(contestant, openTasks);
  const requests = tasks.map(({ id }) => requestBytes(contestant, rpc("GetTask", { id })));
  const latencies: number[] = [];
  let isStopped = false;
  const read = async () => {
    const connection = await Connection.open(contestant.port);
    const sink = new BodySink();
    while (!isStopped) {
      const start = performance.now();
      await connection.exchange(requests[latencies.length % requests.length]!, sink);
      latencies.push(performance.now() - start);
      if (!sink.take().includes("TASK_STATE_INPUT_REQUIRED")) throw new Error("a task is gone");
    }
    connection.close();
  };
  let failure: unknown;
  const reading = Promise.all(Array.from({ length: readers }, read)).catch((error: unknown) => {
    failure = error;
  });
  const until = async (isTrue: () => boolean | Promise<boolean>) => {
    while (!(await isTrue())) {
      if (failure !== undefined) throw failure;
      await pause(10);
    }
  };
  const stop = async () => {
    isStopped = true;
    await reading;
  };
  return { latencies, until, stop };
}
