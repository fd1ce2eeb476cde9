import type { RegistryEntry } from "../entry.ts";
import {
  CARD_MEDIA_TYPE,
  type Field,
  type Filter,
  INDEXED_FIELDS,
  type IndexedField,
  isNameless,
  type Listed,
  ORDERS,
  type Order,
  type OrderField,
  type PlainField,
  SharedStrings,
  textsOf,
  toListed,
} from "./listed.ts";
import { OrderedList } from "./ordered-list.ts";
import { Postings, slotOf } from "./postings.ts";
import { type Match, TextIndex, type WeightedText } from "./text-index.ts";

/** Where a page ends: the sort key of its last item and its id. */
export type Position = Pick<Listed, "id"> & Partial<Pick<Listed, "sortName" | "createdAt" | "updatedAt">>;

export interface ListPage {
  readonly items: readonly Listed[];
  readonly hasMore: boolean;
}

type Visible = (listed: Listed) => boolean;

const compareText = (one: string, other: string) => (one < other ? -1 : one > other ? 1 : 0);
const byId = (one: Position, other: Position) => compareText(one.id, other.id);
const COMPARE: Readonly<Record<OrderField, (one: Position, other: Position) => number>> = {
  displayName: (one, other) => compareText(one.sortName ?? "", other.sortName ?? "") || byId(one, other),
  createdAt: (one, other) => (one.createdAt ?? 0) - (other.createdAt ?? 0) || byId(one, other),
  updatedAt: (one, other) => (one.updatedAt ?? 0) - (other.updatedAt ?? 0) || byId(one, other),
};

/** More matches of a filter than this are not sorted: the list, which is, is searched for them. */
const MAX_SORTED = 2_000;
/** Slots of removed entries that are waited for before the index is compacted. */
const MIN_DEAD = 1_024;

/** The agents of a registry in memory: by id, by words, by fields, in order. */
export class SearchIndex {
  readonly #slots = new Map<string, number>();
  #listed: (Listed | undefined)[] = [];
  readonly #text = new TextIndex();
  #fields = new Map<string, Postings>();
  /** Ids by normalised identifier. Nearly all have one id, for which a set would be large. */
  readonly #identifiers = new Map<string, string | Set<string>>();
  readonly #orders = {
    displayName: new OrderedList<Position>(COMPARE.displayName),
    createdAt: new OrderedList<Position>(COMPARE.createdAt),
    updatedAt: new OrderedList<Position>(COMPARE.updatedAt),
  };
  readonly #strings = new SharedStrings();
  #marks = new Uint32Array(1_024);
  #mark = 0;

  get size(): number {
    return this.#slots.size;
  }

  get(id: string): Listed | undefined {
    const slot = this.#slots.get(id);
    return slot === undefined ? undefined : this.#listed[slot];
  }

  values(): readonly Listed[] {
    return this.#listed.filter((listed) => listed !== undefined);
  }

  /** Adds an entry, or replaces the one with its id. */
  put(entry: RegistryEntry): Listed {
    const known = this.get(entry.id);
    const listed = toListed(entry, this.#strings);
    const slot = this.#slots.get(entry.id);
    if (known !== undefined && slot !== undefined && isSameCard(known, listed)) {
      this.#listed[slot] = listed;
      // The lists hold the object itself.
      for (const field of ORDERS) {
        this.#orders[field].delete(known);
        this.#orders[field].add(listed);
      }
      return listed;
    }
    this.remove(entry.id);
    this.#add(listed, textsOf(entry.card));
    return listed;
  }

  remove(id: string): boolean {
    const slot = this.#slots.get(id);
    const listed = slot === undefined ? undefined : this.#listed[slot];
    if (slot === undefined || listed === undefined) return false;
    this.#listed[slot] = undefined;
    this.#slots.delete(id);
    this.#text.remove();
    for (const field of ORDERS) this.#orders[field].delete(listed);
    this.#removeIdentified(listed);
    const dead = this.#listed.length - this.#slots.size;
    if (dead > MIN_DEAD && dead > this.#slots.size) this.#compact();
    return true;
  }

  #add(listed: Listed, texts: readonly WeightedText[]): void {
    const slot = this.#listed.length;
    this.#listed.push(listed);
    this.#slots.set(listed.id, slot);
    this.#text.add(slot, texts);
    for (const field of ORDERS) this.#orders[field].add(listed);
    this.#addIdentified(listed);
    for (const field of INDEXED_FIELDS) {
      for (const value of new Set(listed.facets[field].map(normalise))) {
        const key = `${field} ${value}`;
        const known = this.#fields.get(key) ?? new Postings(1);
        known.add(slot, 0);
        this.#fields.set(key, known);
      }
    }
    if (slot >= this.#marks.length) {
      const larger = new Uint32Array(this.#marks.length * 2);
      larger.set(this.#marks);
      this.#marks = larger;
    }
  }

  #addIdentified({ id, identifier }: Listed): void {
    const key = normalise(identifier);
    const known = this.#identifiers.get(key);
    if (known === undefined) this.#identifiers.set(key, id);
    else if (typeof known === "string") this.#identifiers.set(key, new Set([known, id]));
    else known.add(id);
  }

  #removeIdentified({ id, identifier }: Listed): void {
    const key = normalise(identifier);
    const known = this.#identifiers.get(key);
    if (typeof known === "object") known.delete(id);
    if (known === id || (typeof known === "object" && known.size === 0)) this.#identifiers.delete(key);
  }

  #identifiedBy(identifier: string): readonly string[] {
    const known = this.#identifiers.get(normalise(identifier)) ?? [];
    return typeof known === "string" ? [known] : [...known];
  }

  #compact(): void {
    const newSlot = new Int32Array(this.#listed.length).fill(-1);
    const kept: Listed[] = [];
    for (const [slot, listed] of this.#listed.entries()) {
      if (listed === undefined) continue;
      newSlot[slot] = kept.length;
      this.#slots.set(listed.id, kept.length);
      kept.push(listed);
    }
    this.#listed = kept;
    this.#text.remap(newSlot);
    const fields = [...this.#fields].map(([key, postings]) => [key, postings.remapped(newSlot)] as const);
    this.#fields = new Map(fields.filter(([, { length }]) => length > 0));
    this.#marks.fill(0);
    this.#mark = 0;
  }

  /** The relevant entries, best first, those after a position; undefined if the text has no words. */
  search(
    text: string,
    filter: Filter,
    visible: Visible,
    page: { readonly size: number; readonly after?: RankedPosition | undefined },
  ): { readonly items: readonly RankedListed[]; readonly hasMore: boolean } | undefined {
    const accept = this.#accepting(filter, visible, this.#markSlots(filter.terms));
    const matches = this.#text.search(text, accept);
    if (matches === undefined) return undefined;
    const ranked = this.#rank(matches, page.size + 1, page.after);
    return { items: ranked.slice(0, page.size), hasMore: ranked.length > page.size };
  }

  #rank(matches: readonly Match[], size: number, after: RankedPosition | undefined): readonly RankedListed[] {
    const best: RankedListed[] = [];
    for (const { slot, score } of matches) {
      const listed = this.#listed[slot] as Listed;
      const candidate = { score: isNameless(listed.displayName) ? score * NAMELESS_FACTOR : score, listed };
      if (after !== undefined && byRank(candidate, { score: after.score, listed: after }) <= 0) continue;
      const last = best[size - 1];
      if (last !== undefined && byRank(candidate, last) >= 0) continue;
      let at = Math.min(best.length, size - 1);
      while (at > 0 && byRank(candidate, best[at - 1] as RankedListed) < 0) at--;
      best.splice(at, 0, candidate);
      if (best.length > size) best.pop();
    }
    return best;
  }

  list(filter: Filter, visible: Visible, order: Order, size: number, after: Position | undefined): ListPage {
    const accept = this.#accepting(filter, visible);
    const few = this.#fewCandidates(filter, accept);
    const found =
      few === undefined ? this.#walk(accept, order, size + 1, after) : sortPage(few, order, size + 1, after);
    return { items: found.slice(0, size), hasMore: found.length > size };
  }

  /** The entries that a filter selects, if they are few. */
  #fewCandidates({ terms }: Filter, accept: (slot: number) => boolean): readonly Listed[] | undefined {
    const identifiers = terms.find(({ field }) => field === "identifier")?.values;
    if (identifiers !== undefined) {
      const ids = new Set(identifiers.flatMap((identifier) => this.#identifiedBy(identifier)));
      const slots = [...ids].flatMap((id) => this.#slots.get(id) ?? []);
      return slots.filter(accept).map((slot) => this.#listed[slot] as Listed);
    }
    const [first] = terms.flatMap(({ field, values }) => (isIndexed(field) ? [this.#postingsOf(field, values)] : []));
    if (first === undefined) return undefined;
    if (first.reduce((sum, { length }) => sum + length, 0) > MAX_SORTED) return undefined;
    const slots = new Set(first.flatMap((postings) => slotsOf(postings)));
    return [...slots].flatMap((slot) => (accept(slot) ? [this.#listed[slot] as Listed] : []));
  }

  #walk(
    accept: (slot: number) => boolean,
    { field, descending }: Order,
    size: number,
    after: Position | undefined,
  ): readonly Listed[] {
    const list = this.#orders[field];
    const step = descending ? -1 : 1;
    let at = descending ? list.length - 1 : 0;
    if (after !== undefined) {
      at = list.indexOf(after);
      const found = list.at(at);
      if (descending) at--;
      else if (found !== undefined && COMPARE[field](found, after) === 0) at++;
    }
    const items: Listed[] = [];
    for (; at >= 0 && at < list.length && items.length < size; at += step) {
      const listed = list.at(at) as Listed;
      if (accept(this.#slots.get(listed.id) as number)) items.push(listed);
    }
    return items;
  }

  /** Everything that matches, for aggregation. */
  matching(text: string | undefined, filter: Filter, visible: Visible): readonly Listed[] | undefined {
    const accept = this.#accepting(filter, visible, this.#markSlots(filter.terms));
    if (text !== undefined) {
      return this.#text.search(text, accept)?.map(({ slot }) => this.#listed[slot] as Listed);
    }
    return this.#listed.filter((listed, slot): listed is Listed => listed !== undefined && accept(slot));
  }

  /**
   * Whether the entry of a slot exists, fulfils the filter and may be seen. With the mark of the indexed conditions it is
   * valid until the next marking; without one they are checked entry by entry, which is cheaper for a page of a list.
   */
  #accepting(
    { terms, createdAfter, updatedAfter }: Filter,
    visible: Visible,
    wanted?: number,
  ): (slot: number) => boolean {
    const checked = terms.flatMap(({ field, values }) =>
      wanted !== undefined && isIndexed(field) ? [] : [{ field, values: new Set(values.map(normalise)) }],
    );
    const hasConditions = checked.length > 0 || createdAfter !== undefined || updatedAfter !== undefined;
    return (slot) => {
      const listed = this.#listed[slot];
      if (listed === undefined || (wanted !== undefined && this.#marks[slot] !== wanted) || !visible(listed)) {
        return false;
      }
      if (!hasConditions) return true;
      if (createdAfter !== undefined && listed.createdAt <= createdAfter) return false;
      if (updatedAfter !== undefined && listed.updatedAt <= updatedAfter) return false;
      return checked.every(({ field, values }) =>
        valuesOf(listed, field).some((value) => values.has(normalise(value))),
      );
    };
  }

  /** Marks the slots that have a value of every indexed condition; returns the mark. */
  #markSlots(terms: Filter["terms"]): number | undefined {
    const conditions = terms.flatMap(({ field, values }) =>
      isIndexed(field) ? [this.#postingsOf(field, values)] : [],
    );
    if (conditions.length === 0) return undefined;
    if (this.#mark > 2 ** 31) {
      this.#marks.fill(0);
      this.#mark = 0;
    }
    const marks = this.#marks;
    for (const [at, lists] of conditions.entries()) {
      const before = this.#mark;
      this.#mark++;
      for (const postings of lists) {
        const { data, length } = postings.read();
        for (let index = 0; index < length; index++) {
          const slot = slotOf(data[index] as number);
          if (at === 0 || marks[slot] === before) marks[slot] = this.#mark;
        }
      }
    }
    return this.#mark;
  }

  #postingsOf(field: IndexedField, values: readonly string[]): readonly Postings[] {
    return values.flatMap((value) => this.#fields.get(`${field} ${normalise(value)}`) ?? []);
  }
}

/** Below every other match: a match is relevant only if it has a part of the best score that is larger than this. */
const NAMELESS_FACTOR = 0.001;

interface RankedListed {
  readonly score: number;
  readonly listed: Listed;
}

interface RankedPosition {
  readonly score: number;
  readonly id: string;
}

function byRank(
  one: RankedListed,
  other: { readonly score: number; readonly listed: { readonly id: string } },
): number {
  return other.score - one.score || byId(one.listed, other.listed);
}

function sortPage(
  items: readonly Listed[],
  { field, descending }: Order,
  size: number,
  after: Position | undefined,
): readonly Listed[] {
  const sign = descending ? -1 : 1;
  const compare = (one: Position, other: Position) => sign * COMPARE[field](one, other);
  const rest = after === undefined ? items : items.filter((item) => compare(item, after) > 0);
  return [...rest].sort(compare).slice(0, size);
}

function slotsOf(postings: Postings): readonly number[] {
  const { data, length } = postings.read();
  return Array.from(data.subarray(0, length), slotOf);
}

function isIndexed(field: Field): field is IndexedField {
  return (INDEXED_FIELDS as readonly string[]).includes(field);
}

/** Filters compare without regard to case. */
function normalise(value: string): string {
  return value.toLowerCase();
}

function valuesOf(listed: Listed, field: Field): readonly string[] {
  return isIndexed(field) ? listed.facets[field] : [plainValue(listed, field)];
}

export function plainValue(listed: Listed, field: PlainField): string {
  return field === "type" ? CARD_MEDIA_TYPE : listed[field];
}

function isSameCard(one: Listed, other: Listed): boolean {
  return one.updatedAt === other.updatedAt && one.identifier === other.identifier;
}
