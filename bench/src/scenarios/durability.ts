import { spawn } from "node:child_process";
import { once } from "node:events";
import { type Acts, runLoad, sends, streams } from "../client/load.ts";
import type { Contestant } from "../contestants/launch.ts";
import { compare, type Entry, type Scenario } from "../scenario.ts";

const chunks = 50;

const entries: Entry[] = [
  { label: "dragoman SQLite, a send", contestant: "dragoman", agent: "echo", store: "sqlite" },
  { label: "a2a-js SQLite, a send", contestant: "a2a-js", agent: "echo", store: "sqlite" },
  { label: "dragoman SQLite, a chunk", contestant: "dragoman", agent: "stream", store: "sqlite" },
  { label: "a2a-js SQLite, a chunk", contestant: "a2a-js", agent: "stream", store: "sqlite" },
];

export const durability: Scenario = {
  name: "durability",
  title: "what the durable contestants sync: sends one at a time, and chunks of a stream that come every 20 ms",
  setup:
    "strace counts the calls of fsync and fdatasync by all threads of the server, outside of all measured rounds. With one " +
    "request at a time no two can share a sync, so an answer that was on disk before it was sent took at least one.",
  targets: entries.map(({ label }) => ({ measure: "syncsEach", of: label, alone: true, atLeast: 1 })),
  run: (context, record) =>
    compare({ ...context, rounds: 1 }, record, entries, (contestant, { agent }) => {
      const count = context.size(200, 40);
      return agent === "echo"
        ? countSyncs(contestant, sends, count, count)
        : countSyncs(contestant, streams(chunks, 20), 1, chunks);
    }),
};

async function countSyncs(contestant: Contestant, acts: Acts, requests: number, units: number) {
  const options = ["-f", "-c", "-e", "trace=fsync,fdatasync", "-p", String(contestant.pid)];
  const tracer = spawn("strace", options, { stdio: ["ignore", "ignore", "pipe"] });
  const exit = once(tracer, "close");
  let printed = "";
  const attached = new Promise<void>((resolve) => {
    tracer.stderr.setEncoding("utf8").on("data", (piece: string) => {
      printed += piece;
      if (isAttached()) resolve();
    });
  });
  const isAttached = () => printed.includes(" attached");
  await Promise.race([attached, exit]);
  if (!isAttached()) throw new Error(`strace cannot count syncs: ${printed.trim()}`);
  try {
    await runLoad(contestant, { connections: 1, count: requests }, acts);
  } finally {
    tracer.kill("SIGINT");
    await exit;
  }
  return { syncsEach: syncsIn(printed) / units };
}

/** Adds up the table that `strace -c` prints: seconds, calls, errors if any, and the name of the call. */
export function syncsIn(table: string): number {
  const rows = table.matchAll(/^ *[\d.]+ +[\d.]+ +\d+ +(\d+)(?: +\d+)? +f(?:data)?sync$/gm);
  return [...rows].reduce((sum, [, calls]) => sum + Number(calls), 0);
}
