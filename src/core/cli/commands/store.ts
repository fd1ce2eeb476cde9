import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { DEFAULT_TIMES } from "../../engine/options.ts";
import { formatDuration } from "../../model/duration.ts";
import { fieldsOf } from "../../model/json.ts";
import { SILENT_LOG } from "../../model/ports.ts";
import { systemClock } from "../../server/clock-and-ids.ts";
import type { DragomanConfig } from "../../server/config/index.ts";
import type { TaskStore } from "../../store/contract.ts";
import { openStore } from "../../store/open.ts";
import type { RetentionTimes, SpaceForecast } from "../../store/sqlite/space.ts";
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

const SQLITE = "sqlite:";
const DEFAULT_STORE = `${SQLITE}.dragoman/data.db`;
/** Tasks per transaction: enough to be fast, few enough that a killed process has little to roll back. */
const PRUNE_BATCH = 500;

export async function storeStats(output: Output, flags: StoreFlags): Promise<void> {
  await withStore(flags, "inspect", async (store, config, file) => {
    const stats = await store.stats();
    const times = config?.times ?? DEFAULT_TIMES;
    const space = file === undefined ? undefined : await forecast(file, times);
    const fields = [
      ["Store", store.description],
      ["Schema Version", stats.schemaVersion],
      ["Tasks", stats.tasks],
      ...Object.entries(stats.byState).map(([state, count]) => [`Tasks ${state}`, count] as const),
      ["Events", stats.events],
      ["Bytes", stats.bytes],
      ["Free Bytes", stats.freeBytes],
      ...(space === undefined ? [] : spaceFields(space, times)),
    ] as const;
    const text = () => fields.map(([label, value]) => field(label, value)).join("");
    const inFile = space && { shrinks: space.shrinks, retention: retentionJson(space, times) };
    printResult(output, flags.output, { store: store.description, ...stats, ...inFile }, text);
  });
}

async function forecast(file: string, times: RetentionTimes): Promise<SpaceForecast> {
  const { forecastSpace } = await import("../../store/sqlite/space.ts");
  return forecastSpace(file, systemClock, times);
}

function spaceFields(space: SpaceForecast, times: RetentionTimes) {
  const shrinks = space.shrinks ? "yes" : "no; run: dragoman store vacuum";
  return [["Shrinks", shrinks] as const, ...retentionFields(space, times)];
}

type Due = SpaceForecast["compact"];

function retentionFields({ compact, prune }: SpaceForecast, times: RetentionTimes) {
  const fieldsOf = (verb: string, ageMs: number, { tasks, bytes, nextAt }: Due) => [
    [`${verb} After`, formatDuration(ageMs)] as const,
    [`Tasks to ${verb}`, tasks] as const,
    [`Bytes to ${verb}`, bytes] as const,
    ...(nextAt === undefined ? [] : [[`Next to ${verb}`, new Date(nextAt).toISOString()] as const]),
  ];
  const { compactAfterMs, pruneAfterMs } = times;
  const pruned =
    prune === undefined || pruneAfterMs === undefined
      ? [["Prune After", "never"] as const]
      : fieldsOf("Prune", pruneAfterMs, prune);
  return [...fieldsOf("Compact", compactAfterMs, compact), ...pruned];
}

function retentionJson({ compact, prune }: SpaceForecast, { compactAfterMs, pruneAfterMs }: RetentionTimes) {
  const toJson = ({ nextAt, ...due }: Due) => ({ ...due, next: nextAt === undefined ? null : new Date(nextAt) });
  return {
    compactAfterMs,
    compact: toJson(compact),
    pruneAfterMs: pruneAfterMs ?? null,
    prune: prune === undefined ? null : toJson(prune),
  };
}

/** Rewrites the file; not while a server uses it. */
export async function storeVacuum(output: Output, flags: StoreFlags): Promise<void> {
  let found = { store: "", file: "" };
  // Opened and closed first, to find out whether it is a store of this version.
  await withStore(flags, "inspect", async ({ description }, _config, file) => {
    if (file === undefined) {
      throw usageError("PostgreSQL gives space back by itself.", "Its autovacuum does; see VACUUM FULL for more.");
    }
    found = { store: description, file };
  });
  const { vacuumFile } = await import("../../store/sqlite/space.ts");
  const { bytesBefore, bytes } = await vacuumFile(found.file);
  const text = () => field("Store", found.store) + field("Bytes Before", bytesBefore) + field("Bytes", bytes);
  printResult(output, flags.output, { store: found.store, bytesBefore, bytes }, text);
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
    while (await store.shrink?.());
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
  /** `file`: of a store that has one. */
  use: (store: TaskStore, config: DragomanConfig | undefined, file: string | undefined) => Promise<void>,
): Promise<void> {
  const config = await loadConfigOf(flags);
  const spec = flags.store ?? config?.store ?? DEFAULT_STORE;
  if (spec.startsWith("memory:")) {
    throw usageError("A store in memory exists only while its server runs.", "Name another with --store or --config.");
  }
  const cluster = fieldsOf(config?.sections.cluster);
  const options = { baseDirectory: process.cwd(), clock: systemClock, log: SILENT_LOG, mode, cluster };
  const store = await openStore(spec, options);
  try {
    await use(store, config, spec.startsWith(SQLITE) ? resolve(spec.slice(SQLITE.length)) : undefined);
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
