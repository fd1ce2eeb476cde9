import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import { startThread } from "../../agents/threads.ts";
import { type Clock, SILENT_LOG } from "../../model/ports.ts";
import type { TaskStore } from "../contract.ts";
import { describeStore } from "../contract-suite.ts";
import { openSqliteStore } from "./sqlite-store.ts";
import type { ThreadOptions } from "./thread/large-writes.ts";

const systemClock: Clock = { now: () => Date.now(), after: () => () => {} };
const folders: string[] = [];
const files = new Map<TaskStore, string>();

afterAll(async () => {
  await Promise.all(folders.map((folder) => rm(folder, { recursive: true })));
});

async function open(clock = systemClock, file?: string, thread?: ThreadOptions): Promise<TaskStore> {
  let path = file;
  if (path === undefined) {
    const folder = await mkdtemp(join(tmpdir(), "store-"));
    folders.push(folder);
    path = join(folder, "sub", "data.db");
  }
  const store = await openSqliteStore(path, { mode: "serve", clock, log: SILENT_LOG, thread });
  files.set(store, path);
  return store;
}

describeStore("sqlite store", {
  open,
  reopen: async (store) => {
    await store.close();
    return open(systemClock, files.get(store));
  },
});

const everything: ThreadOptions = { start: startThread, above: 1 };

describeStore("sqlite store that writes every entry of a log on its thread", {
  open: (clock) => open(clock, undefined, everything),
  reopen: async (store) => {
    await store.close();
    return open(systemClock, files.get(store), everything);
  },
});
