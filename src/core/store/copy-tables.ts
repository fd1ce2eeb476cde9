/** What a store consists of, as both databases store it: texts and codes are the same, so that rows can be copied as they are. */

type ColumnType = "number" | "text";

export interface CopiedTable {
  readonly name: string;
  /** Rows are read in this order, and each page after the last row of the one before. */
  readonly key: readonly string[];
  readonly columns: Readonly<Record<string, ColumnType>>;
  /** Rows at a time: those that hold what was said may be large. */
  readonly page: number;
}

const NUMBER = "number";
const TEXT = "text";

/** In an order in which a reader of the copy always finds what a row refers to. */
export const COPIED_TABLES: readonly CopiedTable[] = [
  { name: "scope", key: ["id"], columns: { id: NUMBER, agent: TEXT, tenant: TEXT, owner: TEXT }, page: 500 },
  {
    name: "task",
    key: ["seq"],
    columns: {
      seq: NUMBER,
      id: TEXT,
      scope: NUMBER,
      context: TEXT,
      state: NUMBER,
      open: NUMBER,
      status: TEXT,
      status_ts: NUMBER,
      created_at: NUMBER,
      ended_at: NUMBER,
      number: NUMBER,
      floor: NUMBER,
      fence: NUMBER,
      turn: NUMBER,
      attempt: NUMBER,
      cancel: NUMBER,
      message_segment: NUMBER,
      dialect: TEXT,
      idempotency_key: TEXT,
      metadata: TEXT,
      deliveries: NUMBER,
      bytes: NUMBER,
    },
    page: 500,
  },
  {
    name: "segment",
    key: ["task", "last"],
    columns: { task: NUMBER, last: NUMBER, first: NUMBER, earlier: NUMBER, terminal: NUMBER, body: TEXT },
    page: 100,
  },
  { name: "snapshot", key: ["task", "part"], columns: { task: NUMBER, part: NUMBER, body: TEXT }, page: 100 },
  { name: "memory", key: ["task", "key"], columns: { task: NUMBER, key: TEXT, value: TEXT }, page: 100 },
  {
    name: "idempotency",
    key: ["scope", "key"],
    columns: { scope: NUMBER, key: TEXT, fingerprint: TEXT, task_id: TEXT, reply: TEXT, expires_at: NUMBER },
    page: 500,
  },
  {
    name: "delivery",
    key: ["place"],
    columns: {
      place: NUMBER,
      task: NUMBER,
      id: TEXT,
      route: TEXT,
      address: TEXT,
      secret: TEXT,
      dialect: TEXT,
      wants: NUMBER,
      created_at: NUMBER,
      cursor: NUMBER,
      due_at: NUMBER,
      dead_at: NUMBER,
      attempts: NUMBER,
      last_error: TEXT,
      lane: TEXT,
      claim: NUMBER,
    },
    page: 500,
  },
  {
    name: "record",
    key: ["space", "key"],
    columns: { space: TEXT, key: TEXT, value: TEXT, expires_at: NUMBER, written: NUMBER },
    page: 500,
  },
];

export type CopiedRow = Readonly<Record<string, string | number | null>>;

export interface CopySource {
  readonly description: string;
  /** Pages of rows. Columns that only one database has are left out. */
  read(table: CopiedTable): AsyncIterable<readonly CopiedRow[]> | Iterable<readonly CopiedRow[]>;
  close(): Promise<void>;
}

/** Nothing of a copy is there before `commit`. */
export interface CopyTarget {
  readonly description: string;
  write(table: CopiedTable, rows: readonly CopiedRow[]): Promise<void>;
  commit(): Promise<void>;
  close(): Promise<void>;
}
