import type { SqliteDriver, SqliteStatement, SqlValue } from "./driver.ts";

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

export async function openNodeDriver(file: string): Promise<SqliteDriver> {
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
