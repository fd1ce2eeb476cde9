import { resolve } from "node:path";
import type { PostgresStoreOptions } from "../../features/cluster/postgres/postgres-store.ts";
import type { Clock, Log } from "../model/ports.ts";
import type { TaskStore } from "./contract.ts";
import { StoreError } from "./errors.ts";
import { createMemoryStore } from "./memory/memory-store.ts";
import type { ThreadOptions } from "./sqlite/thread/large-writes.ts";

interface OpenStoreOptions {
  /** What a relative file in the specification is relative to. */
  readonly baseDirectory: string;
  readonly clock: Clock;
  readonly log: Log;
  /**
   * Default: `serve`. `inspect` looks at a store that another process may be serving, `repair` also changes
   * in it what may be changed beside that process.
   */
  readonly mode?: "serve" | "inspect" | "repair";
  /** Of SQLite: large writes are then made on a thread. */
  readonly thread?: ThreadOptions;
  /** Of PostgreSQL. */
  readonly cluster?: Pick<PostgresStoreOptions, "leaseMs" | "listenUrl" | "name">;
}

const SQLITE = "sqlite:";

/** Opens the store that a configuration names: `memory:`, `sqlite:<file>` or `postgres://…`. */
export async function openStore(spec: string, options: OpenStoreOptions): Promise<TaskStore> {
  const { baseDirectory, clock, log, mode = "serve", thread, cluster } = options;
  if (spec === "memory:" || spec === "memory") return createMemoryStore({ clock });
  if (spec.startsWith(SQLITE)) {
    const file = spec.slice(SQLITE.length);
    if (file === "") throw new StoreError("unavailable", `The store "${spec}" names no file; write sqlite:<file>.`);
    const { openSqliteStore } = await import("./sqlite/sqlite-store.ts");
    return openSqliteStore(resolve(baseDirectory, file), { mode, clock, log, thread });
  }
  if (/^postgres(ql)?:/.test(spec)) {
    const { openPostgresStore } = await import("../../features/cluster/postgres/postgres-store.ts");
    return openPostgresStore(spec, { mode, clock, log, ...cluster });
  }
  throw new StoreError(
    "unavailable",
    `The store "${spec.replace(/\/\/.*@/, "//…@")}" is of no known kind; use "memory:", "sqlite:<file>" or "postgres://user@host/database".`,
  );
}
