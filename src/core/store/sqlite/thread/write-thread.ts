/** The thread that makes large writes, with a connection of its own to the file. */
import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import { sqliteCode } from "../damage.ts";
import {
  COMMON_PRAGMAS,
  openDriver,
  type RecordedStatement,
  type SqliteStatement,
  type SqlValue,
  WRITING_PRAGMAS,
} from "../driver.ts";

export interface WriteThreadData {
  readonly file: string;
}

export type WriteThreadRequest =
  | { readonly kind: "commit"; readonly statements: readonly RecordedStatement[] }
  | { readonly kind: "close" };

/** `ready` comes first; each commit is answered by one of the others. `changed`: the file is not as it was planned for. */
export type WriteThreadReply =
  | { readonly kind: "ready" | "committed" | "changed" }
  | { readonly kind: "failed"; readonly message: string; readonly code: number | undefined };

const { file } = workerData as WriteThreadData;
const port = parentPort as MessagePort;
const driver = await openDriver(file);
driver.exec(COMMON_PRAGMAS + WRITING_PRAGMAS);
const prepared = new Map<string, SqliteStatement<object>>();

port.on("message", (request: WriteThreadRequest) => {
  if (request.kind === "commit") reply(commit(request.statements));
  else {
    driver.close();
    port.close();
  }
});
reply({ kind: "ready" });

function reply(message: WriteThreadReply): void {
  port.postMessage(message);
}

function commit(statements: readonly RecordedStatement[]): WriteThreadReply {
  try {
    driver.exec("BEGIN IMMEDIATE");
    const asPlanned = statements.every(hasSameEffect);
    driver.exec(asPlanned ? "COMMIT" : "ROLLBACK");
    return { kind: asPlanned ? "committed" : "changed" };
  } catch (error) {
    rollback();
    const message = error instanceof Error ? error.message : String(error);
    return { kind: "failed", message, code: sqliteCode(error) };
  }
}

/**
 * Another process may make deliveries due at any time, and nothing else. What a statement returned was used to plan: the
 * number of a claim, for example.
 */
function hasSameEffect({ sql, values, result }: RecordedStatement): boolean {
  const statement = prepare(sql);
  const bound = values.map((value) => (value instanceof Uint8Array ? Buffer.from(value.buffer) : value));
  if (typeof result === "number") return statement.run(...bound) === result;
  return describe(statement.all(...bound)) === describe(result);
}

/** Texts are returned as bytes, whose class depends on the driver and on whether another thread sent them. */
function describe(rows: readonly object[]): string {
  const toText = (value: SqlValue) => (value instanceof Uint8Array ? Buffer.from(value).toString("base64") : value);
  return JSON.stringify(rows.map((row) => Object.entries(row).map(([name, value]) => [name, toText(value)])));
}

function prepare(sql: string): SqliteStatement<object> {
  let statement = prepared.get(sql);
  if (statement === undefined) {
    statement = driver.prepare(sql);
    prepared.set(sql, statement);
  }
  return statement;
}

function rollback(): void {
  try {
    driver.exec("ROLLBACK");
  } catch {
    // SQLite has already rolled back by itself, as it does when the disk is full.
  }
}
