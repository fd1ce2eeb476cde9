/** The stores that the storage-sensitive tests run on. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TaskStore } from "../../src/core/store/contract.ts";

export interface StoreSpec {
  readonly name: string;
  /** What `serve` is given, and how to be rid of it. */
  create(): { readonly store: string | TaskStore; remove(): void };
}

const memory: StoreSpec = { name: "memory", create: () => ({ store: "memory:", remove: () => {} }) };

const sqlite: StoreSpec = {
  name: "sqlite",
  create() {
    const directory = mkdtempSync(join(tmpdir(), "dragoman-store-"));
    return {
      store: `sqlite:${join(directory, "data.db")}`,
      remove: () => rmSync(directory, { recursive: true, force: true }),
    };
  },
};

export const STORES: readonly StoreSpec[] = [memory, sqlite];
