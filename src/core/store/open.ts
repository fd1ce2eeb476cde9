import { resolve } from "node:path";
import type { StoreKind } from "../extension/contract.ts";
import { installedExtensions } from "../extension/installed.ts";
import { describeMissingStore } from "../extension/missing.ts";
import type { Clock, Log } from "../model/ports.ts";
import type { TaskStore } from "./contract.ts";
import { StoreError } from "./errors.ts";
import { createMemoryStore } from "./memory/memory-store.ts";
import type { ThreadOptions } from "./sqlite/thread/large-writes.ts";

/**
 * `inspect` looks at a store that another process may be serving, `repair` also changes in it what may be changed beside
 * that process.
 */
export type StoreMode = "serve" | "inspect" | "repair";

interface OpenStoreOptions {
  /** What a relative file in the specification is relative to. */
  readonly baseDirectory: string;
  readonly clock: Clock;
  readonly log: Log;
  /** Default: `serve`. */
  readonly mode?: StoreMode;
  /** Of SQLite: large writes are then made on a thread. */
  readonly thread?: ThreadOptions;
  /** Of stores that several processes share. */
  readonly cluster?: { readonly name?: string; readonly listenUrl?: string; readonly leaseMs?: number };
}

const SQLITE = "sqlite:";

/** Stores of extensions, by the scheme of their URLs. */
export const storeKinds = (): readonly (readonly [string, StoreKind])[] =>
  installedExtensions().flatMap(({ stores = {} }) => Object.entries(stores));

/** Whether several processes can use the store at the same time. */
export const isSharedStore = (spec: string): boolean =>
  storeKinds().some(([scheme, { isShared }]) => isShared && spec.startsWith(`${scheme}:`));

/** Opens the store that a configuration names: `memory:`, `sqlite:<file>` or a URL. */
export async function openStore(spec: string, options: OpenStoreOptions): Promise<TaskStore> {
  const { baseDirectory, clock, log, mode = "serve", thread, cluster = {} } = options;
  if (spec === "memory:" || spec === "memory") return createMemoryStore({ clock });
  if (spec.startsWith(SQLITE)) {
    const file = spec.slice(SQLITE.length);
    if (file === "") throw new StoreError("unavailable", `The store "${spec}" names no file; write sqlite:<file>.`);
    const { openSqliteStore } = await import("./sqlite/sqlite-store.ts");
    return openSqliteStore(resolve(baseDirectory, file), { mode, clock, log, thread });
  }
  const kind = storeKinds().find(([scheme]) => spec.startsWith(`${scheme}:`))?.[1];
  if (kind !== undefined) return kind.open(spec, { mode, clock, log, cluster });
  const reason = describeMissingStore(spec) ?? `is of no known kind; use ${describeStores()}`;
  throw new StoreError("unavailable", `The store "${spec.replace(/\/\/.*@/, "//…@")}" ${reason}.`);
}

/** The forms of stores, for messages. */
export function describeStores(): string {
  const forms = ["memory:", "sqlite:<file>", ...new Set(storeKinds().map(([, { form }]) => form))].map(
    (form) => `"${form}"`,
  );
  return `${forms.slice(0, -1).join(", ")} or ${forms.at(-1)}`;
}
