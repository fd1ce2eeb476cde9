import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  hasPostgres,
  type PostgresServer,
  startPostgres,
} from "../../src/features/cluster/postgres/testing/start-postgres.ts";
import { CLI, cleanEnvironment, requireBuild, runCli } from "../built/cli.ts";
import { closeLater, createFolder } from "../support/lifecycle.ts";

const folder = createFolder();
const config = join(folder, "dragoman.yaml");
writeFileSync(config, "agents: { echo: { use: echo } }\nserver: { grpc: false }\n");

/** Works until there is a file. */
const PROGRAM = `
import { existsSync } from "node:fs";
while (!existsSync(process.argv[2])) await new Promise((resolve) => setTimeout(resolve, 20));
console.log("finished");
`;

interface Started {
  readonly child: ChildProcess;
  /** What it and its workers have printed. */
  stdout(): string;
  stderr(): string;
  /** Resolves when it and all workers have ended, which share its output. */
  readonly ended: Promise<readonly [code: number | null, signal: NodeJS.Signals | null]>;
}

function startWorkers(store: string, count: string, logLevel = "silent", file = config): Started {
  requireBuild();
  const words = ["serve", file, "--port", "0", "--store", store, "--workers", count, "--log-level", logLevel];
  const child = spawn(process.execPath, [CLI, ...words], { cwd: folder, env: cleanEnvironment(), stdio: "pipe" });
  let stdout = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const ended = once(child, "close") as Promise<[number | null, NodeJS.Signals | null]>;
  closeLater(() => child.kill("SIGKILL"));
  return { child, stdout: () => stdout, stderr: () => stderr, ended };
}

interface Workers extends Started {
  readonly url: string;
  readonly banner: string;
  stop(): Promise<number | null>;
}

async function serveWorkers(store: string, count: string, file?: string): Promise<Workers> {
  const started = startWorkers(store, count, "silent", file);
  const { child, ended, stdout, stderr } = started;
  await Promise.race([
    expect.poll(stdout).toMatch(/Workers: \d+/),
    ended.then(() => Promise.reject(new Error(stderr()))),
  ]);
  const banner = stdout();
  return {
    ...started,
    url: /listens on (\S+)/.exec(banner)?.[1] ?? "",
    banner,
    stop: async () => {
      child.kill("SIGTERM");
      const [code] = await ended;
      return code;
    },
  };
}

async function send(url: string): Promise<string> {
  const response = await fetch(`${url}/agents/echo/rest/message:send`, {
    method: "POST",
    // A connection of its own each time, which any of the workers may accept.
    headers: { "content-type": "application/json", "a2a-version": "1.0", connection: "close" },
    body: JSON.stringify({ message: { messageId: "m", role: "ROLE_USER", parts: [{ text: "hello" }] } }),
  });
  const { task } = (await response.json()) as { task: { id: string; status: { state: string } } };
  expect(task.status.state).toBe("TASK_STATE_COMPLETED");
  return task.id;
}

describe.runIf(hasPostgres())("serve --workers", () => {
  let database: PostgresServer;
  beforeAll(async () => {
    database = await startPostgres();
  });
  afterAll(() => database.close());

  interface Stats {
    readonly byState: Readonly<Record<string, number>>;
  }

  interface NodeView {
    readonly pid: number;
    readonly alive: boolean;
    readonly agents: readonly string[];
  }

  async function nodesOf(store: string): Promise<readonly NodeView[]> {
    const { code, stdout, stderr } = await runCli([
      "top",
      "--store",
      store,
      "--once",
      "--interval",
      "100ms",
      "-o",
      "json",
    ]);
    expect([code, stderr]).toEqual([0, ""]);
    const { nodes } = JSON.parse(stdout) as { nodes: readonly NodeView[] };
    return nodes.filter(({ alive }) => alive);
  }

  it("shares one port among processes that answer for each other's tasks, and replaces one that is killed", async () => {
    const store = database.url("shared");
    const server = await serveWorkers(store, "3");
    try {
      expect(server.banner).toContain("Workers: 3");
      expect(server.banner).not.toMatch(/:[^@/]+@/);
      const ids = await Promise.all(Array.from({ length: 30 }, () => send(server.url)));
      for (const id of ids) {
        const found = await fetch(`${server.url}/agents/echo/rest/tasks/${id}`, {
          headers: { "a2a-version": "1.0", connection: "close" },
        });
        expect(found.status).toBe(200);
      }
      const metrics = await (await fetch(`${server.url}/metrics`)).text();
      // Each send is two commits or less, and together they are counted by several processes.
      expect(Number(/^dragoman_events_written_total (\d+)$/m.exec(metrics)?.[1])).toBeGreaterThanOrEqual(30);
      const nodes = await nodesOf(store);
      expect(new Set(nodes.map(({ pid }) => pid)).size).toBe(3);
      expect(nodes[0]?.agents).toEqual(["echo"]);
      const [victim] = nodes;
      process.kill(victim?.pid ?? 0, "SIGKILL");
      await expect.poll(async () => (await nodesOf(store)).filter(({ pid }) => pid !== victim?.pid).length).toBe(3);
      await send(server.url);
    } finally {
      expect(await server.stop()).toBe(0);
    }
  });

  it("gives the metrics of all as often as they are asked for", async () => {
    const server = await serveWorkers(database.url("scraped"), "2");
    for (let scrape = 0; scrape < 30; scrape++) {
      expect((await fetch(`${server.url}/metrics`)).status).toBe(200);
    }
    expect(await server.stop()).toBe(0);
    expect(server.stderr()).not.toMatch(/MaxListenersExceededWarning/);
  });

  it.each([
    ["SIGTERM", 143],
    ["SIGINT", 130],
  ] as const)("ends all workers by %s while some of them start", async (signal, killed) => {
    const first = startWorkers(database.url("interrupted"), "3", "info");
    await expect.poll(first.stderr).toMatch(/"Listening\."/);
    first.child.kill(signal);
    expect(await first.ended).toEqual([0, null]);
    expect(first.stderr()).not.toMatch(/EPIPE|Error/);
    const second = startWorkers(database.url("interrupted"), "3", "info");
    await expect.poll(second.stderr).toMatch(/"Listening\."/);
    second.child.kill(signal);
    await expect.poll(second.stderr).toMatch(/again to quit now/);
    second.child.kill(signal);
    // Which of both is first is not known: the end of the workers or the second signal.
    expect([0, killed]).toContain((await second.ended)[0]);
  });

  it("lets running tasks finish when the process that started the workers is killed", async () => {
    const program = join(folder, "wait.mjs");
    const [go, slow] = [join(folder, "go"), join(folder, "slow.yaml")];
    writeFileSync(program, PROGRAM);
    const command = JSON.stringify([process.execPath, program, go]);
    writeFileSync(slow, `agents: { slow: { exec: ${command} } }\nserver: { grpc: false }\n`);
    const store = database.url("orphaned");
    const server = await serveWorkers(store, "2", slow);
    const response = await fetch(`${server.url}/agents/slow/rest/message:send`, {
      method: "POST",
      headers: { "content-type": "application/json", "a2a-version": "1.0" },
      body: JSON.stringify({
        message: { messageId: "m", role: "ROLE_USER", parts: [{ text: "hello" }] },
        configuration: { returnImmediately: true },
      }),
    });
    const { task } = (await response.json()) as { task: { id: string } };
    const stateOf = async (state: string) =>
      (JSON.parse((await runCli(["store", "stats", "--store", store, "-o", "json"])).stdout) as Stats).byState[state];
    await expect.poll(() => stateOf("TASK_STATE_WORKING")).toBe(1);
    server.child.kill("SIGKILL");
    // The port was its own: from now on the workers only finish what they have.
    await expect
      .poll(() =>
        fetch(server.url).then(
          () => "answers",
          () => "is gone",
        ),
      )
      .toBe("is gone");
    writeFileSync(go, "");
    await server.ended;
    expect(task.id).toBeDefined();
    expect(await stateOf("TASK_STATE_COMPLETED")).toBe(1);
  });

  it("reports once why a worker cannot start, and ends with its exit code", async () => {
    const url = new URL(database.url("refused"));
    url.password = "wrong-password";
    const { code, stderr } = await runCli(["serve", config, "--port", "0", "--store", url.href, "--workers", "2"]);
    expect(code).toBe(4);
    expect(stderr.match(/^Error:/gm)).toHaveLength(1);
    expect(stderr).not.toContain("wrong-password");
  });
});

describe("serve --workers without a shared store", () => {
  it.each([
    ["sqlite:data.db", /one process owns a SQLite file/],
    ["memory:", /tasks in memory belong to one process/],
  ])("says why %s cannot be shared", async (store, reason) => {
    const { code, stderr } = await runCli(["serve", config, "--store", store, "--workers", "2"], { folder });
    expect(code).toBe(1);
    expect(stderr).toMatch(reason);
  });

  it("warns of settings of a cluster that have no effect", async () => {
    const file = join(folder, "unused.yaml");
    writeFileSync(file, "agents: { echo: { use: echo } }\nserver: { grpc: false }\ncluster: { name: east }\n");
    const { child, ended, stderr } = startWorkers("memory:", "1", "warn", file);
    await expect.poll(stderr).toContain("The section cluster has no effect");
    child.kill("SIGTERM");
    expect(await ended).toEqual([0, null]);
  });

  it("refuses a count that is none", async () => {
    const { code, stderr } = await runCli(["serve", config, "--workers", "many"], { folder });
    expect(code).toBe(2);
    expect(stderr).toContain("--workers must be a whole number");
  });
});
