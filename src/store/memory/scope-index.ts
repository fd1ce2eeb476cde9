import type { TaskState } from "../../model/state.ts";
import { COUNT_BOUND, type IdempotencyRecord, type ListPosition, type ListQuery, type Scope } from "../contract.ts";
import { comparePlaces, isBefore, lowerBound, type Place, PlaceList } from "./place-list.ts";
import type { TaskRecord } from "./task-record.ts";

/** A task left its place: a walk that began before must still find it there. */
interface Move {
  readonly stamp: number;
  readonly from: Place;
}

export interface RetainedKey {
  record: IdempotencyRecord;
  readonly expiresAt: number;
}

/** The tasks of one scope in their orders. By state there is a list each; all tasks together are those lists merged. */
export class ScopeIndex {
  readonly agent: string;
  readonly tenant: string;
  readonly owner: string;
  readonly keys = new Map<string, RetainedKey>();
  readonly #byState = new Map<TaskState, PlaceList>();
  /** Made when somebody first asks by context. Most contexts have one task, which then stands for the list. */
  #byContext: Map<string, TaskRecord | PlaceList> | undefined;
  #moves: Move[] = [];

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

  listOf(state: TaskState): PlaceList | undefined {
    return this.#byState.get(state);
  }

  add(record: TaskRecord, timestamp: number): void {
    const place: Place = { timestamp, record, stamp: record.createdStamp };
    record.place = place;
    this.#stateList(record.status.state).insert(place);
    if (this.#byContext !== undefined) addToContext(this.#byContext, place);
  }

  /** The record's status has changed from one of state `before`. */
  move(record: TaskRecord, before: TaskState, timestamp: number, stamp: number): void {
    const from = record.place as Place;
    const place: Place = { timestamp, record, stamp };
    record.place = place;
    this.#byState.get(before)?.leave();
    this.#stateList(record.status.state).insert(place);
    const context = this.#byContext?.get(record.contextId);
    if (context instanceof PlaceList) {
      context.insert(place);
      context.leave();
    }
    // Moves within the commit that put it there cannot be seen by any walk.
    if (from.stamp < stamp) this.#moves.push({ stamp, from });
  }

  remove(record: TaskRecord): void {
    record.place = undefined;
    this.#byState.get(record.status.state)?.leave();
    const context = this.#byContext?.get(record.contextId);
    if (context instanceof PlaceList) context.leave();
    if (!(context instanceof PlaceList) || context.size === 0) this.#byContext?.delete(record.contextId);
  }

  /** Tasks that are gone need no place in any walk. */
  forgetMoves(): void {
    this.#moves = this.#moves.filter(({ from }) => from.record.place !== undefined);
  }

  /** One more than asked, if there are more; with the position each has in the walk. */
  page(query: ListQuery): readonly { readonly record: TaskRecord; readonly timestamp: number }[] {
    const { after, limit, since = Number.NEGATIVE_INFINITY } = query;
    const found: Place[] = [];
    const moved = after === undefined ? [] : this.#moved(query, after);
    let nextMoved = moved.length - 1;
    for (const place of merged(this.#lists(query), after)) {
      if (found.length > limit || place.timestamp < since) break;
      if (after !== undefined && place.stamp > after.stamp) continue;
      if (!matches(query, place.record)) continue;
      while (nextMoved >= 0 && comparePlaces(moved[nextMoved] as Place, place) > 0) {
        found.push(moved[nextMoved--] as Place);
      }
      found.push(place);
    }
    while (nextMoved >= 0) found.push(moved[nextMoved--] as Place);
    return found.slice(0, limit + 1);
  }

  total(query: ListQuery): number {
    const { contextId, state, since } = query;
    if (contextId === undefined && since === undefined) {
      return state === undefined ? this.size : (this.#byState.get(state)?.size ?? 0);
    }
    if (contextId === undefined && since !== undefined) {
      let sum = 0;
      for (const list of this.#lists(query)) {
        if (list instanceof PlaceList) for (const _ of list.ascending(since)) if (++sum === COUNT_BOUND) return sum;
      }
      return sum;
    }
    let sum = 0;
    for (const place of merged(this.#lists(query), undefined)) {
      if (since !== undefined && place.timestamp < since) break;
      if (matches(query, place.record) && ++sum === COUNT_BOUND) break;
    }
    return sum;
  }

  #stateList(state: TaskState): PlaceList {
    let list = this.#byState.get(state);
    if (list === undefined) {
      list = new PlaceList();
      this.#byState.set(state, list);
    }
    return list;
  }

  #contexts(): Map<string, TaskRecord | PlaceList> {
    if (this.#byContext === undefined) {
      this.#byContext = new Map();
      for (const place of merged([...this.#byState.values()], undefined)) addToContext(this.#byContext, place);
    }
    return this.#byContext;
  }

  #lists(query: ListQuery): (PlaceList | TaskRecord)[] {
    if (query.contextId !== undefined) return present(this.#contexts().get(query.contextId));
    if (query.state !== undefined) return present(this.#byState.get(query.state));
    return [...this.#byState.values()];
  }

  /** Tasks that stood after the position when the walk began and have moved since, ascending. */
  #moved(query: ListQuery, after: ListPosition): Place[] {
    const met = new Set<TaskRecord>();
    const found: Place[] = [];
    const start = lowerBound(this.#moves, (move) => move.stamp <= after.stamp);
    for (let index = start; index < this.#moves.length; index++) {
      const { from } = this.#moves[index] as Move;
      const { record, timestamp } = from;
      if (record.place === undefined || record.createdStamp > after.stamp || met.has(record)) continue;
      met.add(record);
      if (!isBefore(timestamp, record.id, after) || !matches(query, record)) continue;
      if (query.since === undefined || timestamp >= query.since) found.push(from);
    }
    return found.sort(comparePlaces);
  }
}

function matches(query: ListQuery, record: TaskRecord): boolean {
  return (
    (query.state === undefined || record.status.state === query.state) &&
    (query.contextId === undefined || record.contextId === query.contextId)
  );
}

function present<T>(item: T | undefined): T[] {
  return item === undefined ? [] : [item];
}

/** Several descending orders as one. */
function* merged(lists: readonly (PlaceList | TaskRecord)[], before: ListPosition | undefined): Generator<Place> {
  const sources: { next: Place; rest: Iterator<Place> }[] = [];
  for (const list of lists) {
    const rest = list instanceof PlaceList ? list.descending(before) : single(list, before);
    const first = rest.next();
    if (first.done !== true) sources.push({ next: first.value, rest });
  }
  while (sources.length > 0) {
    let newest = 0;
    for (let index = 1; index < sources.length; index++) {
      const [one, other] = [sources[index], sources[newest]] as [{ next: Place }, { next: Place }];
      if (comparePlaces(one.next, other.next) > 0) newest = index;
    }
    const source = sources[newest] as { next: Place; rest: Iterator<Place> };
    yield source.next;
    const following = source.rest.next();
    if (following.done === true) sources.splice(newest, 1);
    else source.next = following.value;
  }
}

function* single({ place }: TaskRecord, before: ListPosition | undefined): Generator<Place> {
  if (place !== undefined && (before === undefined || isBefore(place.timestamp, place.record.id, before))) yield place;
}

function addToContext(byContext: Map<string, TaskRecord | PlaceList>, place: Place): void {
  const { contextId } = place.record;
  const known = byContext.get(contextId);
  if (known === undefined) byContext.set(contextId, place.record);
  else if (known instanceof PlaceList) known.insert(place);
  else {
    const list = new PlaceList();
    list.insert(known.place as Place);
    list.insert(place);
    byContext.set(contextId, list);
  }
}
