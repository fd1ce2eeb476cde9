/** Nodes in processes of their own, as they are started by hand, on a real PostgreSQL. */
import { type ChildProcess, spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  hasPostgres,
  type PostgresServer,
  startPostgres,
} from "../../src/features/cluster/postgres/testing/start-postgres.ts";
import { CLI, cleanEnvironment, requireBuild } from "../built/cli.ts";
import { HTTP_BINDINGS } from "../support/http-bindings.ts";
import { closeLater, createFolder } from "../support/lifecycle.ts";
import { statesOf, WireClient } from "../support/wire-client.ts";
import { textOf } from "../support/wire-types.ts";

const REPLAY = { "a2a-extensions": "urn:dragoman:ext:replay:v1" };

/** Works until there is a file. */
const PROGRAM = `
import { existsSync } from "node:fs";
console.log("started");
while (!existsSync(process.argv[2])) await new Promise((resolve) => setTimeout(resolve, 20));
console.log("finished");
`;

const until = (condition: () => Promise<boolean> | boolean) => expect.poll(condition, { interval: 50 }).toBe(true);

interface NodeProcess {
  readonly url: string;
  readonly child: ChildProcess;
  readonly exited: Promise<number | null>;
  /** What it has printed. */
  output(): string;
  client(agent: string): WireClient;
  /** The status of a path. */
  status(path: string): Promise<number>;
}

async function startNode(config: string): Promise<NodeProcess> {
  requireBuild();
  const words = [CLI, "serve", config, "--port", "0", "--grpc-port", "off", "--log-level", "warn"];
  const child = spawn(process.execPath, words, { env: cleanEnvironment(), stdio: ["ignore", "pipe", "pipe"] });
  const exited = new Promise<number | null>((resolve) => child.once("close", resolve));
  closeLater(() => {
    child.kill("SIGKILL");
    return exited;
  });
  let output = "";
  const url = await new Promise<string>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (chunk: string) => {
        output += chunk;
        const found = /listens on (http:\S+)/.exec(output);
        if (found?.[1] !== undefined) resolve(found[1]);
      });
    }
    void exited.then((code) => reject(new Error(`It ended with ${code}: ${output}`)));
  });
  return {
    url,
    child,
    exited,
    output: () => output,
    client: (agent) => new WireClient(HTTP_BINDINGS[0], `${url}/agents/${agent}`),
    status: async (path) => (await fetch(url + path)).status,
  };
}

async function createConfig(lease: string) {
  const database: PostgresServer = await startPostgres({ durable: true });
  closeLater(() => database.close());
  const folder = createFolder();
  const go = join(folder, "go");
  writeFileSync(join(folder, "program.mjs"), PROGRAM);
  const config = join(folder, "dragoman.yaml");
  const exec = JSON.stringify([process.execPath, "program.mjs", go]);
  writeFileSync(
    config,
    `store: ${database.url()}\ncluster: { lease: ${lease} }\nagents:\n  again: { exec: ${exec}, onCrash: resume }\n  once: { exec: ${exec} }\n`,
  );
  return { database, config, open: () => writeFileSync(go, "") };
}

/** A task whose program has started. */
async function begin(client: WireClient): Promise<string> {
  const { id } = await client.start("work");
  await until(async () => textOf((await client.get(id)).artifacts?.[0]?.parts ?? []).includes("started"));
  return id;
}

describe.runIf(hasPostgres())("nodes in processes of their own", () => {
  it("end with 0 at SIGTERM, though their tasks would take for ever, and hand them over", async () => {
    const { config, open } = await createConfig("15s");
    const here = await startNode(config);
    const there = await startNode(config);
    const again = await begin(here.client("again"));
    const once = await begin(here.client("once"));
    const stream = await there.client("again").subscribe(again, { "last-event-id": "1", ...REPLAY });
    here.child.kill("SIGTERM");
    const code = await here.exited;
    expect(code, here.output()).toBe(0);
    const failed = await there.client("once").get(once);
    expect(failed.status.state).toBe("TASK_STATE_FAILED");
    open();
    const events = await stream.rest();
    expect(events.map(({ number }) => number)).toEqual(events.map((_, at) => 2 + at));
    expect(statesOf(events).filter((state) => state === "COMPLETED")).toHaveLength(1);
    expect((await there.client("again").get(again)).artifacts).toHaveLength(1);
  });

  it("lose their tasks while they are stopped, and notice it when they wake up", async () => {
    const { config, open } = await createConfig("2s");
    const here = await startNode(config);
    const there = await startNode(config);
    const id = await begin(here.client("again"));
    const stream = await there.client("again").subscribe(id, { "last-event-id": "1", ...REPLAY });
    here.child.kill("SIGSTOP");
    let resumed = false;
    const events: Awaited<ReturnType<typeof stream.rest>> = [];
    while (!resumed) {
      const next = await stream.next();
      if (next === undefined) break;
      events.push(next);
      resumed = JSON.stringify(next.event).includes('"attempt":2');
    }
    expect(resumed).toBe(true);
    here.child.kill("SIGCONT");
    await until(async () => (await here.status("/readyz")) === 200);
    open();
    events.push(...(await stream.rest()));
    expect(events.map(({ number }) => number)).toEqual(events.map((_, at) => 2 + at));
    expect(statesOf(events).filter((state) => state === "COMPLETED")).toHaveLength(1);
    expect(await here.client("again").get(id)).toEqual(await there.client("again").get(id));
    expect(await begin(here.client("once"))).toBeTruthy();
  });

  it("outlast a database that goes away, with their runs, and end without one", async () => {
    const { config, database, open } = await createConfig("60s");
    const node = await startNode(config);
    const id = await begin(node.client("once"));
    await database.stop("immediate");
    await until(async () => (await node.status("/readyz")) === 503);
    expect(await node.status("/healthz")).toBe(200);
    const { error } = await node.client("once").call("GetTask", { id: "unknown" });
    expect(error?.reason).toBe("UNAVAILABLE");
    open();
    await database.start();
    await until(async () => (await node.status("/readyz")) === 200);
    await until(async () => (await node.client("once").get(id)).status.state === "TASK_STATE_COMPLETED");
    await database.stop("fast");
    node.child.kill("SIGTERM");
    const code = await node.exited;
    expect(code, node.output()).toBe(0);
  });
});
