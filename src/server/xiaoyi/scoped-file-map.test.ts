import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Log, SILENT_LOG } from "../../model/ports.ts";
import { ScopedFileMap } from "./file-backed-map.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "notes-"));
});
afterEach(() => rm(folder, { recursive: true }));

describe("notes", () => {
  it("are there for the next process, each for whom it was made", async () => {
    const file = join(folder, "notes.json");
    const first = new ScopedFileMap(file, SILENT_LOG);
    await first.scope("one").set("s1", "c1");
    await first.scope("one").set("s1", "c2");
    await first.scope("two").set("s1", "c3");
    await first.scope("two").set("s".repeat(513), "c4");
    await first.scope("two").set("s2", "c5");
    await first.scope("two").delete("s2");
    await first.scope("one").delete("unknown");
    const second = new ScopedFileMap(file, SILENT_LOG);
    expect(await second.scope("one").entries()).toEqual([["s1", "c2"]]);
    expect(await second.scope("two").entries()).toEqual([["s1", "c3"]]);
    expect(await second.scope("three").entries()).toEqual([]);
  });

  it("that cannot be read or kept are said to be so, and nothing else comes of it", async () => {
    const file = join(folder, "notes.json");
    await mkdir(file);
    const warned: string[] = [];
    const log: Log = { ...SILENT_LOG, warn: (_, message) => void warned.push(message) };
    const notes = new ScopedFileMap(file, log).scope("one");
    expect(await notes.entries()).toEqual([]);
    await notes.set("s1", "c1");
    expect(warned).toHaveLength(2);
  });
});
