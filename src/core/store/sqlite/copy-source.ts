import { realpath } from "node:fs/promises";
import type { CopiedRow, CopiedTable, CopySource } from "../copy-tables.ts";
import { StoreError } from "../errors.ts";
import { COMMON_PRAGMAS, openDriver, type SqliteDriver, type SqlValue } from "./driver.ts";
import { acquireOwnership, toOpenError } from "./file-access.ts";
import { decodeText, keyOf, LOG_NUMBER, numberIn, ofTask, type StoredText } from "./rows.ts";
import { checkSchema, SCHEMA_VERSION } from "./schema.ts";

/** A file that no process serves meanwhile. */
export async function openSqliteSource(path: string): Promise<CopySource> {
  const file = await realpath(path).catch((cause: unknown) => {
    throw toOpenError(cause, path);
  });
  const release = await acquireOwnership(file);
  let driver: SqliteDriver | undefined;
  try {
    driver = await openDriver(file);
    driver.exec(COMMON_PRAGMAS);
    if (checkSchema(driver, file) < SCHEMA_VERSION) {
      throw new StoreError("older-schema", `${file} has an older schema; run "dragoman store migrate" first.`);
    }
    return createSource(driver, file, release);
  } catch (error) {
    driver?.close();
    release();
    throw toOpenError(error, file);
  }
}

function createSource(driver: SqliteDriver, file: string, release: () => void): CopySource {
  return {
    description: `sqlite ${file}`,
    read: (table) => readPages(driver, table),
    close: async () => {
      driver.close();
      release();
    },
  };
}

/** Where a column is not stored under its name. */
const EXPRESSIONS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  task: {
    // The row of an open task may be behind its log.
    number: LOG_NUMBER,
    bytes: `CASE open WHEN 1 THEN (SELECT coalesce(sum(length(CAST(body AS BLOB))), 0) FROM segment WHERE ${ofTask("seq")}) ELSE bytes END`,
  },
  segment: { task: "key >> 31", last: numberIn("key") },
  snapshot: { task: "key >> 31", part: numberIn("key") },
  // Who delivered it is gone: it is due again.
  delivery: { due_at: "CASE WHEN holder IS NULL THEN due_at ELSE 0 END" },
};

function* readPages(driver: SqliteDriver, table: CopiedTable): Generator<readonly CopiedRow[]> {
  const { name, page } = table;
  const names = Object.keys(table.columns);
  const own = EXPRESSIONS[name] ?? {};
  const select = names
    .map((column) => {
      const type = table.columns[column] === "text" ? "BLOB" : "NUMERIC";
      return `CAST(${own[column] ?? column} AS ${type}) AS ${column}`;
    })
    .join(", ");
  const packed = name === "segment" || name === "snapshot";
  const after = packed
    ? `key > ${keyOf("?", "?")}`
    : `(${table.key.join(", ")}) > (${table.key.map(() => "?").join(", ")})`;
  const query = (where: string) =>
    driver.prepare<Record<string, number | StoredText | null>>(
      `SELECT ${select} FROM ${name} ${where}
       ORDER BY ${packed ? "key" : table.key.map((column) => `${name}.${column}`).join(", ")} LIMIT ${page}`,
    );
  const first = query("");
  const next = query(`WHERE ${after}`);
  for (let rows = first.all(); rows.length > 0; ) {
    const decoded = rows.map((row) =>
      Object.fromEntries(
        names.map((column) => {
          const value = row[column] ?? null;
          return [column, typeof value === "object" && value !== null ? decodeText(value) : value];
        }),
      ),
    );
    yield decoded;
    const last = decoded.at(-1) ?? {};
    rows = rows.length < page ? [] : next.all(...table.key.map((column) => last[column] as SqlValue));
  }
}
