import Database from "libsql";
import type { SqliteDriver, SqliteStatement } from "./driver.ts";

export function openLibsqlDriver(file: string): SqliteDriver {
  const database = new Database(file);
  return {
    exec: (sql) => {
      database.exec(sql);
    },
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
    close: () => {
      database.close();
    },
  };
}
