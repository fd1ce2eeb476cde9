import { resolve } from "node:path";
import { COPIED_TABLES, type CopySource, type CopyTarget } from "../../../core/store/copy-tables.ts";
import { StoreError } from "../../../core/store/errors.ts";

interface CopyProgress {
  readonly table: string;
  readonly rows: number;
}

interface CopiedStore {
  readonly from: string;
  readonly to: string;
  /** Rows by table. */
  readonly rows: Readonly<Record<string, number>>;
}

interface CopyOptions {
  /** What a relative file is relative to. */
  readonly baseDirectory: string;
  onProgress?(progress: CopyProgress): void;
}

/**
 * Copies all of a store into an empty one, with every number, key and place. Neither may be in use. Tasks that were
 * running wait in the copy for a node, as after a crash.
 */
export async function copyStore(from: string, to: string, options: CopyOptions): Promise<CopiedStore> {
  const source = await openSource(from, options.baseDirectory);
  try {
    const target = await openTarget(to);
    try {
      const rows: Record<string, number> = {};
      for (const table of COPIED_TABLES) {
        let count = 0;
        for await (const page of source.read(table)) {
          await target.write(table, page);
          count += page.length;
          options.onProgress?.({ table: table.name, rows: count });
        }
        rows[table.name] = count;
      }
      await target.commit();
      return { from: source.description, to: target.description, rows };
    } finally {
      await target.close();
    }
  } finally {
    await source.close();
  }
}

async function openSource(spec: string, baseDirectory: string): Promise<CopySource> {
  if (spec.startsWith("sqlite:")) {
    const { openSqliteSource } = await import("../../../core/store/sqlite/copy-source.ts");
    return openSqliteSource(resolve(baseDirectory, spec.slice("sqlite:".length)));
  }
  if (/^postgres(ql)?:/.test(spec)) {
    const { openPostgresSource } = await import("../postgres/copy.ts");
    return openPostgresSource(spec);
  }
  throw new StoreError("unavailable", `The store "${spec}" cannot be copied; use sqlite:<file> or postgres://….`);
}

async function openTarget(spec: string): Promise<CopyTarget> {
  if (/^postgres(ql)?:/.test(spec)) {
    const { openPostgresTarget } = await import("../postgres/copy.ts");
    return openPostgresTarget(spec);
  }
  throw new StoreError("unavailable", `A store cannot be copied to "${spec}"; use postgres://….`);
}
