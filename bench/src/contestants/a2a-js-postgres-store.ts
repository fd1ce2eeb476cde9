import { DatabaseTaskStore, TASK_TABLE } from "@a2a-js/sdk/server/database";
import { Kysely, PostgresDialect } from "kysely";
import pg from "pg";

/** The SDK's own persistent store on PostgreSQL, with the table of its migration and a pool of the driver's usual size. */
export async function openPostgresTaskStore(store: string): Promise<DatabaseTaskStore> {
  const url = new URL(store);
  const schema = url.searchParams.get("schema") ?? "public";
  url.search = "";
  const pool = new pg.Pool({ connectionString: url.href, options: `-c search_path=${schema}` });
  await pool.query(`CREATE SCHEMA IF NOT EXISTS ${schema}`);
  await pool.query(`CREATE TABLE ${TASK_TABLE} (
    tenant varchar(255) NOT NULL, owner varchar(255) NOT NULL, id varchar(36) NOT NULL,
    context_id varchar(36) NOT NULL, status_last_updated bigint NOT NULL, status_state varchar(255),
    status text, artifacts text, history text, metadata text, protocol_version varchar(255),
    PRIMARY KEY (tenant, owner, id))`);
  await pool.query(`CREATE INDEX ${TASK_TABLE}_by_time ON ${TASK_TABLE} (tenant, owner, status_last_updated, id)`);
  await pool.query(`CREATE INDEX ${TASK_TABLE}_by_context
    ON ${TASK_TABLE} (tenant, owner, context_id, status_last_updated, id)`);
  return new DatabaseTaskStore(new Kysely({ dialect: new PostgresDialect({ pool }) }));
}
