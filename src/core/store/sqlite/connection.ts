import type { Clock, Log } from "../../model/ports.ts";
import type { Scope } from "../contract.ts";
import { StoreError, type StoreErrorCode } from "../errors.ts";
import { scopeKey } from "../rules.ts";
import { toText } from "../stored-text.ts";
import { toStoreError } from "./damage.ts";
import {
  type RecordedStatement,
  type SqliteDriver,
  type SqliteStatement,
  type StatementRecorder,
  withRecorder,
} from "./driver.ts";
import { columns, fromText, type StoredText } from "./rows.ts";

const MAX_CACHED_SCOPES = 10_000;
const MAX_REPORTED = 10_000;
/** For how long a write that succeeded is taken as proof that the next one will, and one that failed that it will not. */
const TRUST_SUCCESS_MS = 30_000;
const TRUST_FAILURE_MS = 1_000;
const DISK_ERRORS: ReadonlySet<StoreErrorCode> = new Set(["full", "read-only", "io"]);

export interface ConnectionPorts {
  readonly clock: Clock;
  readonly log: Log;
}

/** The open file: transactions and how they end, and the scopes by number, which every part of the store uses. */
export class Connection {
  readonly driver: SqliteDriver;
  readonly file: string;
  readonly #begin: SqliteStatement<object>;
  readonly #commit: SqliteStatement<object>;
  readonly #scopeIds = new Map<string, number>();
  readonly #scopes = new Map<number, Scope>();
  readonly #findScope: SqliteStatement<{ id: number }>;
  readonly #readScope: SqliteStatement<{ agent: StoredText; tenant: StoredText; owner: StoredText }>;
  readonly #addScope: SqliteStatement<{ id: number }>;
  readonly #addProbe: SqliteStatement<object>;
  readonly #removeProbe: SqliteStatement<object>;
  readonly #ports: ConnectionPorts;
  readonly #reported = new Set<string>();
  /** Transactions that were undone: what was remembered of their writes is wrong. */
  rollbacks = 0;
  /** Why the disk did not take the newest write, if it did not. */
  #trouble: StoreError | undefined;
  #triedAt = Number.NEGATIVE_INFINITY;

  readonly #recorder: StatementRecorder = { into: undefined };

  constructor(given: SqliteDriver, file: string, ports: ConnectionPorts) {
    const driver = withRecorder(given, this.#recorder);
    this.driver = driver;
    this.file = file;
    this.#ports = ports;
    this.#begin = driver.prepare("BEGIN IMMEDIATE");
    this.#commit = driver.prepare("COMMIT");
    this.#findScope = driver.prepare("SELECT id FROM scope WHERE owner = ? AND tenant = ? AND agent = ?");
    this.#readScope = driver.prepare(`SELECT ${columns("", "agent, tenant, owner")} FROM scope WHERE id = ?`);
    this.#addScope = driver.prepare("INSERT INTO scope (owner, tenant, agent) VALUES (?, ?, ?) RETURNING id");
    // Of a task that there cannot be, and large enough that it does not fit into what is left of the file by chance.
    this.#addProbe = driver.prepare(
      "INSERT OR REPLACE INTO memory (task, key, value) VALUES (-1, '', zeroblob(65536))",
    );
    this.#removeProbe = driver.prepare("DELETE FROM memory WHERE task = -1");
  }

  /**
   * All of it or nothing; whatever goes wrong, the connection can be used again. Work that changes something by one
   * statement at most needs no transaction around it: the statement is one, and is synced like any other.
   */
  transact<T>(work: () => T, isOneStatement = false): T {
    try {
      if (isOneStatement) return work();
      this.#begin.run();
      const result = work();
      this.#commit.run();
      return result;
    } catch (cause) {
      this.#rollback();
      throw this.recordFailure(cause);
    }
  }

  /** Does the work and takes it back. Returns what it changes, for another connection to do. */
  plan<T>(work: () => T): { readonly result: T; readonly statements: readonly RecordedStatement[] } {
    const statements: RecordedStatement[] = [];
    try {
      this.#begin.run();
      this.#recorder.into = statements;
      return { result: work(), statements };
    } catch (cause) {
      throw this.recordFailure(cause);
    } finally {
      this.#recorder.into = undefined;
      this.#rollback();
    }
  }

  /** All that is read is of one moment, though another connection may commit meanwhile. */
  readConsistently<T>(work: () => T): T {
    this.driver.exec("BEGIN");
    try {
      return work();
    } finally {
      this.#endTransaction();
    }
  }

  /** Returns what a write failed with as an error of the store. */
  recordFailure(cause: unknown): unknown {
    const error = toStoreError(cause, this.file);
    if (error instanceof StoreError && DISK_ERRORS.has(error.code)) this.#tried(error);
    return error;
  }

  /** Something was written to the disk. */
  recordWrite(): void {
    this.#tried(undefined);
  }

  /** Throws why writes fail, if they do; writes something to find out unless that is known. */
  checkWritable(): void {
    const known = this.#ports.clock.now() - this.#triedAt;
    if (known >= (this.#trouble === undefined ? TRUST_SUCCESS_MS : TRUST_FAILURE_MS)) {
      this.transact(() => this.#addProbe.run());
      this.transact(() => this.#removeProbe.run());
      this.recordWrite();
    }
    if (this.#trouble !== undefined) throw this.#trouble;
  }

  #tried(trouble: StoreError | undefined): void {
    this.#triedAt = this.#ports.clock.now();
    if (trouble?.code === this.#trouble?.code) return;
    this.#trouble = trouble;
    if (trouble === undefined) this.#ports.log.info({ file: this.file }, "The task store takes writes again.");
    else this.#ports.log.error({ err: trouble, file: this.file }, "The task store does not take writes.");
  }

  /** Names something that is left out because it cannot be read, once. */
  reportDamage(what: string, error: unknown): void {
    if (this.#reported.has(what)) return;
    if (this.#reported.size >= MAX_REPORTED) this.#reported.clear();
    this.#reported.add(what);
    const fields = { err: toStoreError(error, this.file), file: this.file, what };
    this.#ports.log.error(fields, "Damaged in the task store and left out; see dragoman doctor --deep.");
  }

  /** Undefined if there was never a task in that scope. */
  findScope(scope: Scope): number | undefined {
    const key = scopeKey(scope);
    const known = this.#scopeIds.get(key);
    if (known !== undefined) return known;
    const row = this.#findScope.get(toText(scope.owner), toText(scope.tenant), toText(scope.agent));
    if (row !== undefined) addToCache(this.#scopeIds, key, row.id);
    return row?.id;
  }

  internScope(scope: Scope): number {
    const known = this.findScope(scope);
    if (known !== undefined) return known;
    const row = this.#addScope.all(toText(scope.owner), toText(scope.tenant), toText(scope.agent))[0];
    const id = row?.id as number;
    addToCache(this.#scopeIds, scopeKey(scope), id);
    return id;
  }

  scopeOf(id: number): Scope {
    const known = this.#scopes.get(id);
    if (known !== undefined) return known;
    const row = this.#readScope.get(id);
    if (row === undefined) throw new StoreError("damaged", `No scope has the number ${id}.`);
    const scope = { agent: fromText(row.agent), tenant: fromText(row.tenant), owner: fromText(row.owner) };
    addToCache(this.#scopes, id, scope);
    return scope;
  }

  #rollback(): void {
    this.rollbacks++;
    // Scopes that were added are gone again.
    this.#scopeIds.clear();
    this.#scopes.clear();
    this.#endTransaction();
  }

  #endTransaction(): void {
    try {
      this.driver.exec("ROLLBACK");
    } catch {
      // SQLite has already rolled back by itself, as it does when the disk is full or cannot be read.
    }
  }
}

function addToCache<K, V>(cache: Map<K, V>, key: K, value: V): void {
  if (cache.size >= MAX_CACHED_SCOPES) cache.clear();
  cache.set(key, value);
}
