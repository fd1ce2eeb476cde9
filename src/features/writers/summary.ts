import { type Analysis, analyse, findKeywords, sentenceText } from "./analysis.ts";
import { LABELS, type Language, skeletonBody } from "./language.ts";
import { cleanInline, columns, endsSentence, gapBetween } from "./plain-text.ts";
import type { Sentence } from "./segment.ts";
import { bestSentences } from "./selection.ts";

export interface Summary {
  language: Language;
  /** The selected sentences as running text, without Markdown marks and line breaks. */
  text: string;
  /** The selected sentences exactly as in the source, in its order. */
  sentences: string[];
  keywords: string[];
  /** Number of sentences in the source. */
  sourceSentences: number;
}

/** A summary has at most this part of its text, and of a long text at most as many characters. */
const SHARE_OF_TEXT = 0.29;
const MAX_LENGTH = 2_000;
/** A text of this many sentences or columns is already as short as its summary would be. */
const SHORT_SENTENCES = 2;
const SHORT_COLUMNS = 80;
const KEYWORDS = 6;
/** Authors tend to state the main point first. */
const OPENING_BONUS = 1.8;

/** The most significant sentences, or all of a short text; empty for an empty text. */
export function summarize(text: string, options: { sentences?: number } = {}): Summary {
  const analysis = analyse(text);
  const isShort = analysis.total <= SHORT_SENTENCES || columns(text, SHORT_COLUMNS) < SHORT_COLUMNS;
  const candidates = candidatesOf(analysis);
  const lengthOf = (index: number) => lengthWithoutSpaces(sentenceText(analysis, index));
  const room = Math.min(MAX_LENGTH, lengthWithoutSpaces(text) * SHARE_OF_TEXT);
  const select = (limits: { readonly count: number; readonly room?: number }) =>
    bestSentences(analysis, candidates, { openingBonus: OPENING_BONUS, lengthOf, ...limits });
  const asked = Number.isFinite(options.sentences) ? Math.max(1, Math.floor(options.sentences!)) : undefined;
  const count = asked ?? (isShort ? analysis.total : undefined);
  const within = count === undefined ? select({ count: analysis.total, room }) : select({ count });
  // Of a few long sentences, none may fit: then one is the summary.
  const chosen = within.length > 0 ? within : select({ count: 1 });
  const sentences = chosen.map((index) => analysis.sentences[index]!);
  return {
    language: analysis.language,
    text: runningText(analysis, sentences),
    sentences: sentences.map(({ start, end }) => text.slice(start, end)),
    keywords: findKeywords(analysis.words, analysis.language, KEYWORDS).map((keyword) => keyword.text),
    sourceSentences: analysis.total,
  };
}

const lengthWithoutSpaces = (text: string): number => text.replace(/\s+/g, "").length;

/** All sentences; for a skeleton only the note that it is one, since the rest is advice to the author. */
function candidatesOf(analysis: Analysis): number[] {
  const all = analysis.sentences.map((_, index) => index);
  if (skeletonBody(analysis.text) === undefined) return all;
  const { skeletonMark } = LABELS[analysis.language];
  const remark = all.filter((index) => skeletonMark.test(sentenceText(analysis, index)));
  return remark.length > 0 ? remark : all;
}

/** Uses separators no longer than those in the source, so that the summary is never longer than it. */
function runningText({ text }: Analysis, chosen: readonly Sentence[]): string {
  let joined = "";
  chosen.forEach((sentence, index) => {
    const piece = cleanInline(text.slice(sentence.start, sentence.end));
    const room = index === 0 ? 0 : sentence.start - chosen[index - 1]!.end;
    if (piece !== "") joined += separator(joined, piece, room) + piece;
  });
  return joined;
}

function separator(before: string, after: string, room: number): string {
  if (before === "" || room === 0) return "";
  const gap = gapBetween(before, after);
  const mark = gap === "" ? "；" : "; ";
  return endsSentence(before) || mark.length > room ? gap : mark;
}
