import { StoreError } from "../errors.ts";
import type { SqliteDriver } from "./driver.ts";

/** "drgm": tells our files from those of other programs. */
const APPLICATION_ID = 0x6472676d;

/**
 * From each schema version to the next; the first makes the tables. A step, once released, is never changed.
 *
 * Each commit adds one `segment` per task it wrote to, not a row per event. `message_segment` and `earlier` link the
 * segments that hold messages, newest first, so that the end of a long history is found without reading the rest.
 * `past_position` keeps where a task stood in lists before its status changed, for lists whose first page was read
 * between the commits `since` and `until`.
 */
const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE store (one INTEGER PRIMARY KEY CHECK (one = 1), stamp INTEGER NOT NULL, events INTEGER NOT NULL);
  INSERT INTO store VALUES (1, 0, 0);

  CREATE TABLE scope (
    id INTEGER PRIMARY KEY,
    agent TEXT NOT NULL,
    tenant TEXT NOT NULL,
    owner TEXT NOT NULL,
    UNIQUE (owner, tenant, agent)
  );

  CREATE TABLE task (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    scope INTEGER NOT NULL,
    context TEXT NOT NULL,
    state INTEGER NOT NULL,
    open INTEGER NOT NULL,
    status TEXT NOT NULL,
    status_ts INTEGER NOT NULL,
    stamp INTEGER NOT NULL,
    created_stamp INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    number INTEGER NOT NULL,
    floor INTEGER NOT NULL DEFAULT 0,
    fence INTEGER NOT NULL,
    node TEXT,
    turn INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    cancel INTEGER NOT NULL DEFAULT 0,
    message_segment INTEGER,
    dialect TEXT NOT NULL,
    idempotency_key TEXT,
    metadata TEXT
  );
  CREATE INDEX task_by_time ON task (scope, status_ts, id);
  CREATE INDEX task_by_state ON task (scope, state, status_ts, id);
  CREATE INDEX task_by_context ON task (scope, context, status_ts, id, state);
  CREATE INDEX task_moved ON task (scope, stamp) WHERE stamp > created_stamp;
  CREATE INDEX task_open ON task (node, state) WHERE open = 1;
  CREATE INDEX task_whole ON task (status_ts) WHERE open = 0 AND floor = 0;

  CREATE TABLE segment (
    task INTEGER NOT NULL,
    last INTEGER NOT NULL,
    first INTEGER NOT NULL,
    earlier INTEGER,
    terminal INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (task, last)
  ) WITHOUT ROWID;
  CREATE UNIQUE INDEX segment_terminal ON segment (task) WHERE terminal = 1;

  CREATE TABLE snapshot (
    task INTEGER NOT NULL,
    part INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (task, part)
  ) WITHOUT ROWID;

  CREATE TABLE move (
    task INTEGER NOT NULL,
    stamp INTEGER NOT NULL,
    status_ts INTEGER NOT NULL,
    PRIMARY KEY (task, stamp)
  ) WITHOUT ROWID;

  CREATE TABLE memory (
    task INTEGER NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (task, key)
  ) WITHOUT ROWID;

  CREATE TABLE idempotency (
    scope INTEGER NOT NULL,
    key TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    task_id TEXT NOT NULL,
    reply TEXT,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (scope, key)
  ) WITHOUT ROWID;
  CREATE INDEX idempotency_by_expiry ON idempotency (expires_at);

  CREATE TABLE counter (
    scope INTEGER NOT NULL,
    state INTEGER NOT NULL,
    n INTEGER NOT NULL,
    PRIMARY KEY (scope, state)
  ) WITHOUT ROWID;
  `,
  // AUTOINCREMENT: the place of a deleted config is never given to a later one, which a walk might then miss.
  `
  CREATE TABLE push_config (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    task INTEGER NOT NULL,
    id TEXT NOT NULL,
    url TEXT NOT NULL,
    token TEXT,
    authentication TEXT,
    dialect TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    cursor INTEGER NOT NULL
  );
  CREATE UNIQUE INDEX push_config_by_id ON push_config (task, id);
  CREATE INDEX push_config_by_place ON push_config (task, place);
  `,
  // `task.push`: whether the task ever had a config, so that appending to one that had none asks nothing further.
  `
  ALTER TABLE task ADD COLUMN push INTEGER NOT NULL DEFAULT 0;
  UPDATE task SET push = 1 WHERE seq IN (SELECT task FROM push_config);

  ALTER TABLE push_config ADD COLUMN host TEXT NOT NULL DEFAULT '';
  ALTER TABLE push_config ADD COLUMN due_at INTEGER;
  ALTER TABLE push_config ADD COLUMN holder TEXT;
  ALTER TABLE push_config ADD COLUMN claim INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE push_config ADD COLUMN attempts INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE push_config ADD COLUMN last_error TEXT;
  ALTER TABLE push_config ADD COLUMN dead_at INTEGER;
  UPDATE push_config SET due_at = 0 WHERE cursor < (SELECT number FROM task WHERE seq = push_config.task);
  CREATE INDEX push_config_due ON push_config (due_at, host) WHERE due_at IS NOT NULL;
  CREATE INDEX push_config_held ON push_config (holder) WHERE holder IS NOT NULL;
  `,
  // What there is already is counted once, here.
  `
  ALTER TABLE task ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
  UPDATE task SET bytes =
    (SELECT coalesce(sum(length(CAST(body AS BLOB))), 0) FROM segment WHERE segment.task = task.seq)
    + (SELECT coalesce(sum(length(CAST(body AS BLOB))), 0) FROM snapshot WHERE snapshot.task = task.seq);
  CREATE TABLE owner_usage (owner TEXT PRIMARY KEY, bytes INTEGER NOT NULL) WITHOUT ROWID;
  INSERT INTO owner_usage
    SELECT scope.owner, sum(task.bytes) FROM task JOIN scope ON scope.id = task.scope GROUP BY scope.owner;
  `,
  // Past positions in the order of lists, so that a page reads no more of them than of the tasks. `ended_at` is when the
  // store learnt that the task has ended; the timestamp of its status is by another clock.
  `
  ALTER TABLE task ADD COLUMN ended_at INTEGER;
  UPDATE task SET ended_at = status_ts WHERE open = 0;
  DROP INDEX task_whole;
  CREATE INDEX task_ended ON task (floor > 0, ended_at) WHERE open = 0;

  DROP TABLE move;
  DROP INDEX task_moved;
  ALTER TABLE task DROP COLUMN created_stamp;
  CREATE TABLE past_position (
    scope INTEGER NOT NULL,
    status_ts INTEGER NOT NULL,
    id TEXT NOT NULL,
    until INTEGER NOT NULL,
    since INTEGER NOT NULL,
    task INTEGER NOT NULL,
    left_at INTEGER NOT NULL,
    PRIMARY KEY (scope, status_ts, id, until)
  ) WITHOUT ROWID;
  CREATE INDEX past_position_by_age ON past_position (left_at);
  `,
  // A webhook is one route of several. A token that SQLite would not keep as it is was stored as JSON behind a mark.
  `
  ALTER TABLE push_config RENAME TO delivery;
  ALTER TABLE delivery RENAME COLUMN url TO address;
  ALTER TABLE delivery RENAME COLUMN host TO lane;
  ALTER TABLE delivery ADD COLUMN route TEXT NOT NULL DEFAULT 'webhook';
  ALTER TABLE delivery ADD COLUMN wants INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE delivery ADD COLUMN secret TEXT;
  UPDATE delivery SET secret = '{'
      || CASE WHEN token IS NULL THEN '' WHEN substr(token, 1, 1) = char(1) THEN '"token":' || substr(token, 2)
           ELSE '"token":' || json_quote(token) END
      || CASE WHEN token IS NOT NULL AND authentication IS NOT NULL THEN ',' ELSE '' END
      || coalesce('"authentication":' || authentication, '') || '}'
    WHERE token IS NOT NULL OR authentication IS NOT NULL;
  ALTER TABLE delivery DROP COLUMN token;
  ALTER TABLE delivery DROP COLUMN authentication;
  DROP INDEX push_config_by_id;
  DROP INDEX push_config_by_place;
  DROP INDEX push_config_due;
  DROP INDEX push_config_held;
  CREATE UNIQUE INDEX delivery_by_id ON delivery (task, id, (route = 'webhook'));
  CREATE INDEX delivery_by_place ON delivery (task, place);
  CREATE INDEX delivery_due ON delivery (route, due_at, lane) WHERE due_at IS NOT NULL;
  CREATE INDEX delivery_held ON delivery (holder) WHERE holder IS NOT NULL;
  ALTER TABLE task RENAME COLUMN push TO deliveries;

  CREATE TABLE record (
    space TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    expires_at INTEGER,
    written INTEGER NOT NULL,
    PRIMARY KEY (space, key)
  ) WITHOUT ROWID;
  CREATE INDEX record_by_age ON record (space, written);
  CREATE INDEX record_by_expiry ON record (expires_at) WHERE expires_at IS NOT NULL;
  `,
  // The tables stay. From here on the row of an open task may be behind its log, which earlier versions do not expect.
  "",
  // Past positions by what lists are filtered by: the present state of their task, and its context.
  `
  ALTER TABLE past_position ADD COLUMN state INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE past_position ADD COLUMN context TEXT NOT NULL DEFAULT '';
  UPDATE past_position SET state = task.state, context = task.context FROM task WHERE task.seq = past_position.task;
  CREATE INDEX past_position_by_state ON past_position (scope, state, status_ts, id);
  CREATE INDEX past_position_by_context ON past_position (scope, context, status_ts, id);
  CREATE INDEX past_position_by_task ON past_position (task);
  `,
  // `key` is `task << 31 | last`, or `part`. To compare a key of two columns SQLite reads the row it is in, all of it: a
  // row beside a large one took as long to find or add as that one.
  `
  ALTER TABLE segment RENAME TO earlier_segment;
  DROP INDEX segment_terminal;
  CREATE TABLE segment (
    key INTEGER PRIMARY KEY,
    first INTEGER NOT NULL,
    earlier INTEGER,
    terminal INTEGER NOT NULL,
    body TEXT NOT NULL
  );
  INSERT OR IGNORE INTO segment SELECT task << 31 | last, first, earlier, terminal, body FROM earlier_segment ORDER BY task, last;
  CREATE UNIQUE INDEX segment_terminal ON segment (key >> 31) WHERE terminal = 1;
  DROP TABLE earlier_segment;

  ALTER TABLE snapshot RENAME TO earlier_snapshot;
  CREATE TABLE snapshot (key INTEGER PRIMARY KEY, body TEXT NOT NULL);
  INSERT OR IGNORE INTO snapshot SELECT task << 31 | part, body FROM earlier_snapshot ORDER BY task, part;
  DROP TABLE earlier_snapshot;
  `,
];

export const SCHEMA_VERSION = MIGRATIONS.length;

/** The schema version of the file; refuses files that are not ours or come from a later version of the program. */
export function checkSchema(driver: SqliteDriver, file: string): number {
  const version = pragma(driver, "user_version");
  if (pragma(driver, "application_id") !== APPLICATION_ID) {
    const tables = driver.prepare<{ n: number }>("SELECT count(*) AS n FROM sqlite_schema").get()?.n ?? 0;
    if (tables > 0)
      throw new StoreError("not-a-database", `${file} is a database of another program, not a task store.`);
    return 0;
  }
  if (version > SCHEMA_VERSION) {
    throw new StoreError(
      "newer-schema",
      `${file} was written by a newer version of dragoman (schema ${version}; this version knows up to ${SCHEMA_VERSION}).`,
    );
  }
  return version;
}

/** Brings the file from one version up to another, all steps or none. */
export function migrate(driver: SqliteDriver, from: number, to: number = SCHEMA_VERSION): void {
  if (from === to) return;
  driver.exec("BEGIN IMMEDIATE");
  try {
    for (const step of MIGRATIONS.slice(from, to)) driver.exec(step);
    driver.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${to};`);
    driver.exec("COMMIT");
  } catch (error) {
    driver.exec("ROLLBACK");
    throw error;
  }
}

export function pragma(
  driver: SqliteDriver,
  name: "user_version" | "application_id" | "auto_vacuum" | "page_count" | "page_size" | "freelist_count",
): number {
  const row = driver.prepare<Record<string, number>>(`PRAGMA ${name}`).get();
  return row?.[name] ?? 0;
}
