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
export async function openDriver(file: string): Promise<SqliteDriver> {
  const major = Number.parseInt(process.versions.node, 10);
  if (major >= 24) return (await import("./node-driver.ts")).openNodeDriver(file);
  return (await import("./libsql-driver.ts")).openLibsqlDriver(file);
}
