import { DatabaseTaskStore, TASK_TABLE } from "@a2a-js/sdk/server/database";
import { Kysely, SqliteDialect } from "kysely";
import Database from "libsql";

/**
 * The SDK's own persistent store, as its README recommends, on a database that is durable on commit. The table is that
 * of its migration; the driver is the one Dragoman uses, so that only the stores differ.
 */
export async function openSqliteTaskStore(file: string): Promise<DatabaseTaskStore> {
  const database = new Database(file);
  database.exec("PRAGMA journal_mode = WAL");
  database.exec("PRAGMA synchronous = FULL");
  database.exec(`CREATE TABLE ${TASK_TABLE} (
    tenant varchar(255) NOT NULL, owner varchar(255) NOT NULL, id varchar(36) NOT NULL,
    context_id varchar(36) NOT NULL, status_last_updated bigint NOT NULL, status_state varchar(255),
    status text, artifacts text, history text, metadata text, protocol_version varchar(255),
    PRIMARY KEY (tenant, owner, id))`);
  database.exec(`CREATE INDEX ${TASK_TABLE}_by_time ON ${TASK_TABLE} (tenant, owner, status_last_updated, id)`);
  database.exec(`CREATE INDEX ${TASK_TABLE}_by_context
    ON ${TASK_TABLE} (tenant, owner, context_id, status_last_updated, id)`);
  return new DatabaseTaskStore(new Kysely({ dialect: new SqliteDialect({ database }) }));
}
