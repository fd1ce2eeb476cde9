import type { TaskStatus } from "../../model/task.ts";
import type { Scope, TaskHead } from "../contract.ts";
import { StoreError } from "../errors.ts";
import { parseJson, unescapeText } from "../stored-text.ts";

/** Text as a query gives it: bytes, because a native driver may end the process over text that is not UTF-8. */
export type StoredText = ArrayBuffer | Uint8Array;

export function fromText(stored: StoredText): string {
  return unescapeText(decodeText(stored));
}

export function textOrUndefined(stored: StoredText | null | undefined): string | undefined {
  return stored === null || stored === undefined ? undefined : fromText(stored);
}

/** Refuses what was never written: bytes that are not UTF-8, and NULs, with which lost pages are filled. */
export function decodeText(stored: StoredText): string {
  const text = decodeUtf8(stored);
  if (text.includes("\0")) throw new StoreError("damaged", "A text contains NUL.");
  return text;
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function decodeUtf8(stored: StoredText): string {
  try {
    return decoder.decode(stored);
  } catch (cause) {
    throw new StoreError("damaged", "A text is not UTF-8.", { cause });
  }
}

export function decodeJson(stored: StoredText): unknown {
  return parseJson(decodeText(stored));
}

/**
 * The columns of a query, given as `a, t.b, t.c AS d`. A damaged row may hold a value of any type in any column, so each
 * is cast to the one it must have; text to bytes. A term of `ORDER BY` must name the table, else it means the cast.
 */
export function columns(numbers: string, texts = ""): string {
  return [...cast(numbers, "NUMERIC"), ...cast(texts, "BLOB")].join(", ");
}

function cast(list: string, type: "NUMERIC" | "BLOB"): string[] {
  if (list === "") return [];
  return list.split(", ").map((column) => {
    const [expression = "", name = expression.replace(/^\w+\./, "")] = column.split(" AS ");
    return `CAST(${expression} AS ${type}) AS ${name}`;
  });
}

/**
 * Columns as one text, with NULs between them, which no column contains: a driver takes longer for each value, and far
 * longer for each row, than SQLite does for joining them. NULL becomes the empty text.
 */
export function packColumns(list: string): string {
  return list
    .split(", ")
    .map((column) => `coalesce(${column}, '')`)
    .join(" || char(0) || ");
}

/** The rows of a query for a `packed` text of `width` columns, or for many such that were joined by NULs. */
export function unpackRows(stored: StoredText | null, width: number): string[][] {
  if (stored === null) return [];
  const values = decodeUtf8(stored).split("\0");
  if (values.length % width !== 0) throw new StoreError("damaged", "A row has more columns than its table.");
  const rows: string[][] = [];
  for (let start = 0; start < values.length; start += width) rows.push(values.slice(start, start + width));
  return rows;
}

function toNumber(text: string | undefined): number {
  const value = Number(text);
  if (text === undefined || text === "" || Number.isNaN(value)) throw new StoreError("damaged", "A number is missing.");
  return value;
}

/**
 * The key of a row that belongs to a task, in SQL: the rows of a task follow each other, by their numbers. One integer,
 * because a key of two columns would be compared as a whole row, and for that SQLite reads all of a large body.
 */
export function keyOf(task: string, number: string): string {
  return `(${task} << ${NUMBER_BITS} | ${number})`;
}

/** The condition for all rows of a task, or those numbered above `after`. A parameter as `task` has to be given twice. */
export function ofTask(task: string, after?: string): string {
  const from = after === undefined ? `key >= ${keyOf(task, "0")}` : `key > ${keyOf(task, after)}`;
  return `${from} AND key < (${task} + 1 << ${NUMBER_BITS})`;
}

/** The number within its task that a key stands for. */
export function numberIn(key: string): string {
  return `(${key} & ${2 ** NUMBER_BITS - 1})`;
}

const NUMBER_BITS = 31;

/** A task as a snapshot needs it. */
export interface TaskRow {
  readonly seq: number;
  readonly number: number;
  readonly floor: number;
  readonly messageSegment: number | undefined;
  /** Where it stands in a list. */
  readonly place: number;
  readonly id: string;
  readonly contextId: string;
  readonly status: string;
  readonly metadata: string | undefined;
}

/**
 * How far the log of a task goes, in a query with the columns of `task`. What is only appended to the log of an open task
 * does not change its row, whose `number` is from the write that last did.
 */
export const LOG_NUMBER = `CASE open WHEN 1 THEN (SELECT ${numberIn("max(key)")} FROM segment WHERE ${ofTask("seq")}) ELSE number END`;

/** Of a table, or a query that has its columns, as one text; `place` says where the task stands. */
export function packedTask(place: string): string {
  return packColumns(`seq, ${LOG_NUMBER}, floor, message_segment, ${place}, id, context, status, metadata`);
}

export function toTaskRows(stored: StoredText | null): TaskRow[] {
  return unpackRows(stored, 9).map(([seq, number, floor, messageSegment, place, ...texts]) => {
    const [id = "", context = "", status = "", metadata] = texts;
    return {
      seq: toNumber(seq),
      number: toNumber(number),
      floor: toNumber(floor),
      messageSegment: messageSegment === "" ? undefined : toNumber(messageSegment),
      place: toNumber(place),
      id: unescapeText(id),
      contextId: unescapeText(context),
      status,
      metadata: metadata === "" ? undefined : metadata,
    };
  });
}

/** The row of a task that runs does not count what was only added to its log since. */
const LOG_BYTES = `bytes + CASE open WHEN 1 THEN (SELECT ifnull(sum(length(CAST(body AS BLOB))),0) FROM segment WHERE ${ofTask("seq", "number")}) ELSE 0 END`;

const packHead = (bytes: string) =>
  packColumns(
    `scope, ${LOG_NUMBER}, floor, fence, turn, attempt, cancel, ${bytes}, created_at, id, context, status, node, dialect`,
  );

/** A row of `task` as one text. The bytes of a task that runs are those of its last change of state or message. */
export const PACKED_HEAD = packHead("bytes");
/** The same for a node that takes the task up, and counts its bytes from there. */
export const PACKED_LEASED_HEAD = packHead(LOG_BYTES);

export function toHead(stored: StoredText, scopeOf: (id: number) => Scope): TaskHead {
  const [values = []] = unpackRows(stored, 14);
  const [scope, number, floor, fence, turn, attempt, cancel, bytes, createdAt, ...texts] = values;
  const [id = "", context = "", status = "", node = "", dialect = ""] = texts;
  const { agent, tenant, owner } = scopeOf(toNumber(scope));
  return {
    agent,
    tenant,
    owner,
    id: unescapeText(id),
    contextId: unescapeText(context),
    status: parseJson(status) as TaskStatus,
    number: toNumber(number),
    floor: toNumber(floor),
    fence: toNumber(fence),
    node: node === "" ? undefined : unescapeText(node),
    turn: toNumber(turn),
    attempt: toNumber(attempt),
    cancelRequested: cancel === "1",
    bytes: toNumber(bytes),
    dialect: unescapeText(dialect),
    createdAt: toNumber(createdAt),
  };
}
