/** Reads a whole file to find what in it is damaged. Changes nothing; another process may be serving it. */

import { type Clock, SILENT_LOG } from "../../model/ports.ts";
import { StoreError } from "../errors.ts";
import { createLiveness } from "../single-process.ts";
import { parseJson } from "../stored-text.ts";
import { Connection } from "./connection.ts";
import { fallBackIfDamaged, isDamage, salvage } from "./damage.ts";
import { Deliveries } from "./deliveries.ts";
import { openDriver, type SqliteDriver } from "./driver.ts";
import { Reader } from "./reader.ts";
import { columns, decodeText, fromText, packColumns, type StoredText, unpackRows } from "./rows.ts";

interface Damage {
  /** `table segment`, `task 0190…`. */
  readonly what: string;
  readonly problem: string;
}

export interface Examination {
  /** How many tasks were read. */
  readonly tasks: number;
  readonly damage: readonly Damage[];
}

/** What is done: which of how many tables or tasks. */
export type Progress = (what: "tables" | "tasks", done: number, of: number) => void;

/** Tasks per view of the file: what a server writes meanwhile must not look like damage. */
const BATCH_SIZE = 200;
const MAX_PROBLEMS_PER_TABLE = 20;

/** Of a file of the current schema. */
export async function examineFile(file: string, clock: Clock, onProgress: Progress): Promise<Examination> {
  const driver = await openDriver(file);
  try {
    driver.exec("PRAGMA busy_timeout = 5000; PRAGMA query_only = ON;");
    const damage = await examineTables(driver, onProgress);
    const { tasks, damage: more } = await examineTasks(driver, file, clock, onProgress);
    return { tasks, damage: [...damage, ...more] };
  } finally {
    driver.close();
  }
}

/** What SQLite itself finds: invalid pages, indexes that disagree with their tables. */
async function examineTables(driver: SqliteDriver, onProgress: Progress): Promise<readonly Damage[]> {
  const tables = driver
    .prepare<{ name: StoredText }>(`SELECT ${columns("", "name")} FROM sqlite_schema WHERE type = 'table'`)
    .all();
  const names = tables.map(({ name }) => decodeText(name)).filter((name) => !name.startsWith("sqlite_"));
  const damage: Damage[] = [];
  for (const [index, name] of names.entries()) {
    onProgress("tables", index, names.length);
    await yieldToEventLoop();
    const report = (_: string, error: unknown) => damage.push({ what: `table ${name}`, problem: messageOf(error) });
    const check = driver.prepare<{ problem: StoredText }>(
      `SELECT CAST(integrity_check AS BLOB) AS problem FROM pragma_integrity_check('${name}')`,
    );
    const found = salvage([name], () => check.all(), report).flat();
    const problems = found.map(({ problem }) => Buffer.from(new Uint8Array(problem)).toString("utf8"));
    const real = problems.filter((problem) => problem !== "ok").map((problem) => problem.replace(/^\*\*\*.*\n/, ""));
    damage.push(...real.slice(0, MAX_PROBLEMS_PER_TABLE).map((problem) => ({ what: `table ${name}`, problem })));
    const rest = real.length - MAX_PROBLEMS_PER_TABLE;
    if (rest > 0) damage.push({ what: `table ${name}`, problem: `and ${rest} more` });
  }
  return damage;
}

/** What SQLite cannot know: whether the content is what was written. */
async function examineTasks(driver: SqliteDriver, file: string, clock: Clock, onProgress: Progress) {
  const connection = new Connection(driver, file, { clock, log: SILENT_LOG });
  const reader = new Reader(connection);
  const deliveries = new Deliveries(connection, clock, createLiveness(clock));
  const damaged = new Map<number, string>();
  const report = (seq: number, error: unknown) => damaged.set(seq, messageOf(error));
  const between = driver.prepare<{ seq: number }>("SELECT seq FROM task WHERE seq BETWEEN ? AND ? ORDER BY seq");
  const one = driver.prepare<{ seq: number }>("SELECT seq FROM task WHERE seq = ?");
  /** Halves what cannot be read together until it is known which tasks are on the damaged page. */
  const seqsOf = (first: number, last: number): readonly number[] => {
    const middle = Math.floor((first + last) / 2);
    if (first === last) return salvage([first], (seq) => one.all(seq).map((row) => row.seq), report).flat();
    return fallBackIfDamaged(
      () => between.all(first, last).map(({ seq }) => seq),
      () => [...seqsOf(first, middle), ...seqsOf(middle + 1, last)],
    );
  };
  const readTask = (seq: number) => {
    const row = reader.rowOf(seq);
    if (reader.head(row.id) === undefined) throw new StoreError("damaged", "The task is not found by its id.");
    reader.toTask(row, { history: Number.POSITIVE_INFINITY, artifacts: true });
    reader.memory(row.id);
    for (const group of ["webhooks", "replies"] as const) {
      deliveries.list(row.id, { group, limit: Number.MAX_SAFE_INTEGER - 1 });
    }
  };
  const newest = driver.prepare<{ seq: number | null }>("SELECT max(seq) AS seq FROM task").get()?.seq ?? 0;
  let tasks = 0;
  for (let first = 1; first <= newest; first += BATCH_SIZE) {
    onProgress("tasks", first - 1, newest);
    await yieldToEventLoop();
    driver.exec("BEGIN");
    tasks += salvage(seqsOf(first, first + BATCH_SIZE - 1), readTask, report).length;
    driver.exec("ROLLBACK");
  }
  const damage = [...damaged].map(([seq, problem]) => ({ what: describeTask(driver, seq), problem }));
  return { tasks, damage: [...damage, ...(await examineKeys(driver))] };
}

async function examineKeys(driver: SqliteDriver): Promise<readonly Damage[]> {
  const following = driver.prepare<{ scope: number; key: StoredText; rest: StoredText }>(
    `SELECT ${columns("scope", "key")}, CAST(${packColumns("fingerprint, task_id, reply")} AS BLOB) AS rest FROM idempotency i
     WHERE (scope, key) > (?, ?) ORDER BY i.scope, i.key LIMIT ${BATCH_SIZE}`,
  );
  let after: readonly [number, string] = [-1, ""];
  try {
    for (;;) {
      const rows = following.all(...after);
      for (const { scope, key, rest } of rows) {
        after = [scope, decodeText(key)];
        const [[, , reply = ""] = []] = unpackRows(rest, 3);
        if (reply !== "") parseJson(reply);
      }
      if (rows.length < BATCH_SIZE) return [];
      await yieldToEventLoop();
    }
  } catch (error) {
    if (!isDamage(error)) throw error;
    return [{ what: "idempotency keys", problem: messageOf(error) }];
  }
}

/** An index has the id, too. */
function describeTask(driver: SqliteDriver, seq: number): string {
  const find = (from: string) =>
    driver.prepare<{ id: StoredText }>(`SELECT ${columns("", "id")} FROM task ${from} WHERE seq = ?`).all(seq);
  const sources = ["NOT INDEXED", "INDEXED BY task_by_time"];
  const [id] = salvage(
    sources,
    (from) => find(from).map((row) => fromText(row.id)),
    () => {},
  ).flat();
  return id === undefined ? `task number ${seq}` : `task ${id}`;
}

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error));

/** Lets the process show what it does, and be stopped. */
function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
