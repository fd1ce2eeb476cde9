import { type Analysis, analyse, bestSentences, type SourceSection, sentenceText } from "./analysis.ts";
import { LABELS, type Language, skeletonBody } from "./language.ts";
import { type Basis, isSentence, type Outline, readOutline, writeOutline } from "./outline.ts";
import { endsSentence, gapBetween, safeCut } from "./plain-text.ts";
import { planSections } from "./sections.ts";
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

/** Approximate number of sentences that an article takes from a text; the rest of a long text is omitted. */
const MAX_SENTENCES = 80;
const MIN_PER_SECTION = 3;
const OPENING_BONUS = 1.2;
const SENTENCES_PER_PARAGRAPH = 5;

/**
 * An article from an outline (ours or another agent's) or, without a usable one, from the text. Never throws on invalid
 * data.
 */
export function writeDocument({ outline: given, text = "" }: { outline?: unknown; text?: string }): Article {
  const source = typeof given === "string" && given.trim() !== "" ? given : text;
  const { content, isTopic } = readRequest(source);
  const outline = readOutline(given) ?? readOutline(content);
  if (outline !== undefined) return articleFromOutline(outline);
  if (isTopic) return articleFromOutline(writeOutline(source));
  const body = skeletonBody(content);
  return body === undefined ? articleFromText(content, "text") : articleFromText(body, "topic");
}

function articleFromOutline(outline: Outline): Article {
  const { language, basis } = outline;
  const labels = LABELS[language];
  const sections = outline.sections.map((section, index) => ({
    title: section.title || (outline.sections.length > 1 ? labels.part(index + 1) : ""),
    paragraphs:
      basis === "topic" ? plannedParagraphs(section.points, language) : writtenParagraphs(section.points, language),
  }));
  const empty = outline.topic === "" && sections.length === 0;
  const title = empty
    ? ""
    : outline.topic || outline.sections.find((section) => section.title !== "")?.title || labels.untitled;
  return toArticle({ title, language, basis, sections });
}

function articleFromText(text: string, basis: Basis): Article {
  const analysis = analyse(text);
  const plan = planSections(analysis);
  const perSection = Math.max(MIN_PER_SECTION, Math.floor(MAX_SENTENCES / Math.max(1, plan.sections.length)));
  const sections = plan.sections.map((section) => ({
    title: section.title,
    paragraphs: sourceParagraphs(analysis, section, perSection),
  }));
  if (sections.length === 0) return articleFromOutline(writeOutline(text));
  return toArticle({ title: plan.title, language: analysis.language, basis, sections });
}

/** Preserves the paragraphs and lists of the source. */
function sourceParagraphs(analysis: Analysis, section: SourceSection, limit: number): string[] {
  const body = section.sentences.filter((index) => index !== section.titleSentence);
  const selected = body.length <= limit ? body : bestSentences(analysis, body, limit, OPENING_BONUS);
  const paragraphs: string[] = [];
  let openGroup: string | undefined;
  let openBlock = -1;
  for (const index of selected) {
    const { block: blockIndex } = analysis.sentences[index]!;
    const block = analysis.blocks[blockIndex]!;
    const group = `${block.kind} ${block.group}`;
    const sentence = sentenceText(analysis, index);
    if (sentence === "") continue;
    const last = paragraphs.length - 1;
    if (group !== openGroup) paragraphs.push(block.kind === "item" ? `- ${sentence}` : sentence);
    else if (block.kind === "item" && blockIndex !== openBlock) paragraphs[last] += `\n- ${sentence}`;
    else if (blockIndex !== openBlock && !endsSentence(paragraphs[last]!)) paragraphs.push(sentence);
    else paragraphs[last] = joinSentences([paragraphs[last]!, sentence]);
    openGroup = group;
    openBlock = blockIndex;
  }
  return paragraphs.length > 0 ? paragraphs : listOf(section.subtitles.filter((subtitle) => subtitle !== ""));
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

function toArticle(draft: Omit<Article, "introduction" | "markdown">): Article {
  const { title, language, basis, sections } = draft;
  const labels = LABELS[language];
  const titles = sections.map((section) => section.title).filter((name) => name !== "");
  const introduction: string[] = [];
  if (title !== "" && basis === "topic") introduction.push(labels.skeletonNote(title));
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
