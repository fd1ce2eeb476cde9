import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { copyFile, mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { runLoad, sends } from "./client/load.ts";
import type { Endpoint } from "./client/requests.ts";
import { commandFile } from "./contestants/served-config.ts";
import { Database } from "./database.ts";
import { withContestant } from "./scenario.ts";

export type StoreKind = "memory" | "sqlite" | "postgres";

/**
 * Scratch files of one run, next to the results and not in the system's temporary folder, which is
 * often in memory, where a durable write costs nothing.
 */
export class Workspace {
  readonly #folder: string;
  readonly #filled = new Map<number, Promise<string>>();
  #stores = 0;
  #database: Database | undefined;

  constructor(folder: string) {
    this.#folder = join(folder, String(process.pid));
  }

  async open(): Promise<void> {
    await mkdir(this.#folder, { recursive: true });
  }

  async close(): Promise<void> {
    await this.#database?.stop();
    await rm(this.#folder, { recursive: true, force: true });
  }

  path(name: string): string {
    return join(this.#folder, name);
  }

  newStore(kind: StoreKind): string {
    if (kind === "memory") return "memory:";
    const number = ++this.#stores;
    return kind === "sqlite" ? `sqlite:${this.path(`store-${number}.db`)}` : this.database.url(`store_${number}`);
  }

  /** Started by the scenarios that use it. */
  get database(): Database {
    if (this.#database === undefined) throw new Error("The scenario has not started the database.");
    return this.#database;
  }

  async startDatabase(): Promise<Database> {
    this.#database ??= await Database.start(this.#folder);
    return this.#database;
  }

  /** A Dragoman store with this many completed tasks; filled once per run as a file, then copied. */
  async filledStore(tasks: number, kind: "sqlite" | "postgres" = "sqlite"): Promise<string> {
    let filled = this.#filled.get(tasks);
    if (!filled) {
      filled = this.#fill(tasks);
      this.#filled.set(tasks, filled);
    }
    const source = await filled;
    const copy = this.newStore(kind);
    if (kind === "postgres") {
      await promisify(execFile)(process.execPath, [
        await commandFile(),
        "store",
        "copy",
        "--from",
        source,
        "--to",
        copy,
      ]);
      return copy;
    }
    await copyFile(fileOf(source), fileOf(copy));
    const log = `${fileOf(source)}-wal`;
    if (existsSync(log)) await copyFile(log, `${fileOf(copy)}-wal`);
    return copy;
  }

  async #fill(tasks: number): Promise<string> {
    const store = this.newStore("sqlite");
    await withContestant("dragoman", { agent: "echo", store }, (contestant) => fillTasks(contestant, tasks));
    return store;
  }
}

export async function fillTasks(endpoint: Endpoint, tasks: number): Promise<void> {
  await runLoad(endpoint, { connections: 64, count: tasks }, sends);
}

/** The database file of a store. */
export function fileOf(store: string): string {
  return store.slice("sqlite:".length);
}
