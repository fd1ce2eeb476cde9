import { type Block, blocksOf } from "./blocks.ts";
import type { Language } from "./language.ts";
import { isWide, safeCut } from "./plain-text.ts";
import { ABBREVIATIONS, STOP_WORDS } from "./stop-words.ts";

/** Offsets of one sentence in the source, and the block it stands in. */
export interface Sentence {
  readonly start: number;
  readonly end: number;
  readonly block: number;
}

export interface Word {
  /** As written. */
  readonly text: string;
  /** Lower case, without English plural and possessive endings: two words with one key are the same word. */
  readonly key: string;
  readonly stop: boolean;
  /** Nothing but a space (or, in Chinese, nothing at all) stands between this word and the one before it. */
  readonly joined: boolean;
}

/** Longer stretches without punctuation are cut, so that every later step works on bounded pieces. */
export const LONGEST_SENTENCE = 400;

const TERMINAL = /[.!?。！？؟۔।｡]/;
const TERMINAL_OR_DOTS = /[.!?。！？؟۔।｡…]/;
const CLOSER = /["'”’」』）)\]】»›*_`]/;
const HAS_CONTENT = /[\p{L}\p{N}\p{Extended_Pictographic}\p{Surrogate}]/u;

/**
 * Sentences of the blocks given, in order. A scanner of our own: `Intl.Segmenter` takes quadratic time on long input and knows no
 * abbreviations.
 */
export function sentencesOf(text: string, blocks: readonly Block[] = blocksOf(text)): Sentence[] {
  const sentences: Sentence[] = [];
  blocks.forEach((block, index) => {
    if (block.kind === "paragraph" || block.kind === "item") splitBlock(text, block, index, sentences);
  });
  return sentences;
}

function splitBlock(text: string, block: Block, blockIndex: number, into: Sentence[]): void {
  let start = block.start;
  let position = block.start;
  const close = (end: number): void => {
    let from = start;
    let to = end;
    while (from < to && /\s/.test(text.charAt(from))) from += 1;
    while (to > from && /\s/.test(text.charAt(to - 1))) to -= 1;
    if (to > from && HAS_CONTENT.test(text.slice(from, to))) into.push({ start: from, end: to, block: blockIndex });
    start = end;
  };
  while (position < block.end) {
    if (TERMINAL.test(text.charAt(position))) {
      const { end, closes } = afterMarks(text, start, position, block.end);
      position = end;
      if (closes) {
        close(end);
        continue;
      }
    } else {
      position += 1;
    }
    if (position - start >= LONGEST_SENTENCE) {
      const cut = longSentenceCut(text, start, position);
      close(cut);
      position = Math.max(cut, start);
    }
  }
  close(block.end);
}

/** The end of the punctuation that begins at `position`, and whether it closes the sentence. */
function afterMarks(text: string, start: number, position: number, limit: number): { end: number; closes: boolean } {
  const mark = text.charAt(position);
  const furthest = Math.min(limit, start + LONGEST_SENTENCE);
  let marksEnd = position + 1;
  while (marksEnd < furthest && TERMINAL_OR_DOTS.test(text.charAt(marksEnd))) marksEnd += 1;
  let end = marksEnd;
  while (end < furthest && CLOSER.test(text.charAt(end))) end += 1;
  return { end, closes: end >= limit || closesSentence() };

  function closesSentence(): boolean {
    const next = text.charAt(end);
    const quoted = end > marksEnd;
    if (isWide(mark)) {
      // “…！”他说 goes on after the quotation; “…。”他说 usually does not.
      const goesOn = quoted && mark !== "。" && isWide(next) && !/[“「『]/.test(next);
      return !goesOn && !/[，、；：,;:]/.test(next);
    }
    if (!/\s/.test(next) && !isWide(next)) return false;
    if (mark !== ".") return !(quoted && startsLowerCase(text, end, limit));
    const abbreviated = marksEnd === position + 1 && isAbbreviation(text, start, position);
    return !abbreviated && !startsLowerCase(text, end, limit);
  }
}

function startsLowerCase(text: string, from: number, limit: number): boolean {
  let position = from;
  const furthest = Math.min(limit, from + 16);
  while (position < furthest && /[\s"'“‘(]/.test(text.charAt(position))) position += 1;
  return /\p{Ll}/u.test(text.charAt(position));
}

function isAbbreviation(text: string, start: number, dot: number): boolean {
  const before = /[\p{L}\p{N}.]+$/u.exec(text.slice(Math.max(start, dot - 12), dot))?.[0];
  if (before === undefined) return false;
  if (/^\p{Lu}$/u.test(before) || ABBREVIATIONS.has(before.toLowerCase())) return true;
  return /^\d{1,3}$/.test(before) && text.slice(start, dot).trim() === before;
}

function longSentenceCut(text: string, start: number, limit: number): number {
  for (let position = limit - 1; position > start + LONGEST_SENTENCE / 2; position -= 1) {
    if (/[\s,;，；、：]/.test(text.charAt(position))) return position + 1;
  }
  return safeCut(text, start, limit);
}

const segmenters = new Map<Language, Intl.Segmenter>();

function segmenterFor(language: Language): Intl.Segmenter {
  let segmenter = segmenters.get(language);
  if (segmenter === undefined) {
    segmenter = new Intl.Segmenter(language, { granularity: "word" });
    segmenters.set(language, segmenter);
  }
  return segmenter;
}

/** Words of one sentence. Callers pass bounded pieces: the segmenter's time grows with the square of its input. */
export function wordsOf(sentence: string, language: Language): Word[] {
  const found: Word[] = [];
  let previousEnd = -1;
  for (const { segment, index, isWordLike } of segmenterFor(language).segment(
    sentence.slice(0, 2 * LONGEST_SENTENCE),
  )) {
    if (isWordLike !== true) continue;
    const lower = segment.toLowerCase().replaceAll("’", "'");
    const wide = isWide(segment.charAt(0));
    const gap = previousEnd === -1 ? "." : sentence.slice(previousEnd, index);
    found.push({
      text: segment,
      key: wide ? lower : withoutEnding(lower),
      stop: STOP_WORDS.en.has(lower) || STOP_WORDS.zh.has(lower) || isTrivial(lower),
      joined: wide ? gap === "" : gap === " " || gap === "-",
    });
    previousEnd = index + segment.length;
  }
  return found;
}

/** One letter or character, a number, an English adverb, a Chinese character with its particle: too little to name a subject. */
function isTrivial(word: string): boolean {
  return word.length < 2 || /^[\p{N}.,:%_]+$/u.test(word) || /^[a-z]{3,}ly$/.test(word) || /^.[的了着]$/.test(word);
}

function withoutEnding(word: string): string {
  const bare = word.endsWith("'s") ? word.slice(0, -2) : word;
  if (/^[a-z]{2,}ies$/.test(bare)) return `${bare.slice(0, -3)}y`;
  if (/^[a-z]{2,}(?:ss|sh|ch|x|z)es$/.test(bare)) return bare.slice(0, -2);
  return /^[a-z]{3,}s$/.test(bare) && !/(?:ss|us|is)$/.test(bare) ? bare.slice(0, -1) : bare;
}

/** Evenly spread choice of at most `limit` items, always with the first one. */
export function spread<T>(items: readonly T[], limit: number): T[] {
  if (items.length <= limit) return [...items];
  return Array.from({ length: limit }, (_, index) => items[Math.floor((index * items.length) / limit)]!);
}
