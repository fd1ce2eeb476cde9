import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hasPostgres, type PostgresServer, startPostgres } from "../../src/store/postgres/testing/start-postgres.ts";
import { CLI, cleanEnvironment, requireBuild, runCli } from "../built/cli.ts";
import { createFolder } from "../support/lifecycle.ts";

const folder = createFolder();
const config = join(folder, "dragoman.yaml");
writeFileSync(config, "agents: { echo: { use: echo } }\nserver: { grpc: false }\n");

interface Workers {
  readonly url: string;
  readonly banner: string;
  stop(): Promise<number | null>;
}

async function serveWorkers(store: string, count: string): Promise<Workers> {
  requireBuild();
  const words = ["serve", config, "--port", "0", "--store", store, "--workers", count, "--log-level", "silent"];
  const child = spawn(process.execPath, [CLI, ...words], { cwd: folder, env: cleanEnvironment(), stdio: "pipe" });
  let banner = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    banner += text;
  });
  let complaint = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    complaint += text;
  });
  const ended = once(child, "exit");
  await Promise.race([
    expect.poll(() => banner).toMatch(/Workers: \d+/),
    ended.then(() => Promise.reject(new Error(complaint))),
  ]);
  return {
    url: /listens on (\S+)/.exec(banner)?.[1] ?? "",
    banner,
    stop: async () => {
      child.kill("SIGTERM");
      const [code] = (await ended) as [number | null];
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

  it("refuses a count that is none", async () => {
    const { code, stderr } = await runCli(["serve", config, "--workers", "many"], { folder });
    expect(code).toBe(2);
    expect(stderr).toContain("--workers must be a whole number");
  });
});
