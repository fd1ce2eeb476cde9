import type { Scope } from "../contract.ts";
import { StoreError } from "../errors.ts";
import { scopeKey } from "../scope-key.ts";
import type { SqliteDriver, SqliteStatement } from "./driver.ts";
import { fromText, toText } from "./text.ts";

const SCOPES_CACHED = 10_000;

/** The open file: transactions, and the scopes by number, which every part of the store uses. */
export class Connection {
  readonly driver: SqliteDriver;
  readonly file: string;
  readonly #begin: SqliteStatement<object>;
  readonly #commit: SqliteStatement<object>;
  readonly #scopeIds = new Map<string, number>();
  readonly #scopes = new Map<number, Scope>();
  readonly #findScope: SqliteStatement<{ id: number }>;
  readonly #readScope: SqliteStatement<{ agent: string; tenant: string; owner: string }>;
  readonly #addScope: SqliteStatement<{ id: number }>;

  constructor(driver: SqliteDriver, file: string) {
    this.driver = driver;
    this.file = file;
    this.#begin = driver.prepare("BEGIN IMMEDIATE");
    this.#commit = driver.prepare("COMMIT");
    this.#findScope = driver.prepare("SELECT id FROM scope WHERE owner = ? AND tenant = ? AND agent = ?");
    this.#readScope = driver.prepare("SELECT agent, tenant, owner FROM scope WHERE id = ?");
    this.#addScope = driver.prepare("INSERT INTO scope (owner, tenant, agent) VALUES (?, ?, ?) RETURNING id");
  }

  /** All of it or nothing; whatever goes wrong, the connection can be used again. */
  transact<T>(work: () => T): T {
    try {
      this.#begin.run();
      const result = work();
      this.#commit.run();
      return result;
    } catch (error) {
      this.#rollback();
      throw asStoreError(error, this.file);
    }
  }

  /** Undefined if nobody of that scope ever had a task. */
  findScope(scope: Scope): number | undefined {
    const key = scopeKey(scope);
    const known = this.#scopeIds.get(key);
    if (known !== undefined) return known;
    const row = this.#findScope.get(toText(scope.owner), toText(scope.tenant), toText(scope.agent));
    if (row !== undefined) remember(this.#scopeIds, key, row.id);
    return row?.id;
  }

  internScope(scope: Scope): number {
    const known = this.findScope(scope);
    if (known !== undefined) return known;
    const row = this.#addScope.all(toText(scope.owner), toText(scope.tenant), toText(scope.agent))[0];
    const id = row?.id as number;
    remember(this.#scopeIds, scopeKey(scope), id);
    return id;
  }

  scopeOf(id: number): Scope {
    const known = this.#scopes.get(id);
    if (known !== undefined) return known;
    const row = this.#readScope.get(id);
    if (row === undefined) throw new RangeError(`no scope has the number ${id}`);
    const scope = { agent: fromText(row.agent), tenant: fromText(row.tenant), owner: fromText(row.owner) };
    remember(this.#scopes, id, scope);
    return scope;
  }

  #rollback(): void {
    // Scopes that were added are gone again.
    this.#scopeIds.clear();
    this.#scopes.clear();
    try {
      this.driver.exec("ROLLBACK");
    } catch {
      // SQLite has already rolled back by itself, as it does when the disk is full.
    }
  }
}

export function asStoreError(error: unknown, file: string): unknown {
  if (error instanceof StoreError || !isSqliteError(error)) return error;
  return new StoreError("io", `The task store ${file} could not be used: ${error.message}`, { cause: error });
}

function isSqliteError(error: unknown): error is Error {
  if (!(error instanceof Error)) return false;
  const code = "code" in error ? String(error.code) : "";
  return code.startsWith("SQLITE") || code === "ERR_SQLITE_ERROR";
}

function remember<K, V>(cache: Map<K, V>, key: K, value: V): void {
  if (cache.size >= SCOPES_CACHED) cache.clear();
  cache.set(key, value);
}
