/** What the store needs of an SQLite library. Both have synchronous calls; a commit of a group is one of them. */
export interface SqliteDriver {
  exec(sql: string): void;
  prepare<Row extends object = Record<string, SqlValue>>(sql: string): SqliteStatement<Row>;
  close(): void;
}

/** No booleans: libsql aborts the process when it is given one. */
export type SqlValue = string | number | null;

export interface SqliteStatement<Row extends object> {
  /** Returns how many rows changed. */
  run(...values: SqlValue[]): number;
  get(...values: SqlValue[]): Row | undefined;
  all(...values: SqlValue[]): Row[];
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
