import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Log, SILENT_LOG } from "../../model/ports.ts";
import { KeptNotes } from "./kept-notes.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "notes-"));
});
afterEach(() => rm(folder, { recursive: true }));

describe("notes", () => {
  it("are there for the next process, each for whom it was made", async () => {
    const file = join(folder, "notes.json");
    const first = new KeptNotes(file, SILENT_LOG);
    await first.of("one").set("s1", "c1");
    await first.of("one").set("s1", "c2");
    await first.of("two").set("s1", "c3");
    await first.of("two").set("s".repeat(513), "c4");
    await first.of("two").set("s2", "c5");
    await first.of("two").delete("s2");
    await first.of("one").delete("unknown");
    const second = new KeptNotes(file, SILENT_LOG);
    expect(await second.of("one").all()).toEqual([["s1", "c2"]]);
    expect(await second.of("two").all()).toEqual([["s1", "c3"]]);
    expect(await second.of("three").all()).toEqual([]);
  });

  it("that cannot be read or kept are said to be so, and nothing else comes of it", async () => {
    const file = join(folder, "notes.json");
    await mkdir(file);
    const warned: string[] = [];
    const log: Log = { ...SILENT_LOG, warn: (_, message) => void warned.push(message) };
    const notes = new KeptNotes(file, log).of("one");
    expect(await notes.all()).toEqual([]);
    await notes.set("s1", "c1");
    expect(warned).toHaveLength(2);
  });
});
