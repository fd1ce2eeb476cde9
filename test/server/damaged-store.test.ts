import type { ChildProcessWithoutNullStreams } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Finished, finished, startCli, stopAll } from "../../src/core/cli/testing/run-cli.ts";
import { changeStore, leavesOf, overwritePage } from "../support/corrupt-store.ts";
import { createFolder } from "../support/lifecycle.ts";
import { callRpc } from "../support/raw-http.ts";
import { userMessage } from "../support/wire-client.ts";

let config: string;
let file: string;
beforeEach(() => {
  const folder = createFolder();
  config = join(folder, "dragoman.yaml");
  file = join(folder, "data.db");
  writeFileSync(config, `server: { port: 0 }\nstore: sqlite:data.db\nagents: { echo: { use: echo } }\n`);
});
afterEach(stopAll);

interface Running {
  readonly url: string;
  readonly child: ChildProcessWithoutNullStreams;
  stop(): Promise<Finished>;
}

async function start(): Promise<Running> {
  const child = startCli(["serve", config, "--log-level", "error"]);
  const end = finished(child);
  let shown = "";
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout.on("data", (text: string) => {
      shown += text;
      const [, found] = /listens on (http:\S+)[\s\S]*agent-card\.json\n/.exec(shown) ?? [];
      if (found !== undefined) resolve(found);
    });
    child.once("close", (code) => reject(new Error(`The server ended with ${code}.`)));
  });
  const stop = () => {
    child.kill("SIGTERM");
    return end;
  };
  return { url, child, stop };
}

const call = async (url: string, method: string, params: object) => (await callRpc(url, method, params)).json;

/** Starts a server, lets it do tasks, and ends it. */
async function tasksOf(texts: readonly string[]): Promise<readonly string[]> {
  const server = await start();
  const ids: string[] = [];
  for (const text of texts) {
    ids.push((await call(server.url, "SendMessage", { message: userMessage(text) })).result.task.id);
  }
  await server.stop();
  return ids;
}

async function listed(url: string): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let pageToken = ""; ; ) {
    const { result } = await call(url, "ListTasks", { pageSize: 20, ...(pageToken === "" ? {} : { pageToken }) });
    ids.push(...result.tasks.map((task: { id: string }) => task.id));
    pageToken = result.nextPageToken;
    if (pageToken === "") return ids;
  }
}

describe("a server whose database is damaged", () => {
  test("leaves out the task whose text is not UTF-8, names it in the log, and serves on", async () => {
    const [one, two, three] = await tasksOf(["one", "two", "three"]);
    await changeStore(file, "UPDATE segment SET body = CAST(x'7bff7d' AS TEXT) WHERE key >> 31 = 2");
    const server = await start();
    const { error } = await call(server.url, "GetTask", { id: two });
    expect(error).toMatchObject({ code: -32603 });
    expect(JSON.stringify(error)).not.toMatch(new RegExp(`${two}|data\\.db|UTF-8`));
    expect(await listed(server.url)).toEqual([three, one]);
    expect((await call(server.url, "GetTask", { id: one })).result.id).toBe(one);
    const { code, stderr, stdout } = await server.stop();
    expect(code).toBe(0);
    expect(stderr + stdout).toContain(`Task ${two} in `);
  });

  test("lists what is not on the damaged page, and continues to accept messages", async () => {
    const ids = await tasksOf(Array.from({ length: 80 }, (_, at) => `task ${at}`));
    const leaves = await leavesOf(file, "task");
    overwritePage(file, leaves[0] as number, 0xff);
    const server = await start();
    const shown = await listed(server.url);
    expect(shown.length).toBeLessThan(ids.length);
    expect(shown).toEqual(ids.slice(-shown.length).toReversed());
    expect(shown.length).toBeGreaterThan(ids.length / 2);
    const message = { messageId: "new", role: "ROLE_USER", parts: [{ text: "new" }] };
    expect((await call(server.url, "SendMessage", { message })).result.task.status.state).toBe("TASK_STATE_COMPLETED");
    const gone = ids.slice(0, -shown.length);
    for (const id of gone) expect((await call(server.url, "GetTask", { id })).error.code).toBe(-32603);
    for (const id of shown) expect((await call(server.url, "GetTask", { id })).result.id).toBe(id);
    const { code, stderr, stdout } = await server.stop();
    expect(code).toBe(0);
    for (const id of gone) expect(stderr + stdout).toContain(`task ${id}`);
  });
});
