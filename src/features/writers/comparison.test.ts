/** Summaries compared with the first sentences of the text, of the same length. */
import { describe, expect, it } from "vitest";
import { CHINESE_TEXTS } from "./fixtures/summarized-chinese.ts";
import { ENGLISH_TEXTS, type SummarizedText } from "./fixtures/summarized-english.ts";
import { detectLanguage } from "./language.ts";
import { splitSentences, splitWords } from "./segment.ts";
import { summarize } from "./summary.ts";

interface Score {
  /** Share of the facts that are in the summary. */
  readonly facts: number;
  /** Share of the words of the reference that are in the summary. */
  readonly overlap: number;
}

interface Comparison {
  readonly name: string;
  readonly ours: Score;
  readonly baseline: Score;
}

function scoreOf(summary: string, { facts, reference }: SummarizedText): Score {
  const known = wordsOf(summary);
  const wanted = [...wordsOf(reference)];
  return {
    facts: facts.filter(([, found]) => found.test(summary)).length / facts.length,
    overlap: wanted.filter((word) => known.has(word)).length / wanted.length,
  };
}

function wordsOf(text: string): Set<string> {
  const language = detectLanguage(text);
  const words = splitSentences(text).flatMap(({ end, start }) => splitWords(text.slice(start, end), language));
  return new Set(words.filter(({ stop }) => !stop).map(({ key }) => key));
}

/** As many whole sentences from the beginning as are needed to be at least as long as the summary. */
function firstSentences(text: string, length: number): string {
  let taken = "";
  for (const { end } of splitSentences(text)) {
    taken = text.slice(0, end);
    if (taken.length >= length) break;
  }
  return taken;
}

const comparisons: readonly Comparison[] = [...ENGLISH_TEXTS, ...CHINESE_TEXTS].map((text) => {
  const summary = summarize(text.text);
  return {
    name: text.name,
    ours: scoreOf(summary.text, text),
    baseline: scoreOf(firstSentences(text.text, summary.text.length), text),
  };
});

const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
const totalOf = (of: (comparison: Comparison) => number) => mean(comparisons.map(of));

/** Shown when an expectation fails. */
function table(): string {
  const percent = (share: number) => `${Math.round(share * 100)}`.padStart(4);
  const row = ({ baseline, name, ours }: Comparison) =>
    `facts${percent(ours.facts)} :${percent(baseline.facts)}   words${percent(ours.overlap)} :${percent(baseline.overlap)}   ${name}`;
  const total = {
    name: "all",
    ours: { facts: totalOf(({ ours }) => ours.facts), overlap: totalOf(({ ours }) => ours.overlap) },
    baseline: {
      facts: totalOf(({ baseline }) => baseline.facts),
      overlap: totalOf(({ baseline }) => baseline.overlap),
    },
  };
  return `Percent, summary : first sentences\n${[...comparisons, total].map(row).join("\n")}`;
}

describe("a summary", () => {
  it("has more of the facts than the first sentences have", () => {
    const ours = totalOf(({ ours: { facts } }) => facts);
    const theirs = totalOf(({ baseline: { facts } }) => facts);
    expect(ours, table()).toBeGreaterThan(1.5 * theirs);
    const worse = comparisons.filter((one) => one.ours.facts < one.baseline.facts);
    expect(worse.map(({ name }) => name).length, table()).toBeLessThanOrEqual(1);
  });

  it("has more of the words of a summary by a person", () => {
    const ours = totalOf(({ ours: { overlap } }) => overlap);
    const theirs = totalOf(({ baseline: { overlap } }) => overlap);
    expect(ours, table()).toBeGreaterThan(1.4 * theirs);
    const worse = comparisons.filter((one) => one.ours.overlap < one.baseline.overlap);
    expect(worse.map(({ name }) => name).length, table()).toBeLessThanOrEqual(1);
  });

  it.each([...ENGLISH_TEXTS, ...CHINESE_TEXTS])("is measured by facts that are in the text: $name", (text) => {
    const { length } = text.text.split(/\s+|(?=\p{Script=Han})/u);
    expect(length).toBeGreaterThanOrEqual(250);
    expect(length).toBeLessThanOrEqual(750);
    for (const [fact, found] of text.facts) expect(found.test(text.text), fact).toBe(true);
    expect(scoreOf(text.reference, text).overlap).toBe(1);
  });
});
