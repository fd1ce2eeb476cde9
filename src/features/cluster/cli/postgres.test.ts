import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runInProcess } from "../../../core/cli/testing/run-in-process.ts";
import { SILENT_LOG } from "../../../core/model/ports.ts";
import { systemClock } from "../../../core/server/clock-and-ids.ts";
import { openStore } from "../../../core/store/open.ts";
import { accept, finished, registration, uniqueId } from "../../../core/store/suite/fixtures.ts";
import { hasPostgres, type PostgresServer, startPostgres } from "../postgres/testing/start-postgres.ts";

describe.runIf(hasPostgres())("commands with a store on PostgreSQL", () => {
  const folder = mkdtempSync(join(tmpdir(), "cli-postgres-"));
  const config = join(folder, "dragoman.yaml");
  let server: PostgresServer;
  let url: URL;

  beforeAll(async () => {
    server = await startPostgres();
    url = new URL(server.url("of commands"));
  });

  afterAll(async () => {
    rmSync(folder, { recursive: true });
    await server.close();
  });

  function configure(store: string, more = ""): string {
    writeFileSync(config, `store: ${store}\nserver: { port: 0 }\nagents: { echo: { use: echo } }\n${more}`);
    return config;
  }

  /** No command ever shows the password. */
  async function run(...args: readonly string[]) {
    const result = await runInProcess(...args);
    expect(result.stdout + result.stderr).not.toMatch(new RegExp(`sesame|${url.password}`));
    return result;
  }

  it.each([
    ["where no one listens", "postgres://alice:sesame@127.0.0.1:1/tasks", 3, "UNREACHABLE", /Connection refused/],
    ["with a wrong password", "postgres://postgres:sesame@PORT/postgres", 4, "LOGIN", /does not accept/],
    ["without that database", "postgres://postgres:PASSWORD@PORT/nothing", 1, "UNAVAILABLE", /does not exist/],
    ["by a URL that cannot be decoded", "postgres://alice:sesame@db/dg%zz", 1, "UNAVAILABLE", /its database has a %/],
    [
      "with a certificate that is missing",
      "postgres://alice:sesame@127.0.0.1:1/tasks?sslmode=verify-full&sslrootcert=/missing/ca.pem",
      1,
      "UNAVAILABLE",
      /names a file that cannot be read \(sslrootcert=\/missing\/ca\.pem\): ENOENT/,
    ],
  ])("are not served %s", async (_, spec, code, name, reason) => {
    const store = spec.replace("PORT", url.host).replace("PASSWORD", url.password);
    const served = await run("serve", configure(store), "--log-level", "info");
    expect(served.code).toBe(code);
    expect(served.stderr).toContain(`DRAGOMAN_ERR_STORE_${name}`);
    expect(served.stderr).toMatch(reason);
    expect((await run("store", "stats", "--store", store)).code).toBe(code);
    expect((await run("doctor", configure(store))).stdout).toMatch(reason);
  });

  it("are refused what belongs to another cluster", async () => {
    const other = server.url("of another cluster");
    const made = await run("store", "migrate", "--config", configure(other, "cluster: { name: east }"));
    expect(made.code).toBe(0);
    const served = await run("serve", configure(other, "cluster: { name: west }"), "--log-level", "silent");
    expect(served).toMatchObject({ code: 1 });
    expect(served.stderr).toMatch(/belongs to the cluster "east"[\s\S]*Hint: [^\n]*another schema \(\?schema=/);
  });

  it("are warned of a cluster without PostgreSQL", async () => {
    const unused = /warning +cluster +The section cluster has no effect/;
    for (const [store, cluster] of [
      ['"memory:"', "cluster: { name: east }"],
      [`sqlite:${join(folder, "a.db")}`, "cluster: { lease: 6s }"],
    ] as const) {
      expect((await run("doctor", "--no-probe", configure(store, cluster))).stdout).toMatch(unused);
      expect((await run("doctor", "--no-probe", configure(store))).stdout).not.toMatch(unused);
    }
    expect((await run("doctor", "--no-probe", configure(url.href, "cluster: { lease: 6s }"))).stdout).not.toMatch(
      unused,
    );
  });

  it("make the tables, tell what is in them, deliver again and delete", async () => {
    const store = url.href;
    const database = `postgres ${url.host}/postgres (schema of commands)`;
    expect((await run("store", "stats", "--store", store)).stderr).toMatch(/There is no task store/);
    expect((await run("doctor", configure(store))).stdout).toMatch(/tables will be made or migrated/);
    const migrated = await run("store", "migrate", "--store", store, "--output", "json");
    expect(JSON.parse(migrated.stdout)).toMatchObject({ store: database, schemaVersion: 1 });
    expect((await run("doctor", configure(store))).stdout).toContain(`${database} can be opened`);
    const id = uniqueId();
    const serving = await openStore(store, { baseDirectory: folder, clock: systemClock, log: SILENT_LOG });
    await accept(serving, finished(id, 0, { deliveries: [registration("one")] }));
    const stats = await run("store", "stats", "--store", store, "--output", "json");
    expect(JSON.parse(stats.stdout)).toMatchObject({ store: database, tasks: 1, events: 2 });
    const pending = await run("push", "deliveries", "--store", store, "--output", "json");
    expect(JSON.parse(pending.stdout)).toMatchObject({ deliveries: [{ taskId: id }] });
    const due = await run("push", "redeliver", id, "--from", "1", "--store", store, "--output", "json");
    expect(JSON.parse(due.stdout)).toMatchObject({ redelivered: 1 });
    expect((await run("store", "vacuum", "--store", store)).code).toBe(2);
    const pruned = await run("store", "prune", "--store", store, "--older-than", "0s", "--yes", "--output", "json");
    expect(JSON.parse(pruned.stdout)).toMatchObject({ removed: 1 });
    await serving.close();
    const shown = await run("config", "show", configure(store));
    expect(shown.stdout).toContain(url.host);
  });
});
