import { type Block, blocksOf } from "./blocks.ts";
import { detectLanguage, type Language } from "./language.ts";
import { cleanInline, columns, endsSentence } from "./plain-text.ts";
import { type Sentence, sentencesOf, spread, type Word, wordsOf } from "./segment.ts";
import { byScore, MOST_RANKED_SENTENCES, type Ranking, rankSentences } from "./text-rank.ts";

/** A text taken apart once; outline, article and summary are views of it. */
export interface Analysis {
  readonly text: string;
  readonly language: Language;
  readonly blocks: readonly Block[];
  /** All sentences of the source. */
  readonly total: number;
  /** The sentences looked at: all of them, or an even spread of a long text. */
  readonly sentences: readonly Sentence[];
  readonly words: readonly (readonly Word[])[];
  readonly ranking: Ranking;
}

export interface SourceSection {
  readonly title: string;
  /** Indexes into the analysed sentences, in order. */
  readonly sentences: readonly number[];
  /** The sentence that became the title, where one did: it need not be said twice. */
  readonly titleSentence?: number;
  /** Headings below this section's own. */
  readonly subtitles: readonly string[];
}

export function analyse(text: string): Analysis {
  const language = detectLanguage(text);
  const blocks = blocksOf(text);
  const all = sentencesOf(text, blocks);
  const sentences = spread(all, MOST_RANKED_SENTENCES);
  const words = sentences.map(({ start, end }) => wordsOf(text.slice(start, end), language));
  return { text, language, blocks, total: all.length, sentences, words, ranking: rankSentences(words) };
}

export function sentenceText({ text, sentences }: Analysis, index: number): string {
  const sentence = sentences[index];
  return sentence === undefined ? "" : cleanInline(text.slice(sentence.start, sentence.end));
}

/** Sentences that lean on the one before them read badly alone. */
const LEANS =
  /^(?:this|these|those|it|they|he|she|such|otherwise|still|also|but|and|so|thus|then)\b|^(?:这|那|它|他|她|其次|此外|因此|所以|同时|然后|但)/i;
/** What a sentence is worth once its paragraph is already represented. */
const SAME_PARAGRAPH = 0.6;
const REPETITION = 0.6;

/** The best sentences among `candidates`, in the order of the text, spread over its paragraphs, without near repetitions. */
export function bestSentences(
  analysis: Analysis,
  candidates: readonly number[],
  count: number,
  openingBonus: number,
): number[] {
  const { ranking, blocks, sentences } = analysis;
  const texts = candidates.map((index) => sentenceText(analysis, index));
  const announcing = texts.map((text) => /[:：]$/.test(text));
  const onlyAnnouncing = announcing.every(Boolean);
  const scores = candidates.map((index, position) => {
    const text = texts[position]!;
    if (announcing[position] && !onlyAnnouncing) return 0;
    const fragment = endsSentence(text) ? 1 : 0.6;
    const question = /[?？]["”’」]*$/.test(text) ? 0.5 : 1;
    const brief = columns(text, 30) < 30 ? 0.6 : 1;
    const leans = LEANS.test(text) ? 0.8 : 1;
    return (ranking.scores[index] ?? 0) * fragment * question * brief * leans * (position === 0 ? openingBonus : 1);
  });
  const group = (index: number): number => blocks[sentences[index]!.block]!.group;
  const chosen: number[] = [];
  while (chosen.length < count) {
    const best = byScore(scores)[0];
    if (best === undefined || scores[best]! <= 0) break;
    const index = candidates[best]!;
    chosen.push(index);
    scores[best] = 0;
    candidates.forEach((other, position) => {
      const similarity = ranking.similarity(index, other);
      scores[position]! *=
        similarity > REPETITION ? 0 : (1 - similarity / 2) * (group(other) === group(index) ? SAME_PARAGRAPH : 1);
    });
  }
  return chosen.sort((a, b) => a - b);
}
