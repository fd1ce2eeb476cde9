import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createEchoAgent } from "../../src/agents/builtin.ts";
import { finished, startCli } from "../../src/cli/testing/run-cli.ts";
import { SILENT_LOG } from "../../src/model/ports.ts";
import { type DragomanServer, serve } from "../../src/server/serve.ts";
import { openDriver, type SqliteDriver } from "../../src/store/sqlite/driver.ts";
import { migrate } from "../../src/store/sqlite/schema.ts";
import { createSqliteStore } from "../../src/store/sqlite/sqlite-store.ts";
import { sendRaw } from "../support/raw-http.ts";

let folder: string;
let server: DragomanServer | undefined;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "readiness-"));
});
afterEach(async () => {
  await server?.close();
  server = undefined;
  rmSync(folder, { recursive: true });
});

const agents = { echo: createEchoAgent() };

async function ask(url: string, path: string) {
  const { body } = await sendRaw(url, { path });
  return JSON.parse(body.toString()) as { status: string; reason?: string };
}

/** As bytes: 1.0 over JSON-RPC. */
async function call(url: string, method: string, params: object) {
  const headers = { "content-type": "application/json", "a2a-version": "1.0" };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  return JSON.parse((await sendRaw(url, { method: "POST", path: "/", headers, body })).body.toString());
}

let sent = 0;
const say = (text: string) => ({ message: { messageId: `m${sent++}`, role: "ROLE_USER", parts: [{ text }] } });

function canConnect(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: "127.0.0.1", port });
    socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
    socket.once("connect", () => socket.destroy());
  });
}

describe("a server that starts", () => {
  test("is ready no sooner than all its ports are open", async () => {
    const first = await serve({ port: 0, agents });
    const { port } = first;
    const grpcPort = Number(first.grpc?.split(":").at(-1));
    await first.close();
    const config = join(folder, "dragoman.yaml");
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
      expect(await canConnect(grpcPort)).toBe(true);
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
    const file = join(folder, "data.db");
    driver = await openDriver(file);
    driver.exec("PRAGMA journal_mode = WAL");
    migrate(driver, 0);
    const store = createSqliteStore(
      driver,
      file,
      { clock: { now: () => now, after: () => () => {} }, log: SILENT_LOG },
      () => {},
    );
    server = await serve({ port: 0, agents, store });
    return server.url;
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
