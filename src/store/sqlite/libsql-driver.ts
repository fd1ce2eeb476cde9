import Database from "libsql";
import type { SqliteDriver, SqliteStatement } from "./driver.ts";

export function openLibsqlDriver(file: string): SqliteDriver {
  const database = new Database(file);
  return {
    exec: (sql) => {
      database.exec(sql);
    },
    prepare<Row extends object>(sql: string): SqliteStatement<Row> {
      const statement = database.prepare(sql);
      return {
        run: (...values) => statement.run(values).changes,
        get: (...values) => statement.get(values) as Row | undefined,
        all: (...values) => statement.all(values) as Row[],
      };
    },
    close: () => {
      database.close();
    },
  };
}
