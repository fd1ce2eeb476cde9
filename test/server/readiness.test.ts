import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { createEchoAgent } from "../../src/agents/builtin.ts";
import { finished, startCli } from "../../src/cli/testing/run-cli.ts";
import { SILENT_LOG } from "../../src/model/ports.ts";
import { openDriver, type SqliteDriver } from "../../src/store/sqlite/driver.ts";
import { migrate } from "../../src/store/sqlite/schema.ts";
import { createSqliteStore } from "../../src/store/sqlite/sqlite-store.ts";
import { createFolder, startServer } from "../support/lifecycle.ts";
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
