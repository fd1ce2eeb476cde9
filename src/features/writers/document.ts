import type { Brief } from "./brief.ts";
import { LABELS, type Language } from "./language.ts";
import { type Basis, isSentence, type Outline, readOutline, writeOutline } from "./outline.ts";
import { isEnumerated, refersBack } from "./phrases.ts";
import { endsSentence, gapBetween, safeCut, stripFinalPunctuation } from "./plain-text.ts";
import { splitSentences } from "./segment.ts";
import { readRequest } from "./topic.ts";

interface ArticleSection {
  title: string;
  /** Markdown blocks: paragraphs of prose and bullet lists. */
  paragraphs: string[];
}

export interface Article {
  title: string;
  language: Language;
  basis: Basis;
  /** For a skeleton: a note that it is one, and its plan. An article based on a text begins with its first section. */
  introduction: string[];
  sections: ArticleSection[];
  markdown: string;
}

const SENTENCES_PER_PARAGRAPH = 5;

/**
 * An article from an outline (ours or another agent's) or, without a usable one, from the text. What an outline carries
 * of its text is kept whole and in order, below the headings of the outline. Never throws on invalid data.
 */
export function writeDocument({ outline: given, text = "" }: { outline?: unknown; text?: string }): Article {
  const source = typeof given === "string" && given.trim() !== "" ? given : text;
  const { brief, content } = readRequest(source);
  const outline = readOutline(given) ?? readOutline(content);
  if (outline === undefined) return articleFromOutline(writeOutline(source));
  return articleFromOutline(brief === undefined ? outline : { ...outline, brief: { ...outline.brief, ...brief } });
}

function articleFromOutline(outline: Outline): Article {
  const { language, basis, brief } = outline;
  const labels = LABELS[language];
  const kept = partToKeep(outline);
  const sections = outline.sections.map(({ paragraphs, points, title }, index) => ({
    title: title || (outline.sections.length > 1 ? labels.part(index + 1) : ""),
    paragraphs:
      paragraphs !== undefined
        ? sourceParagraphs(paragraphs, title, kept)
        : basis === "topic"
          ? plannedParagraphs(points, language)
          : writtenParagraphs(points, language),
  }));
  const empty = outline.topic === "" && sections.length === 0;
  const title = empty
    ? ""
    : outline.topic || outline.sections.find((section) => section.title !== "")?.title || labels.untitled;
  return toArticle({ title, language, basis, sections }, brief);
}

/** How much of the text fits the length that was asked for: 1 for all of it. */
function partToKeep({ brief, language, sections }: Outline): number {
  const text = sections.flatMap(({ paragraphs = [] }) => paragraphs).join("\n");
  const { length } = text.match(language === "zh" ? /\p{Script=Han}|[\p{L}\p{N}]+/gu : /\S+/g) ?? [];
  return brief?.length === undefined || length === 0 ? 1 : Math.min(1, brief.length / length);
}

/** All of it, or the beginning of each paragraph: what follows may refer to it, and not the other way round. */
function sourceParagraphs(paragraphs: readonly string[], title: string, kept: number): string[] {
  const [first = "", ...rest] = paragraphs;
  const all = [withoutTitle(first, title), ...rest].filter((paragraph) => paragraph !== "");
  if (kept >= 1) return all;
  return all.flatMap((paragraph) => {
    const sentences = splitSentences(paragraph);
    const last = sentences[Math.max(0, Math.round(sentences.length * kept) - 1)];
    return last === undefined || isListed(paragraph) ? paragraph : paragraph.slice(0, last.end);
  });
}

const isListed = (paragraph: string): boolean => /^[ \t]*(?:[-*+•|]|\d+[.)]|```)/.test(paragraph);

const PRONOUN = /\b(?:it|its|they|them|their|he|him|his|she|her|this|these|those|that|such)\b|[它他她这那其此该]/i;

/** A sentence that is the heading is not repeated below it, unless the next one may refer to it. */
function withoutTitle(paragraph: string, title: string): string {
  const [first, second] = splitSentences(paragraph);
  if (first === undefined || isListed(paragraph)) return paragraph;
  const opening = stripFinalPunctuation(paragraph.slice(first.start, first.end));
  if (opening.toLowerCase() !== title.toLowerCase()) return paragraph;
  // "You need:" above a list.
  if (second === undefined) return /[:：]$/.test(paragraph) ? "" : paragraph;
  const next = paragraph.slice(second.start, second.end);
  return PRONOUN.test(next) || isEnumerated(next) || refersBack(next) ? paragraph : paragraph.slice(second.start);
}

/** Sentences become prose; phrases stay a list, since turning them into sentences would require invented content. */
function writtenParagraphs(points: readonly string[], language: Language): string[] {
  const sentences = points
    .filter(isSentence)
    .map((point) => (endsSentence(point) ? point : point + LABELS[language].fullStop));
  const phrases = points.filter((point) => !isSentence(point));
  const paragraphs: string[] = [];
  for (let start = 0; start < sentences.length; start += SENTENCES_PER_PARAGRAPH) {
    paragraphs.push(joinSentences(sentences.slice(start, start + SENTENCES_PER_PARAGRAPH)));
  }
  return [...paragraphs, ...listOf(phrases)];
}

function plannedParagraphs(points: readonly string[], language: Language): string[] {
  const phrases = points.filter((point) => !endsSentence(point));
  const sentences = points.filter((point) => endsSentence(point));
  return [...(phrases.length > 0 ? [LABELS[language].guide(phrases)] : []), ...writtenParagraphs(sentences, language)];
}

function listOf(items: readonly string[]): string[] {
  return items.length === 0 ? [] : [items.map((item) => `- ${item}`).join("\n")];
}

function joinSentences(sentences: readonly string[]): string {
  return sentences.reduce((text, sentence) => text + gapBetween(text, sentence) + sentence, "");
}

function toArticle(draft: Omit<Article, "introduction" | "markdown">, brief?: Brief): Article {
  const { title, language, basis, sections } = draft;
  const labels = LABELS[language];
  const titles = sections.map((section) => section.title).filter((name) => name !== "");
  const introduction: string[] = [];
  if (title !== "" && basis === "topic") introduction.push(labels.skeletonNote(title, brief));
  if (titles.length > 0 && basis === "topic") introduction.push(labels.plan(titles));
  const blocks = [
    ...(title === "" ? [] : [`# ${title}`]),
    ...introduction.map((paragraph, index) => (basis === "topic" && index === 0 ? `> ${paragraph}` : paragraph)),
    ...sections.flatMap((section) => [...(section.title === "" ? [] : [`## ${section.title}`]), ...section.paragraphs]),
  ];
  return { ...draft, introduction, markdown: blocks.length === 0 ? "" : `${blocks.join("\n\n")}\n` };
}

const MAX_CHUNK_LENGTH = 400;
const CHUNK_END = /\n+|[.!?][)"'”’]*\s+|[。！？][”’」』）]*/g;

/**
 * Splits the Markdown for streaming: one heading, list entry or sentence per chunk. Joined, the chunks equal the
 * Markdown.
 */
export function* splitDocument(article: Pick<Article, "markdown">): Generator<string, void, undefined> {
  const { markdown } = article;
  let start = 0;
  for (const { index, 0: mark } of markdown.matchAll(CHUNK_END)) {
    const end = index + mark.length;
    // Trailing line breaks belong to the sentence, so that no chunk is only white space.
    if (markdown.charAt(end) === "\n") continue;
    yield* boundedPieces(markdown, start, end);
    start = end;
  }
  yield* boundedPieces(markdown, start, markdown.length);
}

function* boundedPieces(text: string, start: number, end: number): Generator<string, void, undefined> {
  let from = start;
  while (from < end) {
    const to = end - from <= MAX_CHUNK_LENGTH ? end : safeCut(text, from, from + MAX_CHUNK_LENGTH);
    yield text.slice(from, to);
    from = to;
  }
}
