import { type Analysis, analyse, type SourceSection, sentenceText } from "./analysis.ts";
import { type Brief, readBrief } from "./brief.ts";
import { detectLanguage, LABELS, type Language, skeletonBody } from "./language.ts";
import { hasLooseEnd, isEnumerated, isFormality, mainClause, refersBack } from "./phrases.ts";
import {
  capitalize,
  cleanInline,
  columns,
  endsSentence,
  MAX_TITLE_LENGTH,
  stripMarks,
  truncate,
} from "./plain-text.ts";
import { planSections } from "./sections.ts";
import { bestSentences } from "./selection.ts";
import { buildSkeleton } from "./skeletons.ts";
import { MAX_SOURCE_LENGTH, readParagraphs, splitParagraphs } from "./source.ts";
import { readRequest } from "./topic.ts";

/** "text": based on a text; "topic": a skeleton for a bare topic, without facts. */
export type Basis = "text" | "topic";

interface OutlineSection {
  title: string;
  points: string[];
  /** What the text has in this section, for an article that is written from the outline. */
  paragraphs?: string[];
}

export interface Outline {
  topic: string;
  language: Language;
  basis: Basis;
  /** What the request says about the article, beside its subject. */
  brief?: Brief;
  sections: OutlineSection[];
}

/** An outline of a text, or a skeleton for a topic; no sections if the input has neither. */
export function writeOutline(text: string): Outline {
  const { brief, content, isTopic } = readRequest(text);
  const outline = (isTopic ? undefined : textOutline(content)) ?? topicOutline(content, text);
  return brief === undefined || outline.sections.length === 0 ? outline : { ...outline, brief };
}

function textOutline(content: string): Outline | undefined {
  const body = skeletonBody(content);
  // Only the note that something is a skeleton: neither a topic nor a text.
  if (body?.trim() === "") return { topic: "", language: detectLanguage(content), basis: "topic", sections: [] };
  const analysis = analyse(body ?? content);
  const { sections, title } = planSections(analysis);
  if (sections.length === 0) return undefined;
  const points = selectPoints(analysis, title, sections);
  const lengths = sections.map(({ end, start }) => end - start);
  const total = lengths.reduce((sum, length) => sum + length, 0);
  return {
    topic: title,
    language: analysis.language,
    basis: body === undefined ? "text" : "topic",
    sections: sections.map((section, index) => {
      const share = Math.ceil((MAX_SOURCE_LENGTH * lengths[index]!) / Math.max(total, 1));
      const paragraphs = splitParagraphs(analysis.text.slice(section.start, section.end), share);
      return {
        title: section.title,
        points: points[index]!,
        paragraphs: paragraphs.length > 0 ? paragraphs : undefined,
      };
    }),
  };
}

function topicOutline(content: string, request: string): Outline {
  const topic = truncate(cleanInline(content.slice(0, 2 * MAX_TITLE_LENGTH)), MAX_TITLE_LENGTH);
  // The text around the topic determines the language of the answer: "写一份关于 Kubernetes 的大纲".
  const language = detectLanguage(request);
  if (!/[\p{L}\p{N}\p{Extended_Pictographic}]/u.test(topic))
    return { topic: "", language, basis: "topic", sections: [] };
  const skeleton = buildSkeleton(topic, language);
  return {
    topic: capitalize(skeleton.topic),
    language,
    basis: "topic",
    sections: skeleton.sections.map(({ title, points }) => ({
      title: capitalize(title),
      points: points.map(capitalize),
    })),
  };
}

const MAX_POINTS_PER_SECTION = 4;
const MAX_SUBTITLES = 12;
const OPENING_BONUS = 1.2;
const POINT_COLUMNS = 90;
const MIN_POINT_COLUMNS = 40;
/** A statement of fewer columns says too little on its own. */
const MIN_POINT = 16;
/** An outline has at most this part of its text: it is to be read faster. */
const SHARE_OF_TEXT = 3;
/** Characters that an outline may have of any text: notes of a few lines are their own outline. */
const MIN_ROOM = { en: 80, zh: 60 } as const;
/** Characters that the mark of a heading or point takes up beside its words. */
const MARKS = 2;

/** One point for each section, then more of those that say most, as far as there is room. */
function selectPoints(analysis: Analysis, title: string, sections: readonly SourceSection[]): string[][] {
  const subtitles = sections.map((section) =>
    section.subtitles.filter((subtitle) => subtitle !== "").slice(0, MAX_SUBTITLES),
  );
  const given = [title, ...sections.map((section) => section.title), ...subtitles.flat()];
  let room = Math.max(
    MIN_ROOM[analysis.language],
    Math.floor(analysis.text.replace(/\s+/g, " ").trim().length / SHARE_OF_TEXT),
  );
  for (const line of given) room -= line.length + MARKS;
  const share = room / sections.length;
  const candidates = sections.map((section) => toPoints(analysis, title, section, share, sections.length === 1));
  const chosen: number[][] = sections.map(() => []);
  for (let round = 0; round < MAX_POINTS_PER_SECTION; round += 1) {
    sections.forEach((_, index) => {
      const points = candidates[index]!;
      const lengthOf = (sentence: number) => points.get(sentence)!.length + MARKS;
      const others = [...points.keys()].filter((sentence) => !chosen[index]!.includes(sentence));
      // The first ones leave as much for the sections that follow.
      const own = round === 0 ? room / (sections.length - index) : room;
      if (subtitles[index]!.length >= 2 || others.length === 0) return;
      const [best] = bestSentences(analysis, others, { count: 1, openingBonus: OPENING_BONUS, room: own, lengthOf });
      if (best === undefined) return;
      chosen[index]!.push(best);
      room -= lengthOf(best);
    });
  }
  // A few lines have room for nothing but a title, and still get a point.
  if (sections.length === 1 && chosen[0]!.length === 0 && subtitles[0]!.length === 0) {
    chosen[0] = bestSentences(analysis, [...candidates[0]!.keys()], { count: 1, openingBonus: OPENING_BONUS });
  }
  return sections.map((_, index) => {
    if (chosen[index]!.length === 0) return subtitles[index]!;
    return chosen[index]!.sort((a, b) => a - b).map((sentence) => candidates[index]!.get(sentence)!);
  });
}

/** What each sentence of a section would be as a point: itself, or its main clause. */
function toPoints(
  analysis: Analysis,
  topic: string,
  section: SourceSection,
  room: number,
  isOnly: boolean,
): Map<number, string> {
  const { language } = analysis;
  const limit = Math.min(POINT_COLUMNS, Math.max(MIN_POINT_COLUMNS, language === "zh" ? 2 * room : room));
  const points = section.sentences.flatMap((index) => {
    const sentence = sentenceText(analysis, index);
    const clause = mainClause(sentence, language, limit);
    const isWhole =
      clause === undefined || sentence.startsWith(clause) === false || sentence.length - clause.length <= 2;
    return sentence === "" ? [] : [{ index, sentence, point: isWhole ? sentence : clause + LABELS[language].fullStop }];
  });
  const own = points.filter(({ sentence }) => ![topic, section.title].some((title) => contains(sentence, title)));
  const independent = own.filter(({ index, sentence }) => {
    const isListed = analysis.blocks[analysis.sentences[index]!.block]!.kind === "item";
    const isStatement = endsSentence(sentence) && !/[?？]$/.test(sentence) && columns(sentence, MIN_POINT) >= MIN_POINT;
    return (isListed || isStatement) && !refersBack(sentence) && !isEnumerated(sentence) && !isFormality(sentence);
  });
  const complete = independent.filter(({ sentence }) => !hasLooseEnd(sentence));
  // Notes of a few lines are taken as they are.
  const usable = [complete, independent, ...(isOnly ? [own, points] : [])].find((list) => list.length > 0) ?? [];
  return new Map(usable.map(({ index, point }) => [index, point]));
}

const contains = (sentence: string, title: string) =>
  sentence.toLowerCase().includes(title.toLowerCase().replace(/…$/, ""));

const MAX_SECTIONS = 50;
const MAX_POINTS = 50;
const MAX_DEPTH = 6;
const MAX_LINES = 1_000;
const MAX_POINT_LENGTH = 2_000;

/** Member names that different agents use for the same thing; the first non-empty one is used. */
const TITLE_KEYS = "topic title heading name subject section chapter 标题 题目 主题".split(" ");
const SECTION_KEYS = "sections chapters outline headings parts items children body content 大纲 章节".split(" ");
const POINT_KEYS = [
  ..."points bullets items keyPoints key_points subsections sub_sections".split(" "),
  ..."children content description summary details 要点 内容".split(" "),
];
const TEXT_KEYS = "text point title heading content name description 标题 内容".split(" ");
/** Members that wrap the actual outline. */
const ENVELOPE_KEYS = ["outline", "data", "result", "output", "大纲"];

type Fields = Readonly<Record<string, unknown>>;

/** Reads an outline in our format or that of another agent; undefined if the value does not contain one. */
export function readOutline(value: unknown): Outline | undefined {
  const { title, sections } = readValue(value, 0) ?? {};
  if (sections === undefined || (sections.length === 0 && !title)) return undefined;
  const points = sections.flatMap((section) => section.points);
  const given = isFields(value) ? value : {};
  const brief = readBrief(given.brief);
  const stated = given.language === "en" || given.language === "zh" ? given.language : undefined;
  return {
    topic: title ?? "",
    language:
      stated ?? detectLanguage([title ?? "", ...sections.map((section) => section.title), ...points].join("\n")),
    basis: given.basis === "text" || given.basis === "topic" ? given.basis : basisOf(points),
    brief,
    sections,
  };
}

/** Points that are mostly sentences come from a source; bare phrases only describe what to write. */
function basisOf(points: readonly string[]): Basis {
  return points.filter(isSentence).length * 2 > points.length ? "text" : "topic";
}

export function isSentence(point: string): boolean {
  if (endsSentence(point)) return true;
  if (/\p{Script=Han}/u.test(point))
    return point.length >= 12 && /[，；]|是|了|已经|可以|能够|需要|使得|让/.test(point);
  return (
    point.split(" ").length >= 6 &&
    /\b(?:is|are|was|were|has|have|had|can|could|will|would|must|may|does|do)\b/i.test(point)
  );
}

function readValue(
  value: unknown,
  depth: number,
): { title: string | undefined; sections: OutlineSection[] } | undefined {
  if (depth > MAX_DEPTH) return undefined;
  if (typeof value === "string") {
    const parsed = parseJson(value);
    return parsed === undefined ? readMarkdown(value) : readValue(parsed, depth + 1);
  }
  if (Array.isArray(value)) {
    const sections = readSections(value);
    return sections.length === 0 ? undefined : { title: undefined, sections };
  }
  if (!isFields(value)) return undefined;
  const title = firstText(value, TITLE_KEYS);
  for (const key of SECTION_KEYS) {
    const inner = value[key];
    if (Array.isArray(inner)) {
      const sections = readSections(inner);
      if (sections.length > 0) return { title, sections };
    }
  }
  for (const key of ENVELOPE_KEYS) {
    const inner = Object.hasOwn(value, key) ? readValue(value[key], depth + 1) : undefined;
    if (inner !== undefined) return { title: title ?? inner.title, sections: inner.sections };
  }
  const points = firstPoints(value);
  if (points.length > 0) return { title, sections: [{ title: "", points }] };
  return title === undefined ? undefined : { title, sections: [] };
}

const HEADING = /^\s*(#{1,6})\s+(\S.*)$/;
const ITEM = /^(\s*)(?:[-*+•]\s+|\d{1,3}[.)、．]\s*(?!\d)|(\d{1,3}(?:\.\d{1,3})+)[.)、．]?\s+)(\S.*)$/;
/** A request for a document, above the outline itself. */
const LEAD_IN = /[:：]\s*$/;
/** Notes about the outline, such as the one in our skeletons. */
const REMARK = /^\s*>/;

/**
 * An outline written by hand: headings with lists below them, or a list of two levels. A line of prose makes it a text,
 * and so does a flat list.
 */
function readMarkdown(text: string): { title: string | undefined; sections: OutlineSection[] } | undefined {
  const lines = text.split("\n", MAX_LINES + 1).filter((line) => line.trim() !== "" && !REMARK.test(line));
  if (lines.length > MAX_LINES) return undefined;
  const hasHeadings = lines.some((line) => HEADING.test(line));
  let title: string | undefined;
  const sections: OutlineSection[] = [];
  for (const line of lines) {
    const [, marks = "", heading = ""] = HEADING.exec(line) ?? [];
    const [, indent = "", number = "", item = ""] = ITEM.exec(line) ?? [];
    if (heading === "" && item === "") {
      if (title === undefined && sections.length === 0 && LEAD_IN.test(line)) continue;
      return undefined;
    }
    if (marks === "#" && title === undefined && sections.length === 0) title = tidyTitle(heading);
    else if (heading !== "") sections.push({ title: tidyTitle(heading), points: [] });
    else if (!hasHeadings && indent === "" && number === "") sections.push({ title: tidyTitle(item), points: [] });
    else {
      if (sections.length === 0) sections.push({ title: "", points: [] });
      sections.at(-1)?.points.push(tidyPoint(item));
    }
  }
  const isOutline = hasHeadings ? sections.length >= 2 : sections.some(({ points }) => points.length > 0);
  return isOutline && sections.length <= MAX_SECTIONS ? { title, sections } : undefined;
}

/** JSON sent as text, bare or in a code fence. */
function parseJson(text: string): unknown {
  const body = text
    .trim()
    .replace(/^```(?:json)?\s*/, "")
    .replace(/\s*```$/, "");
  if (!/^[{[]/.test(body)) return undefined;
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

function readSections(values: readonly unknown[]): OutlineSection[] {
  const sections: OutlineSection[] = [];
  for (const value of values.slice(0, MAX_SECTIONS)) {
    if (typeof value === "string") {
      const title = tidyTitle(value);
      if (title !== "") sections.push({ title, points: [] });
    } else if (isFields(value)) {
      const title = firstText(value, TITLE_KEYS) ?? "";
      const points = firstPoints(value);
      const paragraphs = readParagraphs(value.paragraphs);
      if (title !== "" || points.length > 0 || paragraphs.length > 0)
        sections.push({ title, points, paragraphs: paragraphs.length > 0 ? paragraphs : undefined });
    }
  }
  return sections;
}

function firstPoints(fields: Fields): string[] {
  return POINT_KEYS.map((key) => readPoints(fields[key], 0)).find((found) => found.length > 0) ?? [];
}

function readPoints(value: unknown, depth: number): string[] {
  if (typeof value === "string")
    return value
      .slice(0, 20 * MAX_POINT_LENGTH)
      .split("\n")
      .map(tidyPoint)
      .filter(Boolean)
      .slice(0, MAX_POINTS);
  if (!Array.isArray(value) || depth > 2) return [];
  return value
    .slice(0, MAX_POINTS)
    .flatMap((item: unknown): string[] => {
      if (typeof item === "string" || typeof item === "number") return [tidyPoint(String(item))];
      if (!isFields(item)) return [];
      const text = firstText(item, TEXT_KEYS);
      const inner = POINT_KEYS.flatMap((key) => (Array.isArray(item[key]) ? readPoints(item[key], depth + 1) : []));
      return text === undefined ? inner : [text, ...inner];
    })
    .filter((point) => point !== "")
    .slice(0, MAX_POINTS);
}

function firstText(fields: Fields, keys: readonly string[]): string | undefined {
  for (const key of keys) {
    const value = fields[key];
    const text = typeof value === "string" ? tidyTitle(value) : "";
    if (text !== "") return text;
  }
  return undefined;
}

function tidyTitle(text: string): string {
  return truncate(tidyPoint(text), 3 * MAX_TITLE_LENGTH);
}

function tidyPoint(text: string): string {
  return truncate(stripMarks(cleanInline(text.slice(0, 2 * MAX_POINT_LENGTH))), MAX_POINT_LENGTH);
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
