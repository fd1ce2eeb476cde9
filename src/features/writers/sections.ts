import { type Analysis, byScore, type SourceSection, sentenceText } from "./analysis.ts";
import { type Block, stripHeadingNumber } from "./blocks.ts";
import { LABELS } from "./language.ts";
import { headingPhrase, isFormality, opensWithPronoun } from "./phrases.ts";
import { cleanInline, columns, MAX_TITLE_LENGTH, stripFinalPunctuation, stripMarks, truncate } from "./plain-text.ts";

interface SourcePlan {
  readonly title: string;
  readonly sections: readonly SourceSection[];
}

const MAX_SECTIONS = 24;

/** The headings of the text if it has them, otherwise groups of paragraphs. */
export function planSections(analysis: Analysis): SourcePlan {
  const headed = headedPlan(analysis);
  if (headed !== undefined) return headed;
  const title = titleOf(analysis);
  return { title, sections: findSections(analysis, title) };
}

function headingTitle({ text }: Analysis, block: Block): string {
  const title = cleanInline(text.slice(block.start, Math.min(block.end, block.start + 400))).replace(/\s*#+$/, "");
  return truncate(stripFinalPunctuation(stripHeadingNumber(stripMarks(title))), MAX_TITLE_LENGTH);
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
  const tops = highestLevel(others);

  const between = (from: number, to: number): number[] =>
    analysis.sentences.flatMap(({ block }, index) => (block >= from && block < to ? [index] : []));
  const sections: SourceSection[] = tops.slice(0, MAX_SECTIONS).map((top, position) => {
    const next = position + 1 < MAX_SECTIONS ? tops[position + 1] : undefined;
    const end = next?.index ?? blocks.length;
    const below = others.filter((heading) => heading.index > top.index && heading.index < end);
    return {
      title: headingTitle(analysis, top.block) || LABELS[language].part(position + 1),
      sentences: between(top.index, end),
      start: top.block.end,
      end: next === undefined ? analysis.text.length : lineStart(analysis, next.block),
      subtitles:
        below.length > 0
          ? highestLevel(below).map(({ block }) => headingTitle(analysis, block))
          : rowsBetween(analysis, top.index, end),
    };
  });
  const title = titled ? headingTitle(analysis, first.block) : joinedTitle(analysis, sections);
  const preface = between(0, tops[0]?.index ?? 0);
  if (preface.length > 0) {
    const start = titled ? first.block.end : 0;
    const end = lineStart(analysis, others[0]!.block);
    sections.unshift({ title: LABELS[language].introduction, sentences: preface, subtitles: [], start, end });
  }
  return { title, sections };
}

function lineStart({ text }: Analysis, block: Block): number {
  return text.lastIndexOf("\n", block.start - 1) + 1;
}

function highestLevel<T extends { level: number }>(headings: readonly T[]): T[] {
  const level = headings.reduce((least, heading) => Math.min(least, heading.level), Number.POSITIVE_INFINITY);
  return headings.filter((heading) => heading.level === level);
}

/** The subject of a section that contains only a table: its first column. */
function rowsBetween({ text, blocks }: Analysis, from: number, to: number): string[] {
  return blocks
    .slice(from, to)
    .filter((block) => block.kind === "row")
    .slice(0, MAX_SECTIONS)
    .map((block) =>
      truncate(cleanInline(text.slice(block.start, Math.min(block.end, block.start + 400))), MAX_TITLE_LENGTH),
    )
    .filter((cell) => cell !== "");
}

/** Two or three headings name an untitled text best; more are too long for a title. */
function joinedTitle(analysis: Analysis, sections: readonly SourceSection[]): string {
  const title = sections.length > 3 ? "" : LABELS[analysis.language].list(sections.map((section) => section.title));
  const fits = title !== "" && columns(title, MAX_TITLE_LENGTH) < MAX_TITLE_LENGTH;
  return fits ? title : titleFromSentences(analysis) || truncate(title, MAX_TITLE_LENGTH);
}

function titleOf(analysis: Analysis): string {
  const [first] = analysis.blocks;
  return first?.kind === "heading" ? headingTitle(analysis, first) : titleFromSentences(analysis);
}

const TITLE_COLUMNS = { en: 80, zh: 66 } as const;
/** Sentences that may give the text its title. */
const OPENING_SENTENCES = 8;

function titleFromSentences(analysis: Analysis): string {
  const { language, words } = analysis;
  const openings = words
    .slice(0, OPENING_SENTENCES)
    .map((_, index) => sentenceText(analysis, index))
    .filter((sentence) => !isFormality(sentence));
  const phrase = openings
    .map((sentence, at) => headingPhrase(sentence, language, TITLE_COLUMNS[language], at === 0))
    .find(Boolean)?.phrase;
  return phrase ?? truncate(stripFinalPunctuation(openings[0] ?? sentenceText(analysis, 0)), MAX_TITLE_LENGTH);
}

const MAX_FOUND_SECTIONS = 6;
/** A heading with its points takes a third of this, as the outline does of the text. */
const COLUMNS_PER_SECTION = { en: 360, zh: 260 } as const;

/** Paragraphs in their order, joined where they are short or share their words, and named after what they say. */
function findSections(analysis: Analysis, title: string): SourceSection[] {
  const { blocks, language, sentences, text } = analysis;
  if (sentences.length === 0) return [];
  const most = COLUMNS_PER_SECTION[language] * MAX_FOUND_SECTIONS;
  const wanted = Math.max(1, Math.round(columns(text, most) / COLUMNS_PER_SECTION[language]));
  const starts = [0, ...cutPoints(analysis, wanted - 1)];
  const groups = starts.map((start, index) => {
    const end = starts[index + 1] ?? sentences.length;
    return Array.from({ length: end - start }, (_, offset) => start + offset);
  });
  const titles = groupTitles(analysis, groups, title);
  const [first] = blocks;
  const offsets = starts.map((start, index) =>
    index === 0 ? (first?.kind === "heading" ? first.end : 0) : lineStart(analysis, blocks[sentences[start]!.block]!),
  );
  return groups.map((group, index) => ({
    title: titles[index] ?? LABELS[language].part(index + 1),
    sentences: group,
    subtitles: [],
    start: offsets[index]!,
    end: offsets[index + 1] ?? text.length,
  }));
}

/** Between paragraphs, where neighbours share the fewest words. */
function cutPoints(analysis: Analysis, count: number): number[] {
  const { sentences, ranking, blocks } = analysis;
  const cohesion = (gap: number): number => {
    let shared = 0;
    for (let left = Math.max(0, gap - 3); left < gap; left += 1) {
      for (let right = gap; right < Math.min(sentences.length, gap + 3); right += 1)
        shared += ranking.similarity(left, right);
    }
    return shared;
  };
  const blockOf = (index: number) => blocks[sentences[index]!.block]!;
  const gaps = sentences.flatMap((_, index) => {
    if (index === 0 || blockOf(index).group === blockOf(index - 1).group) return [];
    // A list belongs to the line that announces it, and a pronoun to the paragraph that it refers to.
    const isAnnounced = blockOf(index).kind === "item" || /[:：]$/.test(sentenceText(analysis, index - 1));
    return isAnnounced || opensWithPronoun(sentenceText(analysis, index)) ? [] : [index];
  });
  const order = byScore(gaps.map((gap) => -cohesion(gap))).map((position) => gaps[position]!);
  const shortest = Math.min(2, Math.floor(sentences.length / (count + 1)));
  const cuts: number[] = [];
  for (const gap of order) {
    if (cuts.length >= count) break;
    const edges = [0, sentences.length, ...cuts];
    if (edges.every((edge) => Math.abs(edge - gap) >= shortest)) cuts.push(gap);
  }
  return cuts.sort((a, b) => a - b);
}

const HEADING_COLUMNS = { en: 52, zh: 44 } as const;
/** What a phrase loses by each sentence before it: the first says best what a paragraph is about. */
const LATER_SENTENCE = 0.6;
/** What it loses by each column. */
const WIDTH = 0.015;

/** Phrases of the text: of the sentence that opens a group, else of one that follows, else its opening words. */
function groupTitles(analysis: Analysis, groups: readonly (readonly number[])[], textTitle: string) {
  const { blocks, language, sentences } = analysis;
  if (groups.length === 1) return [LABELS[language].keyPoints];
  const limit = HEADING_COLUMNS[language];
  const taken = [textTitle.toLowerCase()];
  const isTaken = (title: string) => taken.some((other) => isPart(other, title.toLowerCase()));
  return groups.map((group) => {
    const prose = group.filter((index) => blocks[sentences[index]!.block]!.kind !== "item");
    const opening = sentenceText(analysis, group[0]!);
    // "You need:", above a list.
    const announced = prose.length === 1 && /[:：]$/.test(opening) ? [stripFinalPunctuation(opening)] : [];
    const candidates = prose.flatMap((index, position) => {
      const found = headingPhrase(sentenceText(analysis, index), language, limit, index === 0);
      if (found === undefined) return [];
      const loss = found.cost + position * LATER_SENTENCE + columns(found.phrase, limit) * WIDTH;
      return [{ title: found.phrase, score: -loss }];
    });
    const order = byScore(candidates.map(({ score }) => score)).map((at) => candidates[at]!.title);
    const short = truncate(stripFinalPunctuation(opening), language === "zh" ? limit / 2 : limit);
    const fallback = isFormality(opening) || isTaken(short.replace("…", "")) ? LABELS[language].introduction : short;
    const title = [...announced, ...order].find((name) => !isTaken(name)) ?? fallback;
    taken.push(title.toLowerCase());
    return title;
  });
}

const isPart = (one: string, other: string): boolean => one.includes(other) || other.includes(one);
