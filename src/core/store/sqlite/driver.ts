/** What the store needs of an SQLite library. Both have synchronous calls; a commit of a group is one of them. */
export interface SqliteDriver {
  exec(sql: string): void;
  prepare<Row extends object = Record<string, SqlValue>>(sql: string): SqliteStatement<Row>;
  close(): void;
}

/** No booleans: libsql aborts the process when it is given one. */
export type SqlValue = string | number | Uint8Array | null;

/** Of every connection that may write. */
export const WRITING_PRAGMAS = "PRAGMA synchronous = FULL; PRAGMA cache_size = -32768;";
export const COMMON_PRAGMAS = "PRAGMA busy_timeout = 5000; PRAGMA foreign_keys = OFF; PRAGMA temp_store = MEMORY;";

export interface SqliteStatement<Row extends object> {
  /** Returns how many rows changed. */
  run(...values: SqlValue[]): number;
  get(...values: SqlValue[]): Row | undefined;
  all(...values: SqlValue[]): Row[];
}

/** A statement that changes something, as it was run. */
export interface RecordedStatement {
  readonly sql: string;
  readonly values: SqlValue[];
  /** The rows that it returned, or how many it changed. */
  readonly result: readonly object[] | number;
}

export interface StatementRecorder {
  /** Where what is run is added, while it is to be recorded. */
  into: RecordedStatement[] | undefined;
}

/**
 * The same driver, whose statements can be recorded, to be run by another connection. Values that are given as bytes are
 * large and left out here.
 */
export function withRecorder(driver: SqliteDriver, recorder: StatementRecorder): SqliteDriver {
  return {
    ...driver,
    prepare<Row extends object>(sql: string): SqliteStatement<Row> {
      const statement = driver.prepare<Row>(sql);
      if (!/^\s*(INSERT|UPDATE|DELETE)\b/.test(sql)) return statement;
      const record = (values: SqlValue[], result: RecordedStatement["result"]) =>
        recorder.into?.push({ sql, values, result });
      return {
        ...statement,
        run(...values) {
          if (recorder.into === undefined) return statement.run(...values);
          const changes = statement.run(...values.map(withoutBytes));
          record(values, changes);
          return changes;
        },
        all(...values) {
          if (recorder.into === undefined) return statement.all(...values);
          const rows = statement.all(...values.map(withoutBytes));
          record(values, rows);
          return rows;
        },
      };
    },
  };
}

function withoutBytes(value: SqlValue): SqlValue {
  return value instanceof Uint8Array ? "" : value;
}

/** Node's own SQLite where it is ready for use, else the prebuilt libsql; neither needs an install script. */
export function openDriver(file: string): Promise<SqliteDriver> {
  const major = Number.parseInt(process.versions.node, 10);
  return major >= 24 ? openNodeDriver(file) : openLibsqlDriver(file);
}

async function openLibsqlDriver(file: string): Promise<SqliteDriver> {
  const { default: Database } = await import("libsql");
  const database = new Database(file);
  return {
    exec: (sql) => void database.exec(sql),
    prepare<Row extends object>(sql: string): SqliteStatement<Row> {
      let statement = database.prepare(sql);
      return {
        run: (...values) => statement.run(values).changes,
        get: (...values) => {
          try {
            return statement.get(values) as Row | undefined;
          } catch (error) {
            // After an error the library does not reset it for `get`: every later call would fail the same way.
            statement = database.prepare(sql);
            throw error;
          }
        },
        all: (...values) => statement.all(values) as Row[],
      };
    },
    close: () => void database.close(),
  };
}

interface NodeStatement {
  run(...values: SqlValue[]): { readonly changes: number | bigint };
  get(...values: SqlValue[]): object | undefined;
  all(...values: SqlValue[]): object[];
}

interface NodeSqlite {
  readonly DatabaseSync: new (
    file: string,
  ) => { exec(sql: string): void; prepare(sql: string): NodeStatement; close(): void };
}

async function openNodeDriver(file: string): Promise<SqliteDriver> {
  const { DatabaseSync } = await importNodeSqlite();
  const database = new DatabaseSync(file);
  return {
    exec: (sql) => database.exec(sql),
    prepare<Row extends object>(sql: string): SqliteStatement<Row> {
      const statement = database.prepare(sql);
      return {
        run: (...values) => Number(statement.run(...values).changes),
        get: (...values) => statement.get(...values) as Row | undefined,
        all: (...values) => statement.all(...values) as Row[],
      };
    },
    close: () => database.close(),
  };
}

/** Some releases warn that the module is experimental; the people who run a server cannot do anything about it. */
async function importNodeSqlite(): Promise<NodeSqlite> {
  // By a variable, because the oldest Node that is supported does not have the module and its types.
  const name: string = "node:sqlite";
  const emitWarning = process.emitWarning;
  process.emitWarning = (warning: string | Error, ...rest: unknown[]) => {
    const text = typeof warning === "string" ? warning : warning.message;
    if (!/sqlite/i.test(text)) Reflect.apply(emitWarning, process, [warning, ...rest]);
  };
  try {
    return (await import(name)) as NodeSqlite;
  } finally {
    process.emitWarning = emitWarning;
  }
}
