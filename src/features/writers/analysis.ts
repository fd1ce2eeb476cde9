import { type Block, splitBlocks } from "./blocks.ts";
import { detectLanguage, type Language } from "./language.ts";
import { cleanInline, isWide } from "./plain-text.ts";
import { type Sentence, sampleEvenly, splitSentences, splitWords, type Word } from "./segment.ts";

/** The analysis of a text, from which outline, article and summary are derived. */
export interface Analysis {
  readonly text: string;
  readonly language: Language;
  readonly blocks: readonly Block[];
  /** Number of sentences in the source. */
  readonly total: number;
  /** The analysed sentences: all of them, or an even sample of a long text. */
  readonly sentences: readonly Sentence[];
  readonly words: readonly (readonly Word[])[];
  readonly ranking: Ranking;
}

export interface SourceSection {
  readonly title: string;
  /** Indexes into the analysed sentences, in order. */
  readonly sentences: readonly number[];
  /** Headings below this section's own. */
  readonly subtitles: readonly string[];
  /** Where its text, without its heading, is in the source. */
  readonly start: number;
  readonly end: number;
}

export function analyse(text: string): Analysis {
  const language = detectLanguage(text);
  const blocks = splitBlocks(text);
  const all = splitSentences(text, blocks);
  const sentences = sampleEvenly(all, MAX_RANKED_SENTENCES);
  const words = sentences.map(({ start, end }) => splitWords(text.slice(start, end), language));
  return { text, language, blocks, total: all.length, sentences, words, ranking: rankSentences(words) };
}

export function sentenceText({ text, sentences }: Analysis, index: number): string {
  const sentence = sentences[index];
  return sentence === undefined ? "" : cleanInline(text.slice(sentence.start, sentence.end));
}

/** Ranking compares every pair of sentences; this limits it to 80,000 pairs for any source. */
export const MAX_RANKED_SENTENCES = 400;
const DAMPING = 0.85;
const MAX_ROUNDS = 50;
const CONVERGENCE = 1e-6;

type Terms = ReadonlyMap<string, number>;

interface Ranking {
  /** One score per sentence; the average is 1. */
  readonly scores: readonly number[];
  /** 0 (no shared words) to 1 (the same words). */
  similarity(left: number, right: number): number;
}

/**
 * TextRank: a sentence is important if important sentences share its words. Words shared by many sentences count less,
 * otherwise a subject named everywhere would make all sentences equal.
 */
export function rankSentences(sentences: readonly (readonly Word[])[]): Ranking {
  const terms = weighTerms(sentences);
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
  return { scores: [...iterateScores(sentences.length, similarity)], similarity };
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

function iterateScores(size: number, similarity: (left: number, right: number) => number): Float64Array {
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
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    const next = new Float64Array(size).fill(1 - DAMPING);
    for (let from = 0; from < size; from += 1) {
      if (totals[from] === 0) continue;
      const share = (DAMPING * scores[from]!) / totals[from]!;
      for (let to = 0; to < size; to += 1) next[to]! += share * weights[from * size + to]!;
    }
    const change = next.reduce((most, score, index) => Math.max(most, Math.abs(score - scores[index]!)), 0);
    scores = next;
    if (change < CONVERGENCE) break;
  }
  return scores;
}

export function sum<T>(values: Iterable<T>, of: (value: T) => number): number {
  let total = 0;
  for (const value of values) total += of(value);
  return total;
}

/** Indexes by descending score; equal scores are in source order. */
export function byScore(scores: readonly number[]): number[] {
  // Rounding makes the order independent of floating-point error.
  const rounded = scores.map((score) => Math.round(score * 1e9));
  return rounded.map((_, index) => index).sort((a, b) => rounded[b]! - rounded[a]! || a - b);
}

export interface Keyword {
  readonly text: string;
  readonly key: string;
  readonly weight: number;
}

interface Phrase {
  readonly key: string;
  readonly parts: readonly string[];
  /** Count of each spelling; a capital at the start of a sentence does not count as a separate spelling. */
  readonly spellings: Map<string, number>;
  readonly first: number;
  count: number;
}

const MAX_PHRASE_WORDS = 3;
/** Weight of a phrase of one, two, three words: longer phrases are more specific. */
const PHRASE_WEIGHT = [0, 1, 1.7, 2.2] as const;

/** Words and repeated phrases by descending weight; ties are in source order. */
export function findKeywords(sentences: readonly (readonly Word[])[], language: Language, limit: number): Keyword[] {
  const candidates = collectPhrases(sentences, language);
  const ranked = [...candidates.values()]
    .filter(({ parts, count }) => parts.length === 1 || count >= 2)
    .map((candidate) => ({ candidate, weight: weightOf(candidate) }))
    .sort((a, b) => b.weight - a.weight || a.candidate.first - b.candidate.first);

  const chosen: Keyword[] = [];
  const covered = new Map<string, number>();
  for (const { candidate, weight } of ranked) {
    if (chosen.length >= limit) break;
    // "learning" next to "machine learning" adds nothing unless it also occurs often without it.
    const coveredCount = Math.max(...candidate.parts.map((part) => covered.get(part) ?? 0));
    if (coveredCount > 0 && candidate.count < 2 * coveredCount) continue;
    for (const part of candidate.parts) covered.set(part, Math.max(covered.get(part) ?? 0, candidate.count));
    chosen.push({ text: usualSpelling(candidate), key: candidate.key, weight });
  }
  return chosen;
}

function collectPhrases(sentences: readonly (readonly Word[])[], language: Language): Map<string, Phrase> {
  const candidates = new Map<string, Phrase>();
  let position = 0;
  for (const words of sentences) {
    words.forEach((_, start) => {
      position += 1;
      for (let length = 1; length <= MAX_PHRASE_WORDS && start + length <= words.length; length += 1) {
        const phrase = words.slice(start, start + length);
        const last = phrase[length - 1]!;
        if (last.stop || (length > 1 && !last.joined)) break;
        addPhrase(candidates, phrase, position, start === 0, language);
      }
    });
  }
  return candidates;
}

function addPhrase(
  candidates: Map<string, Phrase>,
  phrase: readonly Word[],
  position: number,
  opensSentence: boolean,
  language: Language,
): void {
  const parts = phrase.map((word) => word.key);
  const key = parts.join(" ");
  let candidate = candidates.get(key);
  if (candidate === undefined) {
    candidate = { key, parts, spellings: new Map(), first: position, count: 0 };
    candidates.set(key, candidate);
  }
  candidate.count += 1;
  const spelling = phrase.reduce(
    (text, word) => (text === "" ? word.text : text + gapInPhrase(text, word.text) + word.text),
    "",
  );
  const neutral = opensSentence && language === "en" && /^\p{Lu}\p{Ll}+/u.test(spelling);
  const shown = neutral ? spelling.charAt(0).toLowerCase() + spelling.slice(1) : spelling;
  candidate.spellings.set(shown, (candidate.spellings.get(shown) ?? 0) + (neutral ? 0.5 : 1));
}

function gapInPhrase(left: string, right: string): string {
  return isWide(left.charAt(left.length - 1)) && isWide(right.charAt(0)) ? "" : " ";
}

function weightOf({ parts, count }: Phrase): number {
  return count * (PHRASE_WEIGHT[parts.length] ?? 1);
}

function usualSpelling({ spellings, key }: Phrase): string {
  let best = key;
  let most = 0;
  for (const [spelling, count] of spellings) {
    if (count > most) [best, most] = [spelling, count];
  }
  return best;
}
