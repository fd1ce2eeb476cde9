import { existsSync } from "node:fs";
import { SILENT_LOG } from "../../model/ports.ts";
import { systemClock } from "../../server/clock-and-ids.ts";
import type { DragomanConfig } from "../../server/config/index.ts";
import type { TaskStore } from "../../store/contract.ts";
import { openStore } from "../../store/open.ts";
import { CommandError, usageError } from "../errors.ts";
import { readDuration } from "../flag-values.ts";
import { type Output, printResult } from "../output.ts";
import { field } from "../render/text.ts";
import { findConfig } from "./serve.ts";

export interface StoreFlags {
  readonly store?: string;
  readonly config?: string;
  readonly output?: "text" | "json";
}

export interface StorePruneFlags extends StoreFlags {
  readonly olderThan: string;
  readonly yes?: boolean;
}

const DEFAULT_STORE = "sqlite:.dragoman/data.db";
/** Tasks per transaction: enough to be fast, few enough that a killed process has little to roll back. */
const PRUNE_BATCH = 500;

export async function storeStats(output: Output, flags: StoreFlags): Promise<void> {
  await withStore(flags, "inspect", async (store) => {
    const stats = await store.stats();
    const fields = [
      ["Store", store.description],
      ["Schema Version", stats.schemaVersion],
      ["Tasks", stats.tasks],
      ...Object.entries(stats.byState).map(([state, count]) => [`Tasks ${state}`, count] as const),
      ["Events", stats.events],
      ["Bytes", stats.bytes],
      ["Free Bytes", stats.freeBytes],
    ] as const;
    const text = () => fields.map(([label, value]) => field(label, value)).join("");
    printResult(output, flags.output, { store: store.description, ...stats }, text);
  });
}

export async function storeMigrate(output: Output, flags: StoreFlags): Promise<void> {
  // Opening a store in mode `serve` migrates it.
  await withStore(flags, "serve", async (store) => {
    const { schemaVersion } = await store.stats();
    const text = () => field("Store", store.description) + field("Schema Version", schemaVersion);
    printResult(output, flags.output, { store: store.description, schemaVersion }, text);
  });
}

export async function storePrune(output: Output, flags: StorePruneFlags): Promise<void> {
  const age = readDuration("--older-than", flags.olderThan, 0);
  if (flags.yes !== true) await confirmPrune(output, flags.olderThan);
  await withStore(flags, "serve", async (store) => {
    let removed = 0;
    for (let batch = PRUNE_BATCH; batch === PRUNE_BATCH; removed += batch) batch = await store.prune(age, PRUNE_BATCH);
    const text = () => field("Store", store.description) + field("Removed Tasks", removed);
    printResult(output, flags.output, { store: store.description, removed }, text);
  });
}

async function confirmPrune(output: Output, olderThan: string): Promise<void> {
  if (process.stdin.isTTY !== true || !output.stderrIsTerminal) {
    throw usageError("Tasks would be deleted for good.", "Confirm with --yes.");
  }
  const { confirm } = await import("@clack/prompts");
  const answer = await confirm({
    message: `Delete all tasks that ended more than ${olderThan} ago, for good?`,
    initialValue: false,
    output: process.stderr,
  });
  if (answer !== true) throw new CommandError("DRAGOMAN_ERR_DECLINED", "Nothing was deleted.");
}

export async function withStore(
  flags: StoreFlags,
  mode: "serve" | "inspect" | "repair",
  use: (store: TaskStore, config: DragomanConfig | undefined) => Promise<void>,
): Promise<void> {
  const config = await loadConfigOf(flags);
  const spec = flags.store ?? config?.store ?? DEFAULT_STORE;
  if (spec.startsWith("memory:")) {
    throw usageError("A store in memory exists only while its server runs.", "Name another with --store or --config.");
  }
  const store = await openStore(spec, { baseDirectory: process.cwd(), clock: systemClock, log: SILENT_LOG, mode });
  try {
    await use(store, config);
  } finally {
    await store.close();
  }
}

/** The named configuration file, else the one in this folder; none if a store was named instead. */
async function loadConfigOf(flags: StoreFlags): Promise<DragomanConfig | undefined> {
  const file = flags.config ?? findConfig();
  if (flags.config === undefined && (flags.store !== undefined || !existsSync(file))) return undefined;
  const { loadConfig } = await import("../../server/config/index.ts");
  return loadConfig(file);
}
