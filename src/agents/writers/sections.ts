import { type Analysis, type SourceSection, sentenceText } from "./analysis.ts";
import { type Block, withoutHeadingNumber } from "./blocks.ts";
import { foundSections } from "./found-sections.ts";
import { keywordsOf } from "./keywords.ts";
import { LABELS } from "./language.ts";
import {
  capitalised,
  cleanInline,
  columns,
  LONGEST_TITLE,
  shortened,
  withoutFinalPunctuation,
  withoutMarks,
} from "./plain-text.ts";

export interface SourcePlan {
  readonly title: string;
  readonly sections: readonly SourceSection[];
}

const MOST_SECTIONS = 24;
const FIRST_SENTENCE_AS_TITLE_COLUMNS = 60;

/** The text's own headings where it has them, else groups of sentences that belong together. */
export function planOf(analysis: Analysis): SourcePlan {
  const headed = headedPlan(analysis);
  if (headed !== undefined) return headed;
  const title = titleOf(analysis);
  return { title, sections: foundSections(analysis, title) };
}

function headingTitle({ text }: Analysis, block: Block): string {
  const title = cleanInline(text.slice(block.start, Math.min(block.end, block.start + 400))).replace(/\s*#+$/, "");
  return shortened(withoutFinalPunctuation(withoutHeadingNumber(withoutMarks(title))), LONGEST_TITLE);
}

function headedPlan(analysis: Analysis): SourcePlan | undefined {
  const { blocks, language } = analysis;
  const headings = blocks.flatMap((block, index) =>
    block.kind === "heading" ? [{ index, level: block.level, block }] : [],
  );
  const [first] = headings;
  if (first === undefined) return undefined;
  const titled = headings.every((heading) => heading === first || heading.level > first.level);
  const others = titled ? headings.slice(1) : headings;
  if (others.length === 0) return undefined;
  const tops = strongest(others);

  const between = (from: number, to: number): number[] =>
    analysis.sentences.flatMap(({ block }, index) => (block >= from && block < to ? [index] : []));
  const sections: SourceSection[] = tops.slice(0, MOST_SECTIONS).map((top, position) => {
    const end = tops[position + 1]?.index ?? blocks.length;
    const below = others.filter((heading) => heading.index > top.index && heading.index < end);
    return {
      title: headingTitle(analysis, top.block) || LABELS[language].part(position + 1),
      sentences: between(top.index, end),
      subtitles:
        below.length > 0
          ? strongest(below).map(({ block }) => headingTitle(analysis, block))
          : rowsBetween(analysis, top.index, end),
    };
  });
  const title = titled ? headingTitle(analysis, first.block) : joinedTitle(analysis, sections);
  const preface = between(0, tops[0]?.index ?? 0);
  if (preface.length > 0) sections.unshift({ title: LABELS[language].introduction, sentences: preface, subtitles: [] });
  return { title, sections };
}

function strongest<T extends { level: number }>(headings: readonly T[]): T[] {
  const level = headings.reduce((least, heading) => Math.min(least, heading.level), Number.POSITIVE_INFINITY);
  return headings.filter((heading) => heading.level === level);
}

/** What a section that is nothing but a table is about: the first column. */
function rowsBetween({ text, blocks }: Analysis, from: number, to: number): string[] {
  return blocks
    .slice(from, to)
    .filter((block) => block.kind === "row")
    .slice(0, MOST_SECTIONS)
    .map((block) =>
      shortened(cleanInline(text.slice(block.start, Math.min(block.end, block.start + 400))), LONGEST_TITLE),
    )
    .filter((cell) => cell !== "");
}

/** Two or three headings name an untitled text best; more of them are too long for a title. */
function joinedTitle(analysis: Analysis, sections: readonly SourceSection[]): string {
  const title = sections.length > 3 ? "" : LABELS[analysis.language].list(sections.map((section) => section.title));
  const fits = title !== "" && columns(title, LONGEST_TITLE) < LONGEST_TITLE;
  return fits ? title : titleFromSentences(analysis) || shortened(title, LONGEST_TITLE);
}

function titleOf(analysis: Analysis): string {
  const [first] = analysis.blocks;
  return first?.kind === "heading" ? headingTitle(analysis, first) : titleFromSentences(analysis);
}

function titleFromSentences(analysis: Analysis): string {
  const { language, words } = analysis;
  const opening = withoutFinalPunctuation(sentenceText(analysis, 0));
  const phrases = keywordsOf(words, language, 3).filter(({ weight }) => weight >= 2);
  if (
    phrases.length === 0 ||
    (opening !== "" && columns(opening, FIRST_SENTENCE_AS_TITLE_COLUMNS) < FIRST_SENTENCE_AS_TITLE_COLUMNS)
  ) {
    return shortened(opening, LONGEST_TITLE);
  }
  return capitalised(LABELS[language].titleOf(phrases.map(({ text }) => text)));
}
