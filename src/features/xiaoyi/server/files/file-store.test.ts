import { createHash } from "node:crypto";
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { FakeClock } from "../../../../core/engine/testing/fake-clock.ts";
import { SILENT_LOG } from "../../../../core/model/ports.ts";
import { FileStore, type FileStoreOptions } from "./file-store.ts";

let folder: string;
const clock = new FakeClock();
beforeEach(async () => {
  folder = join(await mkdtemp(join(tmpdir(), "files-test-")), "files");
});
afterEach(() => rm(dirname(folder), { recursive: true }));

function open(options: Partial<FileStoreOptions> = {}): FileStore {
  return new FileStore({ folder, quotaBytes: 1_000, keepMs: 60_000, clock, log: SILENT_LOG, ...options });
}

async function byAnEarlierProcess(name: string, text: string): Promise<void> {
  const store = open();
  await store.add(name, bytesOf(text));
  await store.stop();
}

const bytesOf = (text: string): Uint8Array[] => [Buffer.from(text)];
const kept = async (): Promise<string[]> => (await readdir(folder)).filter((name) => name !== "incoming");

describe("files that were sent", () => {
  it("are kept under their content and a safe name, for their owner alone", async () => {
    const { bytes, path } = await open().add("../../etc/pass\0wd", bytesOf("secret"));
    const content = createHash("sha256").update("secret").digest("hex");
    expect(relative(folder, path)).toBe(join(content, "pass_wd"));
    expect(bytes).toBe(6);
    expect(await readFile(path, "utf8")).toBe("secret");
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect((await stat(dirname(path))).mode & 0o777).toBe(0o700);
    expect((await stat(folder)).mode & 0o777).toBe(0o700);
    expect(await readdir(join(folder, "incoming"))).toEqual([]);
  });

  it("are kept once however often they come, also at once", async () => {
    const store = open({ quotaBytes: 12 });
    const stored = await Promise.all(["a", "a", "b"].map((name) => store.add(name, bytesOf("secret"))));
    expect(new Set(stored.map(({ path }) => path)).size).toBe(2);
    expect(await kept()).toHaveLength(1);
    for (const { path } of stored) expect(await readFile(path, "utf8")).toBe("secret");
  });

  it.each(["", "text"])("are kept under few names, also by several processes (content %j)", async (text) => {
    const first = open();
    for (let index = 0; index < 15; index++) {
      await first.add(`${index}`, bytesOf(text));
      await clock.advance(10);
    }
    await first.stop();
    const second = open();
    const { path } = await second.add("0", bytesOf(text));
    await second.add("14", bytesOf(text));
    const names = ["14", "13", "12", "11", "10", "9", "8", "7", "6", "0"];
    expect((await readdir(dirname(path))).sort()).toEqual(names.sort());
    await second.stop();
  });

  it("leave nothing behind where their source breaks", async () => {
    async function* broken() {
      yield Buffer.from("half");
      throw new Error("The line went dead.");
    }
    await expect(open().add("a", broken())).rejects.toThrow("The line went dead.");
    expect(await readdir(join(folder, "incoming"))).toEqual([]);
    expect(await kept()).toEqual([]);
  });

  it("go when there are too many bytes of them, those first that were not sent for the longest", async () => {
    const store = open({ quotaBytes: 10 });
    const first = await store.add("1", bytesOf("1111"));
    await clock.advance(10);
    const second = await store.add("2", bytesOf("2222"));
    await clock.advance(10);
    await store.add("1", bytesOf("1111"));
    await clock.advance(10);
    const third = await store.add("3", bytesOf("3333"));
    await expect(stat(second.path)).rejects.toThrow(/ENOENT/);
    expect(await readFile(first.path, "utf8")).toBe("1111");
    expect(await readFile(third.path, "utf8")).toBe("3333");
    // One that is larger than all room there is stays until another comes.
    const large = await store.add("4", bytesOf("x".repeat(20)));
    expect(await kept()).toHaveLength(1);
    expect((await stat(large.path)).size).toBe(20);
  });

  it("go when their time is over, whether others come or not", async () => {
    const store = open();
    await store.add("a", bytesOf("1"));
    await clock.advance(30_000);
    await store.add("b", bytesOf("2"));
    await clock.advance(30_000);
    await store.stop();
    expect(await kept()).toHaveLength(1);
  });

  it("of an earlier process are known", async () => {
    await byAnEarlierProcess("a", "1111");
    await clock.advance(10);
    await byAnEarlierProcess("b", "2222");
    await writeFile(join(folder, "incoming", "left"), "half a file");
    await mkdir(join(folder, "not ours"));
    await clock.advance(30_000);
    const store = open({ quotaBytes: 10 });
    const { path } = await store.add("c", bytesOf("3333"));
    expect((await kept()).sort()).toEqual(
      ["2222", "3333"]
        .map((text) => createHash("sha256").update(text).digest("hex"))
        .concat("not ours")
        .sort(),
    );
    expect(await readFile(path, "utf8")).toBe("3333");
    expect(await readdir(join(folder, "incoming"))).toEqual([]);
    await store.stop();
    await clock.advance(40_000);
    const late = open();
    await late.start();
    await late.stop();
    expect(await kept()).toHaveLength(2);
  });

  it("may go by the hand of another process while they are looked at", async () => {
    const texts = Array.from({ length: 50 }, (_, index) => `file ${index}`);
    for (const text of texts) await byAnEarlierProcess("a", text);
    const looking = open();
    const removed = Promise.all((await kept()).map((content) => rm(join(folder, content), { recursive: true })));
    await Promise.all([looking.start(), removed]);
    const { path } = await looking.add("b", bytesOf("another"));
    expect(await readFile(path, "utf8")).toBe("another");
    await looking.stop();
    expect(await kept()).toHaveLength(1);
  });

  it("make no folder before one comes", async () => {
    const store = open();
    await store.start();
    await store.stop();
    await expect(stat(folder)).rejects.toThrow(/ENOENT/);
  });

  it("end with the process where they have no place", async () => {
    const store = open({ folder: undefined });
    const { path } = await store.add("a", bytesOf("1"));
    expect((await stat(dirname(dirname(path)))).mode & 0o777).toBe(0o700);
    await store.stop();
    await expect(stat(path)).rejects.toThrow(/ENOENT/);
  });
});
