import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { SILENT_LOG } from "../../model/ports.ts";
import { FileBackedMap } from "./file-backed-map.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "kept-"));
});
afterEach(() => rm(folder, { recursive: true }));

describe("a map that is kept", () => {
  it("is found again by the next process, and by nobody else", async () => {
    const file = join(folder, "map.json");
    const map = new FileBackedMap<number>(file, 10, SILENT_LOG);
    await Promise.all([map.set("a", 1), map.set("b", 2), map.update("a", (before = 0) => before + 10)]);
    await map.delete("b");
    expect(await new FileBackedMap(file, 10, SILENT_LOG).entries()).toEqual([["a", 11]]);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(await readdir(folder)).toEqual(["map.json"]);
  });

  it("forgets the oldest; what is set again is new again", async () => {
    const map = new FileBackedMap<number>(undefined, 2, SILENT_LOG);
    await map.set("a", 1);
    await map.set("b", 2);
    await map.set("a", 3);
    await map.set("c", 4);
    expect(await map.entries()).toEqual([
      ["a", 3],
      ["c", 4],
    ]);
  });

  it("writes nothing where nothing changes", async () => {
    const file = join(folder, "map.json");
    const map = new FileBackedMap<number>(file, 2, SILENT_LOG);
    await map.delete("a");
    await map.update("a", () => 1);
    await writeFile(file, "untouched");
    await map.update("a", (before = 0) => before);
    await map.flush();
    expect(await readFile(file, "utf8")).toBe("untouched");
  });

  it("says that its file cannot be read, and tries again", async () => {
    const file = join(folder, "map.json");
    await mkdir(file);
    const map = new FileBackedMap<number>(file, 2, SILENT_LOG);
    await expect(map.get("a")).rejects.toThrow(/EISDIR/);
    await rm(file, { recursive: true });
    await writeFile(file, '[["a",1]]');
    expect(await map.get("a")).toBe(1);
  });

  it.each(["", "[[", "5", '{"a":1}'])("puts a damaged file aside and begins anew: %j", async (damaged) => {
    const file = join(folder, "map.json");
    await writeFile(file, damaged);
    const told: unknown[] = [];
    const map = new FileBackedMap<number>(file, 2, { ...SILENT_LOG, error: (fields) => void told.push(fields) });
    expect(await map.get("a")).toBeUndefined();
    await map.set("a", 1);
    expect(told).toEqual([{ file: `${file}.damaged` }]);
    expect(await readFile(`${file}.damaged`, "utf8")).toBe(damaged);
    expect(await readFile(file, "utf8")).toBe('[["a",1]]');
  });

  it("says that it could not be kept, and keeps the next", async () => {
    const map = new FileBackedMap<number>(join(folder, "missing", "map.json"), 2, SILENT_LOG);
    await expect(map.set("a", 1)).rejects.toThrow(/ENOENT/);
    await expect(map.set("b", 2)).rejects.toThrow(/ENOENT/);
    expect(await map.get("b")).toBe(2);
  });
});
