import { mkdtemp, rm, stat, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SILENT_LOG } from "../../model/ports.ts";
import type { TaskStore } from "../contract.ts";
import {
  ALICE,
  accept,
  COMPLETED,
  chunkEvent,
  EVERYTHING,
  finished,
  MINUTE,
  StoreClock,
  status,
  statusEvent,
  submit,
  uniqueId,
} from "../suite/fixtures.ts";
import { openDriver } from "./driver.ts";
import { migrate, pragma } from "./schema.ts";
import { forecastSpace, vacuumFile } from "./space.ts";
import { openSqliteStore } from "./sqlite-store.ts";

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "store-space-"));
});
afterAll(async () => {
  await rm(folder, { recursive: true });
});

const newFile = () => join(folder, `${uniqueId("data")}.db`);
const open = (file: string, clock = new StoreClock()) =>
  openSqliteStore(file, { mode: "serve", clock, log: SILENT_LOG });

/** A file as early versions made it. */
async function createEarlyFile(): Promise<string> {
  const file = newFile();
  const driver = await openDriver(file);
  driver.exec("PRAGMA auto_vacuum = NONE; PRAGMA journal_mode = WAL;");
  migrate(driver, 0);
  driver.close();
  return file;
}

async function addLargeTasks(store: TaskStore): Promise<void> {
  const text = "x".repeat(4_000);
  const ids = Array.from({ length: 2_000 }, (_, at) => `task ${at}`);
  await store.write(ids.map((id) => submit(id, [chunkEvent(id, [{ text }]), statusEvent(id, status(COMPLETED))])));
}

async function removeAll(store: TaskStore): Promise<void> {
  while ((await store.prune(0, 100)) > 0);
  while (await store.shrink?.());
}

describe("a file on disk", () => {
  it("shrinks after much has been deleted", async () => {
    const file = newFile();
    const store = await open(file);
    await addLargeTasks(store);
    const full = await store.stats();
    await removeAll(store);
    const { bytes, freeBytes } = await store.stats();
    expect(bytes).toBeLessThan(full.bytes / 2);
    expect(freeBytes).toBeLessThan(bytes);
    await store.close();
    expect((await stat(file)).size).toBe(bytes);
  });

  it("gives its space back in portions", async () => {
    const store = await open(newFile());
    await addLargeTasks(store);
    while ((await store.prune(0, 2_000)) > 0);
    const free = [(await store.stats()).freeBytes];
    while (await store.shrink?.()) free.push((await store.stats()).freeBytes);
    const portions = free.slice(1).map((bytes, at) => (free[at] ?? 0) - bytes);
    expect(portions.length).toBeGreaterThan(5);
    expect(Math.max(...portions)).toBeLessThanOrEqual(1024 * 1024);
    await store.close();
  });

  it("of an early version keeps its size until it is rewritten, and loses nothing then", async () => {
    const file = await createEarlyFile();
    const first = await open(file);
    await addLargeTasks(first);
    const full = await first.stats();
    await removeAll(first);
    await accept(first, finished("kept", 1));
    expect(await first.stats()).toMatchObject({ bytes: full.bytes });
    await first.close();
    expect(await forecastSpace(file, new StoreClock(), { compactAfterMs: 0 })).toMatchObject({ shrinks: false });

    const { bytesBefore, bytes } = await vacuumFile(file);
    expect(bytesBefore).toBe(full.bytes);
    expect(bytes).toBeLessThan(full.bytes / 10);
    expect((await stat(file)).size).toBe(bytes);
    const again = await open(file);
    expect(await again.snapshot("kept", EVERYTHING)).toMatchObject({ task: { id: "kept" } });
    await addLargeTasks(again);
    await removeAll(again);
    expect((await again.stats()).bytes).toBeLessThan(full.bytes / 2);
    await again.close();
    expect(await forecastSpace(file, new StoreClock(), { compactAfterMs: 0 })).toMatchObject({ shrinks: true });
  });

  it("is not rewritten while it is served, nor made if there is none", async () => {
    const file = await createEarlyFile();
    const store = await open(file);
    await expect(vacuumFile(file)).rejects.toMatchObject({ code: "in-use" });
    const link = `${file}-link`;
    await symlink(file, link);
    await expect(vacuumFile(link)).rejects.toMatchObject({ code: "in-use" });
    await store.close();
    const driver = await openDriver(file);
    expect(pragma(driver, "auto_vacuum")).toBe(0);
    driver.close();
    await expect(vacuumFile(newFile())).rejects.toThrow(/does not exist/);
  });
});

describe("what retention will free", () => {
  it("is counted with its bytes, and told when the next is due", async () => {
    const clock = new StoreClock();
    const file = newFile();
    const store = await open(file, clock);
    const start = clock.now();
    await accept(store, finished("compacted", 1), finished("pruned", 1));
    await store.compact(0, 1);
    clock.advance(MINUTE);
    await accept(store, finished("whole", 1));
    const whole = (await store.storedBytes(ALICE.owner)) - (await bytesOf("compacted")) - (await bytesOf("pruned"));
    clock.advance(MINUTE);
    await accept(store, finished("recent", 1), submit("open", []));

    const times = { compactAfterMs: MINUTE, pruneAfterMs: 2 * MINUTE };
    expect(await forecastSpace(file, clock, times)).toEqual({
      shrinks: true,
      compact: { tasks: 1, bytes: whole, nextAt: start + 3 * MINUTE },
      prune: {
        tasks: 2,
        bytes: (await bytesOf("compacted")) + (await bytesOf("pruned")),
        nextAt: start + 3 * MINUTE,
      },
    });
    const [compacted, pruned] = [await store.compact(MINUTE, 10), await store.prune(2 * MINUTE, 10)];
    // Compaction comes first, and also reaches what is deleted after it.
    expect([compacted, pruned]).toEqual([2, 2]);
    expect(await forecastSpace(file, clock, { compactAfterMs: 10 * MINUTE })).toMatchObject({
      compact: { tasks: 0, bytes: 0, nextAt: start + 12 * MINUTE },
      prune: undefined,
    });
    expect(await forecastSpace(file, clock, { compactAfterMs: MINUTE, pruneAfterMs: MINUTE })).toMatchObject({
      compact: { tasks: 0, bytes: 0, nextAt: undefined },
      prune: { tasks: 1, nextAt: start + 3 * MINUTE },
    });
    await store.close();

    async function bytesOf(id: string): Promise<number> {
      const driver = await openDriver(file);
      const row = driver.prepare<{ bytes: number }>("SELECT bytes FROM task WHERE CAST(id AS TEXT) = ?").get(id);
      driver.close();
      return row?.bytes ?? Number.NaN;
    }
  });
});
