import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { changeStore } from "../../../../test/support/corrupt-store.ts";
import { SILENT_LOG } from "../../model/ports.ts";
import { systemClock } from "../../server/clock-and-ids.ts";
import { openStore } from "../../store/open.ts";
import { openDriver } from "../../store/sqlite/driver.ts";
import { migrate } from "../../store/sqlite/schema.ts";
import { accept, finished, uniqueId } from "../../store/suite/fixtures.ts";
import { runInProcess } from "../testing/run-in-process.ts";
import { checkStore } from "./store.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "doctor-store-"));
});
afterAll(() => rmSync(folder, { recursive: true }));
const newFile = () => join(folder, `${uniqueId("data")}.db`);

const open = (file: string) => openStore(`sqlite:${file}`, { baseDirectory: ".", clock: systemClock, log: SILENT_LOG });

async function filled(...ids: readonly string[]): Promise<string> {
  const file = newFile();
  const store = await open(file);
  await accept(store, ...ids.map((id) => finished(id)));
  await store.close();
  return file;
}

describe("doctor on a store", () => {
  it("in memory, or not yet made, finds nothing wrong", async () => {
    expect(await checkStore("memory:")).toMatchObject([{ status: "ok" }]);
    const file = join(folder, "not", "yet", "data.db");
    expect(await checkStore(`sqlite:${file}`, { deep: true })).toEqual([
      { name: "store", status: "ok", detail: `${file} will be created` },
    ]);
  });

  it("that is in order says so, and how much is in it", async () => {
    const file = await filled("a", "b");
    expect(await checkStore(`sqlite:${file}`)).toEqual([
      { name: "store", status: "ok", detail: `${file} can be opened` },
    ]);
    expect((await checkStore(`sqlite:${file}`, { deep: true }))[1]).toEqual({
      name: "store content",
      status: "ok",
      detail: "2 tasks can be read; nothing is damaged",
    });
  });

  it("notices a file that is not a database", async () => {
    const file = newFile();
    writeFileSync(file, "these are not the tables you are looking for".repeat(100));
    expect(await checkStore(`sqlite:${file}`, { deep: true })).toEqual([
      { name: "store", status: "failed", detail: `${file} is not a database.` },
    ]);
  });

  it("notices a database of another program, and one of a later version", async () => {
    const other = newFile();
    await changeStore(other, "CREATE TABLE theirs (a)");
    expect(await checkStore(`sqlite:${other}`)).toMatchObject([
      { status: "failed", detail: expect.stringContaining("of another program") },
    ]);
    const later = await filled("a");
    await changeStore(later, "PRAGMA user_version = 99");
    expect(await checkStore(`sqlite:${later}`)).toMatchObject([
      { status: "failed", detail: expect.stringContaining("newer version") },
    ]);
  });

  it("knows one of an earlier version, and leaves it as it is", async () => {
    const file = newFile();
    const driver = await openDriver(file);
    migrate(driver, 0, 1);
    driver.close();
    for (let time = 0; time < 2; time++) {
      expect(await checkStore(`sqlite:${file}`, { deep: true })).toMatchObject([
        { status: "ok", detail: expect.stringContaining("will be brought up to the current schema") },
      ]);
    }
  });

  it("looks into one that is in use", async () => {
    const file = await filled("a");
    const store = await open(file);
    expect(await checkStore(`sqlite:${file}`, { deep: true })).toMatchObject([
      { name: "store", status: "warning", detail: `${file} is in use by another dragoman` },
      { name: "store content", status: "ok" },
    ]);
    await store.close();
  });

  it("names a disk that cannot be written, as serving does", async () => {
    // Not even root may write there: forbidden, or mounted read-only.
    const file = "/sys/data.db";
    const config = join(folder, "locked.yaml");
    writeFileSync(config, `store: sqlite:${file}\nserver: { port: 0 }\nagents: { echo: { use: echo } }`);
    const served = await runInProcess("serve", config, "--log-level", "silent");
    expect(served.code).toBe(1);
    expect(served.stderr).toMatch(/cannot be opened: .*(not allowed to write to \/sys|mounted read-only)/);
    expect(served.stderr).toContain("DRAGOMAN_ERR_STORE_READ_ONLY");
  });

  it("names the tasks that are damaged, at the terminal with exit code 1", async () => {
    const file = await filled("one", "two", "three");
    await changeStore(file, "UPDATE segment SET body = CAST(x'ff' AS TEXT) WHERE key >> 31 = 2");
    const config = join(folder, "dragoman.yaml");
    writeFileSync(config, `server: { port: 0 }\nstore: sqlite:${file}\nagents:\n  echo: { use: echo }\n`);
    expect((await runInProcess("doctor", config)).code).toBe(0);
    const deep = await runInProcess("doctor", config, "--deep");
    expect([deep.code, deep.stderr]).toEqual([1, ""]);
    expect(deep.stdout).toMatch(/^failed +store content +task two: A text is not UTF-8\.$/m);
    expect(deep.stdout).not.toMatch(/task one|task three/);
  });
});
