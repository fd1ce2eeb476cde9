/** What is asked of a store, and what it answers. */

import type { LogEntry } from "../model/event.ts";
import type { Task, TaskState } from "../model/task.ts";

/** Whose tasks: outside the scope no one can find out that they exist. */
export interface Scope {
  readonly agent: string;
  readonly tenant: string;
  readonly owner: string;
}

export interface SnapshotOptions {
  /** The task as it stood at this number; absent: now. Below the floor the current task is given. */
  readonly at?: number;
  /** Newest messages to include, at most. */
  readonly history: number;
  readonly artifacts: boolean;
  /** Of the caller: a task of another scope does not exist, and costs no more than one that does not. */
  readonly scope?: Scope;
}

export interface Snapshot {
  readonly task: Task;
  readonly number: number;
}

export interface Cursor {
  readonly id: string;
  readonly after: number;
}

export type CursorRead =
  | { readonly kind: "entries"; readonly entries: readonly LogEntry[] }
  /** The cursor is older than what is kept. */
  | { readonly kind: "compacted"; readonly floor: number }
  | { readonly kind: "missing" };

/** Position in the order (status timestamp, id), newest first. */
export interface ListPosition {
  readonly timestamp: number;
  readonly id: string;
  /**
   * What the store calls the state of the list when its first page was read; of no meaning to others. A single-writer
   * store counts commits, PostgreSQL has `pg_current_snapshot()`: no order of commits across nodes is needed. One that
   * the store does not recognise counts as the present.
   */
  readonly view: string;
}

/** For at least this long positions that tasks have left are kept for lists that began before. */
export const LIST_VIEW_MS = 60 * 60_000;

export interface ListQuery extends Scope {
  readonly contextId?: string | undefined;
  readonly state?: TaskState | undefined;
  /** Status timestamp at or after this, in milliseconds. */
  readonly since?: number | undefined;
  readonly limit: number;
  /** A page also ends before a task that would make it longer than this, in characters and roughly; not before its first. */
  readonly maxCharacters?: number;
  readonly after?: ListPosition;
  readonly history: number;
  readonly artifacts: boolean;
  /** No `next`, for which positions of tasks would have to be kept; `total` has no meaning. */
  readonly firstPageOnly?: boolean;
}

export interface ListPage {
  readonly tasks: readonly Task[];
  /** Matches before paging; above `MAX_COUNTED` an index range is not counted further. May lag, see `storedBytes`. */
  readonly total: number;
  /** Absent on the last page. */
  readonly next?: ListPosition;
}

/** Filters that no counter covers are counted up to here. */
export const MAX_COUNTED = 10_000;
