import type { TaskState } from "../../model/task.ts";
import { type IdempotencyRecord, type ListPosition, type ListQuery, MAX_COUNTED, type Scope } from "../contract.ts";
import { compareEntries, isBefore, isInView, type ListEntry, SortedList } from "./sorted-list.ts";
import type { TaskRecord } from "./task-record.ts";

interface RetainedKey {
  record: IdempotencyRecord;
  readonly expiresAt: number;
}

/** The tasks of one scope in their orders. By state there is a list each; all tasks together are those lists merged. */
export class ScopeIndex {
  readonly agent: string;
  readonly tenant: string;
  readonly owner: string;
  readonly keys = new Map<string, RetainedKey>();
  readonly #byState = new Map<TaskState, SortedList>();
  /** Made at the first query by context. Most contexts have one task, which then stands for the list. */
  #byContext: Map<string, TaskRecord | SortedList> | undefined;

  constructor(scope: Scope) {
    this.agent = scope.agent;
    this.tenant = scope.tenant;
    this.owner = scope.owner;
  }

  isScope(scope: Scope): boolean {
    return this.owner === scope.owner && this.agent === scope.agent && this.tenant === scope.tenant;
  }

  get size(): number {
    let sum = 0;
    for (const list of this.#byState.values()) sum += list.size;
    return sum;
  }

  stateSizes(): Iterable<[TaskState, number]> {
    return [...this.#byState].map(([state, list]) => [state, list.size]);
  }

  add(record: TaskRecord, timestamp: number, commit: number): void {
    const entry: ListEntry = { timestamp, record, since: commit, left: undefined };
    record.listEntry = entry;
    this.#stateList(record.status.state).insert(entry);
    if (this.#byContext !== undefined) addToContext(this.#byContext, entry);
  }

  /** The record's status has changed from one of state `before`. `left`: lists may still show it where it was. */
  move(record: TaskRecord, before: TaskState, timestamp: number, commit: number, left: ListEntry["left"]): void {
    const { timestamp: from, since } = record.listEntry as ListEntry;
    const entry: ListEntry = { timestamp, record, since: commit, left: undefined };
    record.listEntry = entry;
    const list = this.#stateList(record.status.state);
    this.#byState.get(before)?.markRemoved();
    list.insert(entry);
    if (record.pastEntries !== undefined && record.status.state !== before) this.#movePast(record, before, list);
    const past = left === undefined ? undefined : { timestamp: from, record, since, left };
    if (past !== undefined) {
      list.insertPast(past);
      record.pastEntries = [...(record.pastEntries ?? []), past];
    }
    const context = this.#byContext?.get(record.contextId);
    if (context instanceof SortedList) {
      context.insert(entry);
      context.markRemoved();
      if (past !== undefined) context.insertPast({ ...past });
    }
  }

  /** Past positions are with the tasks of the same present state, so that a list by state comes across no others. */
  #movePast(record: TaskRecord, before: TaskState, list: SortedList): void {
    record.pastEntries = record.pastEntries?.map((past) => {
      const moved = { ...past };
      this.#byState.get(before)?.markPastRemoved(past);
      list.insertPast(moved);
      return moved;
    });
  }

  remove(record: TaskRecord): void {
    record.listEntry = undefined;
    this.#byState.get(record.status.state)?.markRemoved();
    const context = this.#byContext?.get(record.contextId);
    if (context instanceof SortedList) context.markRemoved();
    if (!(context instanceof SortedList) || context.size === 0) this.#byContext?.delete(record.contextId);
  }

  /** Positions that tasks left before then are no longer kept for any list. */
  dropPast(before: number): void {
    for (const list of this.#byState.values()) list.dropPast(before);
    for (const list of this.#byContext?.values() ?? []) if (list instanceof SortedList) list.dropPast(before);
  }

  /** One more than asked, if there are more; as they stood at the commit `view`. */
  page(query: ListQuery, view: number | undefined): readonly ListEntry[] {
    const { after, limit, since = Number.NEGATIVE_INFINITY } = query;
    const found: ListEntry[] = [];
    for (const entry of mergeDescending(this.#lists(query), after, view)) {
      if (found.length > limit || entry.timestamp < since) break;
      if (matches(query, entry.record)) found.push(entry);
    }
    return found;
  }

  total(query: ListQuery): number {
    const { contextId, state, since } = query;
    if (contextId === undefined && since === undefined) {
      return state === undefined ? this.size : (this.#byState.get(state)?.size ?? 0);
    }
    if (contextId === undefined && since !== undefined) {
      let sum = 0;
      for (const list of this.#lists(query)) {
        if (list instanceof SortedList) for (const _ of list.ascending(since)) if (++sum === MAX_COUNTED) return sum;
      }
      return sum;
    }
    let sum = 0;
    for (const entry of mergeDescending(this.#lists(query))) {
      if (since !== undefined && entry.timestamp < since) break;
      if (matches(query, entry.record) && ++sum === MAX_COUNTED) break;
    }
    return sum;
  }

  #stateList(state: TaskState): SortedList {
    let list = this.#byState.get(state);
    if (list === undefined) {
      list = new SortedList();
      this.#byState.set(state, list);
    }
    return list;
  }

  #contexts(): Map<string, TaskRecord | SortedList> {
    if (this.#byContext === undefined) {
      this.#byContext = new Map();
      for (const entry of mergeDescending([...this.#byState.values()])) addToContext(this.#byContext, entry);
    }
    return this.#byContext;
  }

  #lists(query: ListQuery): (SortedList | TaskRecord)[] {
    if (query.contextId !== undefined) return toArray(this.#contexts().get(query.contextId));
    if (query.state !== undefined) return toArray(this.#byState.get(query.state));
    return [...this.#byState.values()];
  }
}

function matches(query: ListQuery, record: TaskRecord): boolean {
  return (
    (query.state === undefined || record.status.state === query.state) &&
    (query.contextId === undefined || record.contextId === query.contextId)
  );
}

function toArray<T>(item: T | undefined): T[] {
  return item === undefined ? [] : [item];
}

/** Several descending orders as one. */
function* mergeDescending(
  lists: readonly (SortedList | TaskRecord)[],
  before?: ListPosition,
  view?: number,
): Generator<ListEntry> {
  const sources: { next: ListEntry; rest: Iterator<ListEntry> }[] = [];
  for (const list of lists) {
    const rest = list instanceof SortedList ? list.descending(before, view) : single(list, before, view);
    const first = rest.next();
    if (first.done !== true) sources.push({ next: first.value, rest });
  }
  while (sources.length > 0) {
    let newest = 0;
    for (let index = 1; index < sources.length; index++) {
      const [one, other] = [sources[index], sources[newest]] as [{ next: ListEntry }, { next: ListEntry }];
      if (compareEntries(one.next, other.next) > 0) newest = index;
    }
    const source = sources[newest] as { next: ListEntry; rest: Iterator<ListEntry> };
    yield source.next;
    const following = source.rest.next();
    if (following.done === true) sources.splice(newest, 1);
    else source.next = following.value;
  }
}

function* single({ listEntry: entry }: TaskRecord, before?: ListPosition, view?: number): Generator<ListEntry> {
  if (entry === undefined || !isInView(entry, view)) return;
  if (before === undefined || isBefore(entry.timestamp, entry.record.id, before)) yield entry;
}

function addToContext(byContext: Map<string, TaskRecord | SortedList>, entry: ListEntry): void {
  const { contextId } = entry.record;
  const known = byContext.get(contextId);
  if (known === undefined) byContext.set(contextId, entry.record);
  else if (known instanceof SortedList) known.insert(entry);
  else {
    const list = new SortedList();
    list.insert(known.listEntry as ListEntry);
    list.insert(entry);
    byContext.set(contextId, list);
  }
}
