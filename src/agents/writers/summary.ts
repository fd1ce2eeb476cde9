import { type Analysis, analyse, bestSentences, sentenceText } from "./analysis.ts";
import { keywordsOf } from "./keywords.ts";
import { LABELS, type Language } from "./language.ts";
import { cleanInline, endsSentence, gapBetween } from "./plain-text.ts";
import type { Sentence } from "./segment.ts";

export interface Summary {
  language: Language;
  /** The chosen sentences as running text, without Markdown marks and line breaks. */
  text: string;
  /** The chosen sentences exactly as they stand in the source, in its order. */
  sentences: string[];
  keywords: string[];
  /** How many sentences the source has. */
  sourceSentences: number;
}

const MOST_BY_DEFAULT = 5;
const KEYWORDS = 6;
/** Writers tend to say first what they are going to say. */
const OPENING_BONUS = 1.5;

/** The sentences that say most of the text; empty for an empty text. */
export function summaryOf(text: string, options: { sentences?: number } = {}): Summary {
  const analysis = analyse(text);
  const count = wantedSentences(options.sentences, analysis.total);
  const chosen = bestSentences(analysis, candidatesOf(analysis), count, OPENING_BONUS).map(
    (index) => analysis.sentences[index]!,
  );
  return {
    language: analysis.language,
    text: runningText(analysis, chosen),
    sentences: chosen.map(({ start, end }) => text.slice(start, end)),
    keywords: keywordsOf(analysis.words, analysis.language, KEYWORDS).map((keyword) => keyword.text),
    sourceSentences: analysis.total,
  };
}

/** All sentences; of a skeleton only its introduction, since the rest is advice to the author and holds nothing to sum up. */
function candidatesOf(analysis: Analysis): number[] {
  const { blocks, sentences, language } = analysis;
  const all = sentences.map((_, index) => index);
  if (!LABELS[language].skeletonMark.test(sentenceText(analysis, 0))) return all;
  const firstBlock = sentences[0]?.block ?? 0;
  const sectionStart = blocks.findIndex((block, index) => index > firstBlock && block.kind === "heading");
  return sectionStart === -1 ? all : all.filter((index) => sentences[index]!.block < sectionStart);
}

function wantedSentences(asked: number | undefined, total: number): number {
  if (asked !== undefined && Number.isFinite(asked)) return Math.max(1, Math.floor(asked));
  return Math.min(MOST_BY_DEFAULT, Math.max(1, Math.round(Math.sqrt(total))));
}

/** Joins with no more than stood between the sentences in the source, so the summary never outgrows it. */
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
