import { type Analysis, byScore, findKeywords, type Keyword, type SourceSection, sentenceText } from "./analysis.ts";
import { type Block, stripHeadingNumber } from "./blocks.ts";
import { LABELS } from "./language.ts";
import {
  capitalize,
  cleanInline,
  columns,
  MAX_TITLE_LENGTH,
  stripFinalPunctuation,
  stripMarks,
  truncate,
} from "./plain-text.ts";

interface SourcePlan {
  readonly title: string;
  readonly sections: readonly SourceSection[];
}

const MAX_SECTIONS = 24;
const FIRST_SENTENCE_AS_TITLE_COLUMNS = 60;

/** The headings of the text if it has them, otherwise groups of related sentences. */
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
    const end = tops[position + 1]?.index ?? blocks.length;
    const below = others.filter((heading) => heading.index > top.index && heading.index < end);
    return {
      title: headingTitle(analysis, top.block) || LABELS[language].part(position + 1),
      sentences: between(top.index, end),
      subtitles:
        below.length > 0
          ? highestLevel(below).map(({ block }) => headingTitle(analysis, block))
          : rowsBetween(analysis, top.index, end),
    };
  });
  const title = titled ? headingTitle(analysis, first.block) : joinedTitle(analysis, sections);
  const preface = between(0, tops[0]?.index ?? 0);
  if (preface.length > 0) sections.unshift({ title: LABELS[language].introduction, sentences: preface, subtitles: [] });
  return { title, sections };
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

function titleFromSentences(analysis: Analysis): string {
  const { language, words } = analysis;
  const opening = stripFinalPunctuation(sentenceText(analysis, 0));
  const phrases = findKeywords(words, language, 6)
    .filter((phrase) => phrase.weight >= 2 && namesThing(phrase))
    .slice(0, 3);
  if (
    phrases.length === 0 ||
    (opening !== "" && columns(opening, FIRST_SENTENCE_AS_TITLE_COLUMNS) < FIRST_SENTENCE_AS_TITLE_COLUMNS)
  ) {
    return truncate(opening, MAX_TITLE_LENGTH);
  }
  return capitalize(LABELS[language].titleOf(phrases.map(({ text }) => text)));
}

const MAX_FOUND_SECTIONS = 6;
const SENTENCES_PER_FOUND_SECTION = 4;
const TITLE_COLUMNS = 56;

interface Name {
  readonly title: string;
  readonly titleSentence?: number;
}

/** Splits the sentences where neighbours share the fewest words, and names each part after its distinctive words. */
function findSections(analysis: Analysis, title: string): SourceSection[] {
  const { sentences, language } = analysis;
  if (sentences.length === 0) return [];
  const wanted = Math.min(MAX_FOUND_SECTIONS, Math.max(1, Math.round(sentences.length / SENTENCES_PER_FOUND_SECTION)));
  const starts = [0, ...cutPoints(analysis, wanted - 1)];
  const groups = starts.map((start, index) => {
    const end = starts[index + 1] ?? sentences.length;
    return Array.from({ length: end - start }, (_, offset) => start + offset);
  });
  const names = groupNames(analysis, groups, title);
  return groups.map((group, index) => ({
    ...(names[index] ?? { title: LABELS[language].part(index + 1) }),
    sentences: group,
    subtitles: [],
  }));
}

function cutPoints(analysis: Analysis, count: number): number[] {
  const { sentences, ranking, blocks } = analysis;
  const depth = (gap: number): number => {
    let cohesion = 0;
    for (let left = Math.max(0, gap - 3); left < gap; left += 1) {
      for (let right = gap; right < Math.min(sentences.length, gap + 3); right += 1)
        cohesion += ranking.similarity(left, right);
    }
    const newParagraph = blocks[sentences[gap - 1]!.block]?.group !== blocks[sentences[gap]!.block]?.group;
    return newParagraph ? 10 - cohesion : -cohesion;
  };
  const gaps = Array.from({ length: Math.max(0, sentences.length - 1) }, (_, index) => index + 1);
  const order = byScore(gaps.map(depth)).map((position) => gaps[position]!);
  const shortest = Math.min(2, Math.floor(sentences.length / (count + 1)));
  const cuts: number[] = [];
  for (const gap of order) {
    if (cuts.length >= count) break;
    const edges = [0, sentences.length, ...cuts];
    if (edges.every((edge) => Math.abs(edge - gap) >= shortest)) cuts.push(gap);
  }
  return cuts.sort((a, b) => a - b);
}

/** "However, reefs recover" becomes the title "Reefs recover". */
const CONNECTIVE =
  /^(?:however|but|still|moreover|furthermore|in addition|finally|first|second|third|today|now|meanwhile|therefore|thus|of course|for example|for instance),?\s+|^(?:不过|但是|然而|此外|另外|同时|首先|其次|最后|因此|所以|总之|如今|目前|当然|例如|比如|与此同时|专家普遍认为|专家认为)，/i;
/** Openings whose first clause is meaningless on its own, and words that refer back. */
const DEPENDENT =
  /^(?:when|while|if|although|though|because|since|as|after|before|until|unless|in|on|at|by|for|from|with|without|according|despite|during|under|over|to|this|these|those|that|it|they|he|she|such|otherwise|there|we|i|you|and|or)\b|^(?:当|如果|虽然|尽管|由于|因为|随着|根据|按照|对于|关于|除了|为了|在|从|过去|以前|这|那|它|他|她|其|借助|通过|要)/i;

/**
 * A short opening sentence is the best title of a paragraph; next are words that it repeats and its neighbours do not
 * contain, then the opening clause of one of its sentences, and finally any distinctive words.
 */
function groupNames(
  analysis: Analysis,
  groups: readonly (readonly number[])[],
  textTitle: string,
): (Name | undefined)[] {
  const { words, language } = analysis;
  if (groups.length === 1) return [{ title: LABELS[language].keyPoints }];
  const perGroup = groups.map((group) =>
    findKeywords(
      group.map((index) => words[index]!),
      language,
      30,
    ),
  );
  const spreadOf = new Map<string, number>();
  for (const keywords of perGroup) for (const { key } of keywords) spreadOf.set(key, (spreadOf.get(key) ?? 0) + 1);
  const taken = new Set<string>([textTitle]);
  const fromKeywords = (keywords: readonly Keyword[]): string | undefined =>
    keywords.length === 0 ? undefined : capitalize(LABELS[language].list(keywords.map(({ text }) => text)));

  return groups.map((group, position) => {
    const keywords = perGroup[position]!;
    const apart = byScore(keywords.map(({ key, weight }) => weight / (spreadOf.get(key) ?? 1))).map(
      (index) => keywords[index]!,
    );
    // A word of all groups does not tell this one from the others.
    const isOwn = ({ key }: Keyword) => (spreadOf.get(key) ?? 0) < groups.length;
    const repeated = apart.filter((keyword) => keyword.weight >= 2 && namesThing(keyword)).slice(0, 2);
    const own = repeated.filter(isOwn);
    const pair = toName(repeated.length > 1 && own.length > 0 ? fromKeywords(repeated) : undefined);
    const clauses = group.map((index) => clauseName(analysis, group, index));
    const candidates: (Name | undefined)[] = [
      openingTitle(analysis, group),
      // In Chinese, verbs cannot be distinguished from nouns, and two words rarely make a title.
      ...(language === "zh" ? [...clauses, pair] : [pair, ...clauses]),
      toName(fromKeywords(own)),
      toName(openingWords(analysis, group)),
      toName(fromKeywords(repeated)),
      toName(fromKeywords(apart.slice(0, 2))),
    ];
    const name = candidates.find((candidate) => candidate !== undefined && !taken.has(candidate.title));
    if (name !== undefined) taken.add(name.title);
    return name;
  });
}

function toName(title: string | undefined): Name | undefined {
  return title === undefined ? undefined : { title: truncate(title, MAX_TITLE_LENGTH) };
}

function openingTitle(analysis: Analysis, group: readonly number[]): Name | undefined {
  const [first] = group;
  // A title taken from the text must leave some sentences below it.
  if (first === undefined || group.length < 3) return undefined;
  const sentence = sentenceText(analysis, first);
  const title = stripFinalPunctuation(sentence.replace(CONNECTIVE, ""));
  const width = columns(title, TITLE_COLUMNS);
  if (width >= TITLE_COLUMNS || width < 8 || /[?？]/.test(sentence) || REFERS_BACK.test(title)) return undefined;
  return { title: capitalize(title), titleSentence: first };
}

/** Not a participle or a plain adjective, which say nothing without their sentence: "voted", "alone reduced", "old". */
const namesThing = ({ text }: Keyword): boolean =>
  !/\b[a-z]{2,}[a-df-z]ed\b|^(?:old|new|young|big|large|small|long|short|high|low|good|great|own|alone|stand|feel|mean|keep)$/i.test(
    text,
  );

/** The beginning of a paragraph whose sentences are all too long for a title. */
function openingWords(analysis: Analysis, [first]: readonly number[]): string | undefined {
  const sentence = first === undefined ? "" : sentenceText(analysis, first).replace(CONNECTIVE, "");
  if (sentence === "" || QUOTED.test(sentence) || REFERS_BACK.test(sentence)) return undefined;
  return capitalize(truncate(stripFinalPunctuation(sentence), TITLE_COLUMNS));
}

const QUOTED = /["“”「」『』]/;
/** A clause that only says who speaks, or when. */
const SPEECH =
  /(?:表示|承认|介绍|认为|指出|回应|反映|提醒|发现|说|报告|以后|之后|时候?)$|\b(?:said|says|explained|reported|warned)$/;
const REFERS_BACK = /^(?:this|these|those|that|it|they|he|she|such)\b|^(?:这|那|它|他|她|其)/i;

/** A sentence that is the title as a whole is not repeated below it. */
function clauseName(analysis: Analysis, group: readonly number[], index: number): Name | undefined {
  const title = clauseTitle(analysis, index);
  const name = toName(title);
  const isWhole = title === capitalize(stripFinalPunctuation(sentenceText(analysis, index)));
  return name !== undefined && isWhole && group.length >= 3 ? { ...name, titleSentence: index } : name;
}

function clauseTitle(analysis: Analysis, index: number): string | undefined {
  const sentence = stripFinalPunctuation(sentenceText(analysis, index).replace(CONNECTIVE, ""));
  if (QUOTED.test(sentence)) return undefined;
  const clauses = sentence.split(/[,;:，；：。]|\s[–—-]\s/).map((part) => part.trim());
  const clause = clauses.find((part) => !SPEECH.test(part)) ?? "";
  const width = columns(clause, TITLE_COLUMNS + 4);
  if (width >= TITLE_COLUMNS + 4 || width < 12 || DEPENDENT.test(clause)) return undefined;
  return capitalize(clause);
}
