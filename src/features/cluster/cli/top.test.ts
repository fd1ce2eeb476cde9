import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { run } from "../../../core/cli/run.ts";
import { captureOutput, runInProcess } from "../../../core/cli/testing/run-in-process.ts";
import { SILENT_LOG } from "../../../core/model/ports.ts";
import { systemClock } from "../../../core/server/clock-and-ids.ts";
import { openStore } from "../../../core/store/open.ts";
import { hasPostgres, type PostgresServer, startPostgres } from "../postgres/testing/start-postgres.ts";

const LEASE_MS = 600_000;
const IDLE = { agents: ["echo"], queued: 0, streams: 0, commitMs: 0, takenOver: 0, fenced: 0, missedWakeups: 0 };
const reportOf = (commits: number) => JSON.stringify({ ...IDLE, commits, events: 3 * commits });

describe.runIf(hasPostgres())("dragoman top", () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server.close());

  const open = (url: string) => openStore(url, { baseDirectory: "", clock: systemClock, log: SILENT_LOG });

  /** One that lives, many that died before it was started, and one that has left. */
  async function fill(url: string) {
    const store = await open(url);
    const dead = Array.from({ length: 40 }, () => randomUUID());
    for (const node of dead) await store.heartbeat(node, 0, reportOf(1));
    const leaving = await open(url);
    const [alive, left] = [randomUUID(), randomUUID()];
    await leaving.heartbeat(left, LEASE_MS, reportOf(1));
    await leaving.close();
    await store.heartbeat(alive, LEASE_MS, reportOf(1));
    return { store, dead, alive, left };
  }

  it("shows living nodes first, then those that died and none that has left, within 80 columns", async () => {
    const url = server.url("seen");
    const { store, alive, dead, left } = await fill(url);
    const captured = captureOutput({ isTTY: true, columns: 80 });
    const ended = run(["top", "--store", url, "--interval", "100ms"], captured.output);
    await expect.poll(() => captured.err).toContain(alive.slice(-8));
    process.emit("SIGINT");
    expect(await ended).toBe(0);
    await store.close();
    const [summary, , , header, ...rows] = captured.out.trimEnd().split("\n");
    expect(summary).toMatch(/^1 of 41 nodes alive;/);
    expect(header).toMatch(/^NODE +HOST +BEAT +TASKS +QUEUED +COMMITS\/S +EVENTS\/S +MS\/COMMIT/);
    expect(rows[0]).toContain(alive.slice(-8));
    expect(
      rows
        .slice(1)
        .map((row) => row.slice(1, 9))
        .sort(),
    ).toEqual(dead.map((id) => id.slice(-8)).sort());
    expect(captured.out).not.toContain(left.slice(-8));
    for (const line of captured.out.split("\n")) expect(line.length).toBeLessThan(80);
  });

  it("shows what nodes report on one line each, without control sequences", async () => {
    const url = server.url("hostile");
    const store = await open(url);
    const evil = "evil\u001b[2J\u009b31m\u202e\n\nfaked";
    await store.heartbeat(evil, LEASE_MS, JSON.stringify({ ...IDLE, agents: [evil], fenced: evil, queued: evil }));
    const captured = captureOutput({ isTTY: true, columns: 200 });
    const ended = run(["top", "--store", url, "--interval", "100ms"], captured.output);
    await expect.poll(() => captured.err).toContain("evil");
    process.emit("SIGINT");
    expect(await ended).toBe(0);
    await store.close();
    expect(captured.out.trimEnd().split("\n")).toHaveLength(5);
    expect(captured.out).toContain("evil\\x1b[2J\\x9b31m\\u202e\\n\\nfaked");
    // biome-ignore lint/suspicious/noControlCharactersInRegex: what the node wrote must not be left
    expect(captured.out + captured.err).not.toMatch(/\u001b\[2J|[\u009b\u202e]|^faked/m);
  });

  it("waits for the next report of every node before it prints rates", async () => {
    const url = server.url("measured");
    const { store, alive, left } = await fill(url);
    let commits = 1;
    const printed = runInProcess("top", "--store", url, "--interval", "100ms", "-o", "json");
    let isPrinted = false;
    void printed.finally(() => {
      isPrinted = true;
    });
    // Less often than it looks.
    while (!isPrinted) {
      await new Promise((resolve) => setTimeout(resolve, 400));
      commits += 400;
      await store.heartbeat(alive, LEASE_MS, reportOf(commits));
    }
    const { nodes } = JSON.parse((await printed).stdout) as { readonly nodes: readonly Record<string, unknown>[] };
    await store.close();
    expect(nodes).toHaveLength(42);
    const [first] = nodes;
    expect(first).toMatchObject({ id: alive, alive: true, tasks: 0, queued: 0, agents: ["echo"] });
    expect(first?.commitsPerSecond).toBeGreaterThan(0);
    expect(first?.eventsPerSecond).toBeCloseTo(3 * Number(first?.commitsPerSecond));
    expect(nodes).toContainEqual(expect.objectContaining({ id: left, alive: false, commitsPerSecond: 0 }));
  });
});
