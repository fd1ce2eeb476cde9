import type { Word } from "./segment.ts";

/** Ranking compares every pair of sentences; this bound keeps that at 80,000 pairs however long the source is. */
export const MOST_RANKED_SENTENCES = 400;
const DAMPING = 0.85;
const MOST_ROUNDS = 50;
const SETTLED = 1e-6;

type Terms = ReadonlyMap<string, number>;

export interface Ranking {
  /** One score per sentence; they average 1. */
  readonly scores: readonly number[];
  /** 0 (nothing shared) to 1 (the same words). */
  similarity(left: number, right: number): number;
}

/**
 * TextRank: a sentence matters when sentences that matter share its words. Words that many sentences share count less, otherwise
 * the subject named everywhere would make all sentences equal. Sentences after the first 400 score 0.
 */
export function rankSentences(sentences: readonly (readonly Word[])[]): Ranking {
  const considered = sentences.slice(0, MOST_RANKED_SENTENCES);
  const terms = weighTerms(considered);
  const norms = terms.map((term) => Math.sqrt(sum(term.values(), (weight) => weight * weight)));
  const similarity = (left: number, right: number): number => {
    const a = terms[left];
    const b = terms[right];
    const norm = (norms[left] ?? 0) * (norms[right] ?? 0);
    if (a === undefined || b === undefined || norm === 0) return 0;
    const [small, large] = a.size <= b.size ? [a, b] : [b, a];
    let shared = 0;
    for (const [key, weight] of small) shared += large.has(key) ? weight * weight : 0;
    return shared / norm;
  };
  const scores = iterate(considered.length, similarity);
  return { scores: sentences.map((_, index) => scores[index] ?? 0), similarity };
}

function weighTerms(sentences: readonly (readonly Word[])[]): Terms[] {
  const keys = sentences.map((words) => new Set(words.filter((word) => !word.stop).map((word) => word.key)));
  const spread = new Map<string, number>();
  for (const set of keys) for (const key of set) spread.set(key, (spread.get(key) ?? 0) + 1);
  const total = sentences.length;
  return keys.map(
    (set) => new Map([...set].map((key) => [key, Math.log(1 + total / (spread.get(key) ?? 1))] as const)),
  );
}

function iterate(size: number, similarity: (left: number, right: number) => number): Float64Array {
  const weights = new Float64Array(size * size);
  const totals = new Float64Array(size);
  for (let left = 0; left < size; left += 1) {
    for (let right = left + 1; right < size; right += 1) {
      const weight = similarity(left, right);
      weights[left * size + right] = weight;
      weights[right * size + left] = weight;
      totals[left]! += weight;
      totals[right]! += weight;
    }
  }
  let scores = new Float64Array(size).fill(1);
  for (let round = 0; round < MOST_ROUNDS; round += 1) {
    const next = new Float64Array(size).fill(1 - DAMPING);
    for (let from = 0; from < size; from += 1) {
      if (totals[from] === 0) continue;
      const share = (DAMPING * scores[from]!) / totals[from]!;
      for (let to = 0; to < size; to += 1) next[to]! += share * weights[from * size + to]!;
    }
    const change = next.reduce((most, score, index) => Math.max(most, Math.abs(score - scores[index]!)), 0);
    scores = next;
    if (change < SETTLED) break;
  }
  return scores;
}

function sum(values: Iterable<number>, of: (value: number) => number): number {
  let total = 0;
  for (const value of values) total += of(value);
  return total;
}

/** Indexes by score, the best first; equal scores keep the order of the text. */
export function byScore(scores: readonly number[]): number[] {
  // Rounding keeps the order independent of the last bits of the sums.
  const rounded = scores.map((score) => Math.round(score * 1e9));
  return rounded.map((_, index) => index).sort((a, b) => rounded[b]! - rounded[a]! || a - b);
}
