import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { createEchoAgent } from "../../src/core/agents/builtin.ts";
import { finished, startCli } from "../../src/core/cli/testing/run-cli.ts";
import { SILENT_LOG } from "../../src/core/model/ports.ts";
import { openDriver, type SqliteDriver } from "../../src/core/store/sqlite/driver.ts";
import { migrate } from "../../src/core/store/sqlite/schema.ts";
import { createSqliteStore } from "../../src/core/store/sqlite/sqlite-store.ts";
import { CLI, cleanEnvironment } from "../built/cli.ts";
import { createFolder, freePort, startServer } from "../support/lifecycle.ts";
import { callRpc, sendRaw } from "../support/raw-http.ts";
import { openSocket } from "../support/raw-socket.ts";
import { userMessage } from "../support/wire-client.ts";

const agents = { echo: createEchoAgent() };

const ask = async (url: string, path: string): Promise<{ status: string; reason?: string }> =>
  (await sendRaw(url, { path })).json;
const call = async (url: string, method: string, params: object) => (await callRpc(url, method, params)).json;
const say = (text: string) => ({ message: userMessage(text) });

describe("a server that starts", () => {
  test("is ready no sooner than all its ports are open", async () => {
    const first = await startServer({ agents });
    const { port } = first;
    const grpcPort = Number(first.grpc?.split(":").at(-1));
    await first.close();
    const config = join(createFolder(), "dragoman.yaml");
    writeFileSync(config, `server: { port: ${port}, grpcPort: ${grpcPort} }\nagents: { echo: { use: echo } }\n`);
    // A process of its own takes its time between the two.
    const child = startCli(["serve", config, "--log-level", "silent"]);
    const end = finished(child);
    try {
      for (;;) {
        const answer = await ask(`http://127.0.0.1:${port}`, "/readyz").catch(() => undefined);
        if (answer?.status === "ready") break;
        if (answer !== undefined) expect(answer).toEqual({ status: "not ready", reason: "the server is starting" });
        if (child.exitCode !== null) throw new Error("The server has ended.");
      }
      await once(openSocket(grpcPort), "connect");
    } finally {
      child.kill();
      await end;
    }
  });
});

describe("a full disk", () => {
  /** The time is the store's alone: it decides when to try again. */
  let now = Date.now();
  let driver: SqliteDriver;

  async function start(): Promise<string> {
    const file = join(createFolder(), "data.db");
    driver = await openDriver(file);
    driver.exec("PRAGMA journal_mode = WAL");
    migrate(driver, 0);
    const store = createSqliteStore(
      driver,
      file,
      { clock: { now: () => now, after: () => () => {} }, log: SILENT_LOG },
      () => {},
    );
    return (await startServer({ agents, store })).url;
  }

  /** SQLite then fails as it does where the disk has no room for another page. */
  const limitPages = (more: number) => {
    const { pages = 0 } =
      driver.prepare<{ pages: number }>("SELECT page_count AS pages FROM pragma_page_count").get() ?? {};
    driver.exec(`PRAGMA max_page_count = ${pages + more}`);
  };

  test("makes the server not ready, until there is room again", async () => {
    const url = await start();
    limitPages(2);
    const full = { status: "not ready", reason: "the disk is full" };
    expect(await sendRaw(url, { path: "/readyz" })).toMatchObject({ status: 503 });
    expect(await ask(url, "/readyz")).toEqual(full);
    expect(await sendRaw(url, { path: "/healthz" })).toMatchObject({ status: 200 });
    limitPages(10_000);
    // Not tried again at every question.
    expect(await ask(url, "/readyz")).toEqual(full);
    now += 1_000;
    expect(await ask(url, "/readyz")).toEqual({ status: "ready" });
  });

  test("is named to callers, and nothing that was acknowledged is lost", async () => {
    const url = await start();
    const { result } = await call(url, "SendMessage", say("kept"));
    limitPages(2);
    const { error } = await call(url, "SendMessage", say("x".repeat(100_000)));
    expect(error.message).toBe("Nothing can be stored: the disk is full.");
    expect(await ask(url, "/readyz")).toEqual({ status: "not ready", reason: "the disk is full" });
    expect((await call(url, "GetTask", { id: result.task.id })).result.id).toBe(result.task.id);
    limitPages(10_000);
    expect((await call(url, "SendMessage", say("again"))).result.task.status.state).toBe("TASK_STATE_COMPLETED");
    // A write that succeeds is as good as a trial.
    expect(await ask(url, "/readyz")).toEqual({ status: "ready" });
    const { tasks } = (await call(url, "ListTasks", {})).result;
    expect(tasks).toHaveLength(2);
  });
});

/** Every write to it fails as on a full disk. */
const FULL_DISK = "/dev/full";

describe("a full disk", () => {
  test.each(["json", "pretty"])("that takes no output does not stop the server (%s)", async (form) => {
    const folder = createFolder();
    const port = await freePort();
    const log = `{ level: debug, pretty: ${form === "pretty"} }`;
    writeFileSync(
      join(folder, "dragoman.yaml"),
      `server: { port: ${port} }\nstore: "memory:"\nlog: ${log}\nagents: { echo: { use: echo } }\n`,
    );
    const full = openSync(FULL_DISK, "w");
    const child = spawn(process.execPath, [CLI, "serve", "--grpc-port", "off"], {
      cwd: folder,
      env: cleanEnvironment(),
      stdio: ["ignore", full, full],
    });
    closeSync(full);
    const ended = once(child, "exit");
    try {
      const url = `http://127.0.0.1:${port}`;
      await expect.poll(() => ask(url, "/readyz").catch(() => undefined), { timeout: 20_000 }).toBeDefined();
      for (const text of ["one", "two", "three"]) {
        expect(await call(`${url}/agents/echo`, "SendMessage", say(text))).toHaveProperty("result.task");
      }
      expect(await ask(url, "/readyz")).toEqual({ status: "ready" });
    } finally {
      child.kill("SIGTERM");
    }
    expect(await ended).toEqual([0, null]);
  });

  test("where a required audit log is makes the server not ready", async () => {
    const { url } = await startServer({ agents, audit: { file: FULL_DISK, required: true } });
    expect(await ask(url, "/readyz")).toEqual({ status: "ready" });
    await call(`${url}/agents/echo`, "SendMessage", say("not recorded"));
    const reason = "the audit log cannot be written";
    await expect.poll(() => ask(url, "/readyz")).toEqual({ status: "not ready", reason });
    const refused = await call(`${url}/agents/echo`, "SendMessage", say("refused"));
    expect(refused).toMatchObject({ error: { message: "The server cannot record what it does." } });
  });
});

test("metrics have the names and units that Prometheus wants", async () => {
  const { url } = await startServer({ agents });
  await call(`${url}/agents/echo`, "SendMessage", say("count this"));
  const lines = (await sendRaw(url, { path: "/metrics" })).body.toString("utf8").trimEnd().split("\n");
  const declared = lines.flatMap((line) => {
    const [, name, type] = /^# TYPE (\S+) (\S+)$/.exec(line) ?? [];
    return name === undefined ? [] : [[name, type] as const];
  });
  expect(declared.length).toBeGreaterThan(20);
  for (const [name, type] of declared) {
    expect(name).toMatch(/^dragoman_[a-z0-9_]+$/);
    expect(name).not.toMatch(/milli|micro|_ms(_|$)|_(kb|mb|kib|mib)(_|$)/);
    expect(name.endsWith("_total")).toBe(type === "counter");
    expect(lines.some((line) => line.startsWith(`# HELP ${name} `))).toBe(true);
  }
  const count = lines.find((line) => line.startsWith("dragoman_commit_duration_seconds_count "));
  expect(Number(count?.split(" ")[1])).toBeGreaterThan(0);
});
