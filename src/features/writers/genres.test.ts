/** What holds for outline, article and summary of ten kinds of text in each language. */
import { describe, expect, it } from "vitest";
import { writeDocument } from "./document.ts";
import { CHINESE_GENRES } from "./fixtures/genres-chinese.ts";
import { ENGLISH_GENRES, type GenreText } from "./fixtures/genres-english.ts";
import { CHINESE_TEXTS } from "./fixtures/summarized-chinese.ts";
import { ENGLISH_TEXTS } from "./fixtures/summarized-english.ts";
import { LABELS } from "./language.ts";
import { type Outline, writeOutline } from "./outline.ts";
import { splitSentences } from "./segment.ts";
import { summarize } from "./summary.ts";

/** Sentences that must be kept of the texts that are also compared with summaries by people. */
const KEPT: Readonly<Record<string, string>> = {
  "news: a bridge is closed": "The city council of Marlow voted on Tuesday night to close the old bridge",
  "how-to: houseplants": "In most cases the reason is not a lack of talent but too much water.",
  "science: bumblebees": "Nevertheless, the results show that a pesticide",
  "新闻：地铁三号线": "临江市轨道交通三号线昨天上午九时正式开通运营",
  "科学：睡眠与记忆": "进一步的分析表明，决定成绩的不是总的睡眠时间",
  "方法：做面包": "关键在于控制水分、温度和时间",
};

const TEXTS: readonly GenreText[] = [
  ...ENGLISH_GENRES,
  ...CHINESE_GENRES,
  ...[...ENGLISH_TEXTS, ...CHINESE_TEXTS].flatMap(({ name, text }) =>
    KEPT[name] === undefined ? [] : [{ name, text, kept: [KEPT[name]] }],
  ),
];

const withoutSpaces = (text: string) => text.replace(/\s+/g, "");
const wordsOf = (outline: Outline) =>
  withoutSpaces([outline.topic, ...outline.sections.flatMap(({ points, title }) => [title, ...points])].join(""));
const sentencesOf = (text: string) => splitSentences(text).map(({ end, start }) => text.slice(start, end));

/** Numbers, dates and names: capitals inside a sentence, and what is in quotation marks. */
const ENTITY = /\d[\d.,:]*\d|\d|[零一二三四五六七八九十百千万亿]{2,}|“[^”]{1,12}”|(?<=[\p{Ll},;] )\p{Lu}\p{L}+/gu;
const REFERS_BACK =
  /^(?:it|they|he|she|this|these|those|that|his|their|such)\b|^(?:这|那|它|他|她)|^(?:first|second|third|then|next)\b|^(?:第[一二三]|首先|其次|然后|[一二三]是)/i;

it("are ten in each language", () => {
  expect(TEXTS.filter(({ text }) => /\p{Script=Han}/u.test(text))).toHaveLength(10);
  expect(TEXTS).toHaveLength(20);
});

describe.each(TEXTS)("$name", ({ kept, text }) => {
  const outline = writeOutline(text);
  const { keyPoints, introduction } = LABELS[outline.language];
  const article = writeDocument({ outline: JSON.parse(JSON.stringify(outline)), text: "Write it out." });

  it("has an outline of at most a third, with headings that are phrases of the text", () => {
    expect(wordsOf(outline).length).toBeLessThanOrEqual(withoutSpaces(text).length / 3);
    expect(outline.sections.length).toBeGreaterThan(1);
    const titles = [outline.topic, ...outline.sections.map(({ title }) => title)];
    expect(new Set(titles).size).toBe(titles.length);
    for (const title of titles.filter((name) => name !== keyPoints && name !== introduction)) {
      expect(text.toLowerCase()).toContain(title.toLowerCase().replace(/…$/, ""));
    }
  });

  it("has an outline that carries the text, paragraph by paragraph, and points of each section's own", () => {
    const carried = outline.sections.flatMap(({ paragraphs = [] }) => paragraphs);
    const whole = text.split(/\n\s*\n/);
    expect(carried).toEqual(whole[0] === outline.topic ? whole.slice(1) : whole);
    for (const { paragraphs = [], points } of outline.sections) {
      const own = paragraphs.join("\n").replace(/\s+/g, " ");
      const places = points.map((point) => own.indexOf(point.replace(/[.。]$/, "")));
      expect(places).not.toContain(-1);
      expect(places).toEqual([...places].sort((a, b) => a - b));
    }
    expect(outline.sections.some(({ points }) => points.length > 0)).toBe(true);
  });

  it("has an article with all of its sentences in order, below the headings", () => {
    const prose = article.sections.flatMap(({ paragraphs }) => paragraphs).join("\n\n");
    const isHeading = (sentence: string) =>
      outline.sections.some(({ title }) => sentence.toLowerCase().startsWith(title.toLowerCase()));
    const given = sentencesOf(outline.sections.flatMap(({ paragraphs = [] }) => paragraphs).join("\n\n"));
    const written = sentencesOf(prose);
    expect(written.filter((sentence) => !given.includes(sentence))).toEqual([]);
    expect(given.filter((sentence) => !written.includes(sentence) && !isHeading(sentence))).toEqual([]);
    const entities = [...new Set(text.match(ENTITY))];
    const lost = entities.filter((entity) => !article.markdown.includes(entity));
    expect(lost.length, lost.join()).toBeLessThanOrEqual(entities.length / 10);
    for (const { paragraphs, title } of article.sections) {
      const dropped = given.find((sentence) => sentence.toLowerCase().startsWith(`${title.toLowerCase()}.`));
      if (dropped !== undefined && !prose.includes(dropped)) expect(paragraphs[0]).not.toMatch(REFERS_BACK);
    }
  });

  it("has a summary of 15 to 30 percent that keeps what matters most, with what its sentences refer to", () => {
    const summary = summarize(text);
    const share = withoutSpaces(summary.text).length / withoutSpaces(text).length;
    expect(share).toBeGreaterThanOrEqual(0.15);
    expect(share).toBeLessThanOrEqual(0.3);
    for (const sentence of kept) expect(summary.text).toContain(sentence);
    const all = sentencesOf(text);
    const lost = summary.sentences.filter((sentence) => {
      const at = all.indexOf(sentence);
      return at > 0 && REFERS_BACK.test(sentence) && !summary.sentences.includes(all[at - 1]!);
    });
    expect(lost).toEqual([]);
  });
});
