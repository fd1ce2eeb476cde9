import { impactOf, MAX_IMPACT, Postings, slotOf, toPosting } from "./postings.ts";
import { asciiWords, termOf, tokenize } from "./tokenize.ts";

/** A text of a document and how much its words count. */
export interface WeightedText {
  readonly text: string;
  readonly weight: number;
}

/** A document in the order of relevance. */
export interface Match {
  readonly slot: number;
  /** Above 0; comparable within one query. */
  readonly score: number;
}

/** BM25 with its usual constants. The average length is fixed, so that an impact never has to be computed again. */
const SATURATION = 1.2;
const LENGTH_NORMALISATION = 0.5;
const AVERAGE_LENGTH = 120;

const MAX_QUERY_TERMS = 32;
/** How many matches are ranked; those beyond have less weighty words in common with the query. */
const MAX_RANKED = 5_000;
/** How many postings are read in the order of their impacts. */
const MAX_READ = 100_000;
/** A match is relevant if it has at least this part of the score of the best. */
const CUTOFF = 0.2;

/** Of a word that says nothing. */
const NO_TERM = -1;
const MAX_KNOWN = 50_000;

interface QueryTerm {
  readonly weight: number;
  readonly data: Uint32Array;
  /** The posting that is next, downwards. */
  at: number;
}

/**
 * Ranks documents by BM25, score at a time: the postings of all words of a query are taken in the order of their
 * impacts, and after a fixed number of them the ranking is good enough. So the cost of a query is bounded, however many
 * documents there are.
 */
export class TextIndex {
  /** Terms are numbered, so that the words of a document are counted in an array. */
  #numbers = new Map<string, number>();
  /** By number of the term. A single posting for a term of one document, as most terms are. */
  #postings: (Postings | number)[] = [];
  /** Words as they are written: most are known, and their terms need not be found again. */
  readonly #known = new Map<string, number>();
  /** How often each term occurs in the document that is being added; all are 0 otherwise. */
  #frequencies = new Uint16Array(1_024);
  #scores = new Float64Array(1_024);
  #documents = 0;

  /** `slots` are reused only after `remap`. */
  add(slot: number, texts: readonly WeightedText[]): void {
    const terms: number[] = [];
    let length = 0;
    for (const { text, weight } of texts) {
      const found = this.#termsOf(text);
      const frequencies = this.#frequencies;
      for (const term of found) {
        if (term === NO_TERM) continue;
        const before = frequencies[term] as number;
        if (before === 0) terms.push(term);
        frequencies[term] = before + weight;
        length += weight;
      }
    }
    const norm = SATURATION * (1 - LENGTH_NORMALISATION + (LENGTH_NORMALISATION * length) / AVERAGE_LENGTH);
    for (const term of terms) {
      const frequency = this.#frequencies[term] as number;
      this.#frequencies[term] = 0;
      this.#addPosting(term, slot, Math.max(1, Math.round((MAX_IMPACT * frequency) / (frequency + norm))));
    }
    this.#documents++;
    if (slot >= this.#scores.length) {
      // All are 0 between queries.
      this.#scores = new Float64Array(Math.max(slot + 1, this.#scores.length * 2));
    }
  }

  #termsOf(text: string): readonly number[] {
    const words = asciiWords(text);
    if (words === undefined) return tokenize(text).map((term) => this.#numberOf(term));
    return words.map((word) => {
      const known = this.#known.get(word);
      if (known !== undefined) return known;
      const term = termOf(word);
      const number = term === "" ? NO_TERM : this.#numberOf(term);
      if (this.#known.size < MAX_KNOWN) this.#known.set(word, number);
      return number;
    });
  }

  #numberOf(term: string): number {
    const known = this.#numbers.get(term);
    if (known !== undefined) return known;
    const number = this.#numbers.size;
    this.#numbers.set(term, number);
    if (number >= this.#frequencies.length) {
      const larger = new Uint16Array(this.#frequencies.length * 2);
      larger.set(this.#frequencies);
      this.#frequencies = larger;
    }
    return number;
  }

  #addPosting(term: number, slot: number, impact: number): void {
    const known = this.#postings[term];
    if (known === undefined) this.#postings[term] = toPosting(slot, impact);
    else if (typeof known === "number") {
      const several = new Postings();
      several.add(slotOf(known), impactOf(known));
      several.add(slot, impact);
      this.#postings[term] = several;
    } else known.add(slot, impact);
  }

  /** Call when a document is gone; its postings stay until `remap`. */
  remove(): void {
    this.#documents--;
  }

  /** Moves every document to its new slot; those with a negative one are gone. */
  remap(newSlot: Int32Array): void {
    const [numbers, postings] = [this.#numbers, this.#postings];
    this.#numbers = new Map();
    this.#postings = [];
    this.#known.clear();
    for (const [term, number] of numbers) {
      const list = postings[number] as Postings | number;
      if (typeof list === "number") {
        const slot = newSlot[slotOf(list)] as number;
        if (slot >= 0) this.#postings[this.#numberOf(term)] = toPosting(slot, impactOf(list));
        continue;
      }
      const moved = list.remapped(newSlot);
      if (moved.length > 0) this.#postings[this.#numberOf(term)] = moved;
    }
  }

  /** All relevant documents that are accepted, in no order. Undefined: the text has no words. */
  search(text: string, accept: (slot: number) => boolean): readonly Match[] | undefined {
    const terms = [...new Set(tokenize(text, true))].slice(0, MAX_QUERY_TERMS);
    if (terms.length === 0) return undefined;
    const ranking: Ranking = { scores: this.#scores, found: [], accept };
    const queue: QueryTerm[] = [];
    let ideal = 0;
    for (const term of terms) {
      const list = this.#postings[this.#numbers.get(term) ?? NO_TERM];
      if (list === undefined) continue;
      const frequency = typeof list === "number" ? 1 : list.length;
      const weight = Math.log(1 + (this.#documents - Math.min(frequency, this.#documents) + 0.5) / (frequency + 0.5));
      ideal += weight;
      if (typeof list === "number") {
        rankPosting(ranking, list, weight);
        continue;
      }
      const { data, sorted, length } = list.read();
      for (let at = sorted; at < length; at++) rankPosting(ranking, data[at] as number, weight);
      queue.push({ weight, data, at: sorted - 1 });
    }
    rankByImpact(queue, ranking);
    return takeRelevant(ranking, ideal);
  }
}

interface Ranking {
  /** By slot; 0 for a document that was not found. */
  readonly scores: Float64Array;
  readonly found: number[];
  readonly accept: (slot: number) => boolean;
}

/** Once enough documents are found, only their scores grow. */
function rankPosting({ scores, found, accept }: Ranking, posting: number, weight: number): void {
  const slot = slotOf(posting);
  const before = scores[slot] as number;
  if (before === 0) {
    if (found.length >= MAX_RANKED || !accept(slot)) return;
    found.push(slot);
  }
  scores[slot] = before + weight * impactOf(posting);
}

/** Postings of one impact at a time, those that add most to a score first. */
function rankByImpact(queue: readonly QueryTerm[], ranking: Ranking): void {
  for (let left = MAX_READ; left > 0; ) {
    let next: QueryTerm | undefined;
    let most = 0;
    for (const term of queue) {
      const gain = term.at < 0 ? 0 : term.weight * impactOf(term.data[term.at] as number);
      if (gain > most) {
        next = term;
        most = gain;
      }
    }
    if (next === undefined) return;
    const { data, weight } = next;
    const impact = impactOf(data[next.at] as number);
    let { at } = next;
    for (; at >= 0 && left > 0; at--, left--) {
      const posting = data[at] as number;
      if (impactOf(posting) !== impact) break;
      rankPosting(ranking, posting, weight);
    }
    next.at = at;
  }
}

/** Resets the scores for the next query. */
function takeRelevant({ scores, found }: Ranking, ideal: number): readonly Match[] {
  let best = 0;
  for (const slot of found) best = Math.max(best, scores[slot] as number);
  const matches: Match[] = [];
  for (const slot of found) {
    const score = scores[slot] as number;
    scores[slot] = 0;
    if (score >= best * CUTOFF) matches.push({ slot, score: toRelevance(score, ideal) });
  }
  return matches;
}

/** What a document would need that has every word of the query in its name. */
const IDEAL_PART = 0.75;

/** Between 0 and 1. */
function toRelevance(score: number, ideal: number): number {
  return Math.min(1, score / (ideal * MAX_IMPACT * IDEAL_PART));
}
