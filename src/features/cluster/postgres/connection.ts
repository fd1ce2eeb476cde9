import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import pg from "pg";
import type { Log } from "../../../core/model/ports.ts";
import { parseUrl } from "../../../core/model/url.ts";
import { StoreError } from "../../../core/store/errors.ts";
import { isRefusedStartup, sqlStateOf, toStoreError } from "./errors.ts";

/**
 * Runs one statement. In its text `@name` stands for the table of the store's schema with that name, and `@now` for the
 * time in milliseconds by the database's clock, as bigint. Prepared on first use. Bigint comes back as number.
 * Rejects with a `StoreError`; see `sqlStateOf` and `isUncertain`.
 */
export type Query = <Row extends object = object>(text: string, values?: readonly unknown[]) => Promise<Row[]>;

export interface Database {
  /** For people: host, port, database and schema. */
  readonly place: string;
  readonly schema: string;
  readonly query: Query;
  /** Statements one after the other on a connection of their own, without the limits on time: for migrations. */
  alone<T>(work: (query: Query) => Promise<T>): Promise<T>;
  /** A connection of its own, which the caller ends. */
  connect(listenUrl?: string): Promise<pg.Client>;
  close(): Promise<void>;
}

interface DatabaseOptions {
  /** Statements and connection attempts end well before a lease does. */
  readonly leaseMs: number;
  readonly log: Log;
  /** Tests give the time that `@now` stands for. */
  readonly now?: (() => number) | undefined;
  readonly maxConnections?: number | undefined;
}

interface StoreUrl {
  /** Without what only this program understands. */
  readonly url: string;
  readonly schema: string;
  /** For people, without user and password. */
  readonly place: string;
}

const DEFAULT_SCHEMA = "dragoman";
const MAX_CONNECTIONS = 8;
const IDLE_MS = 60_000;
const KEEP_ALIVE_MS = 5_000;
const MAX_NAME_BYTES = 63;
const READ_ONLY = "25006";
const DATABASE_NOW = "(floor(extract(epoch FROM statement_timestamp()) * 1000))::bigint";

/**
 * Every statement finds its rows by an index, few at a time and in its order. A plan that is made while the tables are new and without
 * statistics, and is kept, would read whole tables for as long as the connection lives. Made for the values of each call, a plan
 * costs several times as much as what it finds.
 */
const PLANNER_OPTIONS = [
  ...["enable_seqscan", "enable_bitmapscan", "enable_hashjoin", "enable_mergejoin", "jit"].map((name) => `${name}=off`),
  "plan_cache_mode=force_generic_plan",
]
  .map((setting) => `-c ${setting}`)
  .join(" ");

/** PgBouncer in transaction mode: statements that one server connection has prepared are unknown to the next. */
const PREPARED_ELSEWHERE: ReadonlySet<string | undefined> = new Set(["26000", "42P05"]);

/** Reads `postgres://user:password@host:port/database?schema=name`. Throws without repeating the password. */
function parseStoreUrl(spec: string, setting = "The store"): StoreUrl {
  const url = parseUrl(spec);
  if (url === undefined || !/^postgres(ql)?:$/.test(url.protocol)) {
    throw new StoreError("unavailable", `${setting} is not a valid URL; write postgres://user@host:5432/database.`);
  }
  checkFiles(url, setting);
  const schema = url.searchParams.get("schema") ?? DEFAULT_SCHEMA;
  url.searchParams.delete("schema");
  if (schema === "" || /[@\0]/.test(schema) || Buffer.byteLength(schema) > MAX_NAME_BYTES || /^pg_/i.test(schema)) {
    throw new StoreError("unavailable", `The store has a schema "${schema}", which cannot be used.`);
  }
  const host = url.searchParams.get("host") ?? (url.hostname || "localhost");
  const user = decodePart(encodeLonePercents(url.username), "user", setting);
  const database = decodePart(url.pathname.slice(1), "database", setting) || user || "postgres";
  // The driver decodes it as well, and would not say where it fails.
  decodePart(encodeLonePercents(url.password), "password", setting);
  const place = `${host}:${url.searchParams.get("port") ?? (url.port || "5432")}/${database}`;
  return { url: url.href, schema, place: schema === DEFAULT_SCHEMA ? place : `${place} (schema ${schema})` };
}

/** The driver takes a % in a user or a password as it is, unless two hexadecimal digits follow. */
function encodeLonePercents(text: string): string {
  return text.replace(/%(?![0-9a-f]{2})/gi, "%25");
}

function decodePart(text: string, part: "user" | "password" | "database", setting: string): string {
  try {
    return decodeURIComponent(text);
  } catch (cause) {
    const message = `${setting} is not a valid URL: its ${part} has a % that does not begin an encoded character; write %25 for %.`;
    throw new StoreError("unavailable", message, { cause });
  }
}

/** Those that the driver reads when it connects: it would not say which one is missing. */
function checkFiles({ searchParams }: URL, setting: string): void {
  for (const name of ["sslrootcert", "sslcert", "sslkey"]) {
    const file = searchParams.get(name);
    if (file === null || file === "") continue;
    try {
      readFileSync(file);
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new StoreError("unavailable", `${setting} names a file that cannot be read (${name}=${file}): ${reason}.`, {
        cause,
      });
    }
  }
}

/** For people, without user and password. Throws if it cannot be used. */
export function placeToListen(listenUrl: string): string {
  return parseStoreUrl(listenUrl, "cluster.listenUrl").place;
}

/** As an identifier in SQL, whatever it contains. */
export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** The pool of connections. Rejects within `leaseMs` if the database cannot be reached. */
export async function openDatabase(spec: string, options: DatabaseOptions): Promise<Database> {
  const { url, schema, place } = parseStoreUrl(spec);
  const { leaseMs, log, now, maxConnections = MAX_CONNECTIONS } = options;
  const limitMs = Math.max(Math.floor(leaseMs / 3), 1);
  const serverLimits = {
    statement_timeout: limitMs,
    lock_timeout: limitMs,
    idle_in_transaction_session_timeout: limitMs,
    options: PLANNER_OPTIONS,
  };
  const common: pg.ClientConfig = {
    application_name: "dragoman",
    connectionTimeoutMillis: limitMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    types: { getTypeParser },
  };
  // The server ends a statement first, so that the connection can be used again; the client's limit is for a server that is gone.
  const limited: pg.ClientConfig = { ...common, ...serverLimits, query_timeout: limitMs + Math.min(limitMs, 1_000) };

  const createPool = (config: pg.ClientConfig) => {
    const made = new pg.Pool({
      ...config,
      connectionString: url,
      max: maxConnections,
      idleTimeoutMillis: IDLE_MS,
      allowExitOnIdle: true,
    });
    // An idle connection was lost: the next statement gets another one, or says why there is none.
    made.on("error", (error) => log.debug({ err: toStoreError(error, place), place }, "Lost an idle connection."));
    // The pool looks at idle connections only. One that a server ends in the moment it is lent would end this process.
    made.on("connect", (client) => client.on("error", () => {}));
    return made;
  };

  const names = new Map<string, { readonly text: string; readonly name: string }>();
  const prefix = `${quoteName(schema)}.`;
  let prepares = now === undefined;

  function resolve(text: string) {
    const known = names.get(text);
    if (known !== undefined) return known;
    const resolved = text
      .replace(/'@(\w+)'/g, (_, word: string) => `'${(prefix + word).replaceAll("'", "''")}'`)
      .replace(/@(\w+)/g, (_, word: string) => (word === "now" ? DATABASE_NOW : prefix + word));
    const made = { text: resolved, name: createHash("sha1").update(resolved).digest("hex").slice(0, 20) };
    names.set(text, made);
    return made;
  }

  function toQuery(text: string, values: readonly unknown[]): pg.QueryConfig {
    const given = values as unknown[];
    if (now !== undefined) {
      // The time is part of the text, which is different each time.
      return { text: resolve(text.replace(/@now\b/g, `${Math.floor(now())}::bigint`)).text, values: given };
    }
    const statement = resolve(text);
    return prepares ? { ...statement, values: given } : { text: statement.text, values: given };
  }

  async function runOn<Row extends object>(client: pg.ClientBase, text: string, values: readonly unknown[]) {
    try {
      return (await client.query<Row>(toQuery(text, values))).rows;
    } catch (error) {
      if (!prepares || !PREPARED_ELSEWHERE.has(sqlStateOf(error))) throw error;
      prepares = false;
      log.info({ place }, "The connections of the task store do not keep prepared statements; doing without.");
      return (await client.query<Row>(toQuery(text, values))).rows;
    }
  }

  async function query<Row extends object>(text: string, values: readonly unknown[] = []): Promise<Row[]> {
    let client: pg.PoolClient | undefined;
    let broken = false;
    try {
      client = await pool.connect();
      return await runOn<Row>(client, text, values);
    } catch (error) {
      const state = sqlStateOf(error);
      // The next connection may lead to the server that takes writes now.
      broken = state === undefined || state === READ_ONLY;
      throw toStoreError(error, place);
    } finally {
      client?.release(broken);
    }
  }

  async function connect(listenUrl?: string): Promise<pg.Client> {
    const target = listenUrl === undefined ? { url, place } : parseStoreUrl(listenUrl, "cluster.listenUrl");
    const client = new pg.Client({ ...common, connectionString: target.url });
    // The holder looks at its "end"; without a listener an error would end the process.
    client.on("error", (error) => {
      log.debug({ err: toStoreError(error, target.place), place: target.place }, "Lost a connection.");
    });
    try {
      await client.connect();
      return client;
    } catch (error) {
      client.end().catch(() => {});
      throw toStoreError(error, target.place);
    }
  }

  async function alone<T>(work: (query: Query) => Promise<T>): Promise<T> {
    const client = await connect();
    try {
      // Without values a text may be several statements.
      return await work(async (text, values) => {
        const { text: resolved } = toQuery(text, values ?? []);
        const made = await client.query<never>(
          values === undefined ? resolved : { text: resolved, values: [...values] },
        );
        return made.rows ?? [];
      });
    } catch (error) {
      throw error instanceof StoreError ? error : toStoreError(error, place);
    } finally {
      // Ends a transaction that was not committed, too.
      await client.end().catch(() => {});
    }
  }

  let pool = createPool(limited);
  try {
    (await pool.connect()).release();
  } catch (error) {
    await pool.end();
    if (!isRefusedStartup(error)) throw toStoreError(error, place);
    // PgBouncer lets only some settings through. The client's limit on time remains.
    const { query_timeout } = limited;
    pool = createPool({ ...common, query_timeout });
    try {
      (await pool.connect()).release();
    } catch (cause) {
      await pool.end();
      throw toStoreError(cause, place);
    }
  }
  return { place, schema, query, alone, connect, close: () => pool.end() };
}

const INT8 = 20;
const INT8_ARRAY: number = 1016;

function getTypeParser(oid: number, format?: "text" | "binary") {
  if (oid === INT8) return Number;
  const parse = pg.types.getTypeParser(oid, format as "text");
  return oid === INT8_ARRAY ? (text: string) => (parse(text) as string[]).map(Number) : parse;
}
