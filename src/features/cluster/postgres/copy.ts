import { SILENT_LOG } from "../../../core/model/ports.ts";
import type { CopiedRow, CopiedTable, CopySource, CopyTarget } from "../../../core/store/copy-tables.ts";
import { StoreError } from "../../../core/store/errors.ts";
import { type Database, openDatabase, type Query } from "./connection.ts";
import { prepareSchema } from "./schema.ts";

const CONNECT_MS = 30_000;
/** Numbers in a copy, true or false here. */
const FLAGS: ReadonlySet<string> = new Set(["open", "cancel", "deliveries", "terminal"]);
const GENERATED: Readonly<Record<string, string>> = { scope: "id", task: "seq", delivery: "place" };
/** Who delivered it is gone: it is due again. */
const DUE = "CASE WHEN holder IS NULL THEN due_at ELSE 0 END AS due_at";

async function open(spec: string, mode: "copy" | "inspect"): Promise<Database> {
  const database = await openDatabase(spec, { leaseMs: CONNECT_MS, log: SILENT_LOG });
  try {
    await prepareSchema(database, mode);
    await refuseIfServed(database);
    return database;
  } catch (error) {
    await database.close();
    throw error;
  }
}

async function refuseIfServed({ place, query }: Database): Promise<void> {
  const alive = await query("SELECT 1 FROM @node WHERE expires_at >= @now LIMIT 1");
  if (alive.length === 0) return;
  throw new StoreError(
    "in-use",
    `${place} is in use: a node that serves it is alive, or ended less than its lease ago.`,
  );
}

/** Holds one connection and its transaction until `end` is called. */
function holdTransaction(database: Database, begin: string): Promise<{ query: Query; end(): Promise<void> }> {
  return new Promise((resolve, reject) => {
    let end = () => {};
    const ended = new Promise<void>((done) => {
      end = done;
    });
    const work = database.alone(async (query) => {
      await query(begin);
      resolve({
        query,
        end: async () => {
          end();
          await work;
        },
      });
      await ended;
    });
    work.catch(reject);
  });
}

export async function openPostgresSource(spec: string): Promise<CopySource> {
  const database = await open(spec, "inspect");
  const { query, end } = await holdTransaction(database, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
  return {
    description: `postgres ${database.place}`,
    read: (table) => readPages(query, table),
    async close() {
      await end();
      await database.close();
    },
  };
}

async function* readPages(query: Query, table: CopiedTable): AsyncGenerator<readonly CopiedRow[]> {
  const { columns, key, name, page } = table;
  const list = Object.keys(columns)
    .map((column) => (FLAGS.has(column) ? `${column}::int AS ${column}` : column))
    .map((column) => (name === "delivery" && column === "due_at" ? DUE : column))
    .join(", ");
  const order = key.join(", ");
  const after = key.map((_, index) => `$${index + 1}`).join(", ");
  const select = (where: string) => `SELECT ${list} FROM @${name} ${where} ORDER BY ${order} LIMIT ${page}`;
  for (let rows = await query<CopiedRow>(select(""), []); rows.length > 0; ) {
    yield rows;
    const last = rows.at(-1) ?? {};
    const values = key.map((column) => last[column]);
    rows = rows.length < page ? [] : await query<CopiedRow>(select(`WHERE (${order}) > (${after})`), values);
  }
}

/** All of the copy is one transaction: whatever interrupts it leaves the store empty. */
export async function openPostgresTarget(spec: string): Promise<CopyTarget> {
  const database = await open(spec, "copy");
  const { place } = database;
  const { query, end } = await holdTransaction(database, "BEGIN");
  const close = async () => {
    await end();
    await database.close();
  };
  try {
    await query("LOCK TABLE @task, @record IN EXCLUSIVE MODE");
    const [filled] = await query("SELECT 1 FROM @task UNION ALL SELECT 1 FROM @record LIMIT 1", []);
    if (filled !== undefined)
      throw new StoreError("in-use", `${place} is not empty; a copy needs a store without tasks.`);
    // Nothing refers to scopes that a server without tasks has left.
    await query("DELETE FROM @scope");
  } catch (error) {
    await close();
    throw error;
  }
  return {
    description: `postgres ${place}`,
    write: async (table, rows) => void (await query(...toInsert(table, rows))),
    async commit() {
      for (const [name, column] of Object.entries(GENERATED)) {
        await query(
          `SELECT setval(pg_get_serial_sequence('@${name}', '${column}'), (SELECT coalesce(max(${column}), 0) + 1 FROM @${name}), false)`,
        );
      }
      await query("SELECT setval('@record_written', (SELECT coalesce(max(written), 0) + 1 FROM @record), false)");
      await query(COUNT_ALL);
      await query("COMMIT");
    },
    close,
  };
}

function toInsert({ columns, name }: CopiedTable, rows: readonly CopiedRow[]): [text: string, values: unknown[]] {
  const names = Object.keys(columns);
  const types = names.map((column, index) => `$${index + 1}::${columns[column] === "text" ? "text" : "bigint"}[]`);
  const given = names.map((column) => (FLAGS.has(column) ? `${column} <> 0` : column));
  const own = OWN_COLUMNS[name] ?? {};
  const overriding = name in GENERATED ? "OVERRIDING SYSTEM VALUE" : "";
  const text = `INSERT INTO @${name} (${[...names, ...Object.keys(own)].join(", ")}) ${overriding}
    SELECT ${[...given, ...Object.values(own)].join(", ")} FROM unnest(${types.join(", ")}) AS given (${names.join(", ")})`;
  return [text, names.map((column) => rows.map((row) => row[column] ?? null))];
}

/** What only this database stores. */
const OWN_COLUMNS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  task: { flush: "0", moved: "pg_current_xact_id()" },
  segment: { flush: "0" },
};

/** Counters are not copied: each database has its own. */
const COUNT_ALL = `INSERT INTO @counter_delta (scope, state, tasks, bytes, events)
  SELECT scope, state, count(*), 0, 0 FROM @task GROUP BY scope, state
  UNION ALL SELECT scope, 0, 0, sum(bytes), sum(number) FROM @task GROUP BY scope`;
