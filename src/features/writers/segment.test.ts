import { describe, expect, it } from "vitest";
import { analyse, byScore, findKeywords, MAX_RANKED_SENTENCES, rankSentences } from "./analysis.ts";
import { splitBlocks } from "./blocks.ts";
import { MAX_SENTENCE_LENGTH, sampleEvenly, splitSentences, splitWords } from "./segment.ts";

const split = (text: string): string[] => splitSentences(text).map(({ start, end }) => text.slice(start, end));
const kinds = (text: string): string[] =>
  splitBlocks(text).map(({ kind, level, start, end }) => `${kind}${level || ""}:${text.slice(start, end)}`);

describe("sentences", () => {
  it.each([
    ["One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]],
    ["Dr. Smith paid 3.5 dollars, e.g. for tea. He left.", ["Dr. Smith paid 3.5 dollars, e.g. for tea.", "He left."]],
    ["“Really?” he asked. (Yes.) Then J. R. Hill came.", ["“Really?” he asked.", "(Yes.)", "Then J. R. Hill came."]],
    ["第一句。第二句！第三句？", ["第一句。", "第二句！", "第三句？"]],
    ["他说：“好！”然后走了。门关上了……没有声音。", ["他说：“好！”然后走了。", "门关上了……没有声音。"]],
    ["使用 Node.js 20。It works. 很好。", ["使用 Node.js 20。", "It works.", "很好。"]],
    ["مرحبا بالعالم؟ نعم.", ["مرحبا بالعالم؟", "نعم."]],
    ["no punctuation at all", ["no punctuation at all"]],
    ["... --- !!!", []],
  ])("%s", (text, sentences) => {
    expect(split(text)).toEqual(sentences);
  });

  it("go on over lines that an editor wrapped, and stop at lines the author broke", () => {
    const wrapped = "This is a line that was wrapped by an editor at\nsixty columns. Next.";
    expect(split(wrapped)).toEqual(["This is a line that was wrapped by an editor at\nsixty columns.", "Next."]);
    expect(split("Milk\nEggs\nFlour")).toEqual(["Eggs", "Flour"]);
  });

  it("are bounded where there is no punctuation, and never cut a character in two", () => {
    const sentences = split("😀".repeat(1_000));
    expect(sentences.join("")).toBe("😀".repeat(1_000));
    for (const sentence of sentences) {
      expect(sentence.length).toBeLessThanOrEqual(MAX_SENTENCE_LENGTH);
      expect(sentence).not.toMatch(/\p{Surrogate}/u);
    }
  });
});

describe("blocks", () => {
  it("know Markdown", () => {
    const text =
      "# Title #\n\nIntro line.\n\n## Part\n- one\n- two\n\n> quoted\n\n```\ncode. here.\n```\n| a | b |\n|---|---|\n| c | d |\n";
    expect(kinds(text)).toEqual([
      "heading1:Title #",
      "paragraph:Intro line.",
      "heading2:Part",
      "item:one",
      "item:two",
      "paragraph:quoted",
      "row:c",
    ]);
  });

  it("know the headings of plain Chinese and English text", () => {
    expect(kinds("第一章 起源\n孔子生于鲁国。\n一、思想\n（一）仁")).toEqual([
      "heading1:第一章 起源",
      "paragraph:孔子生于鲁国。",
      "heading2:一、思想",
      "heading3:（一）仁",
    ]);
    expect(
      kinds("Bees\n\nBees make honey. They live in hives.\n\nWasps\n\nWasps do not make honey. They hunt."),
    ).toEqual([
      "heading1:Bees",
      "paragraph:Bees make honey. They live in hives.",
      "heading2:Wasps",
      "paragraph:Wasps do not make honey. They hunt.",
    ]);
  });

  it("keep the text after a code fence that is never closed", () => {
    expect(kinds("```\nStill text.")).toEqual(["paragraph:```", "paragraph:Still text."]);
  });
});

describe("words and keywords", () => {
  it("fold case, plural and possessive", () => {
    expect(splitWords("The City's cities", "en").map(({ key, stop }) => [key, stop])).toEqual([
      ["the", true],
      ["city", false],
      ["city", false],
    ]);
  });

  it("prefer repeated phrases to their words", () => {
    const english = ["Machine learning needs data.", "With machine learning, data becomes models."].map((text) =>
      splitWords(text, "en"),
    );
    expect(findKeywords(english, "en", 2).map(({ text }) => text)).toEqual(["machine learning", "data"]);
    const chinese = ["人工智能需要数据。", "人工智能改变数据分析。"].map((text) => splitWords(text, "zh"));
    expect(findKeywords(chinese, "zh", 2).map(({ text }) => text)).toEqual(["人工智能", "数据"]);
  });

  it("spread keeps order, size and the first item", () => {
    expect(sampleEvenly([0, 1, 2, 3, 4, 5, 6, 7, 8, 9], 5)).toEqual([0, 2, 4, 6, 8]);
    expect(sampleEvenly([1, 2], 5)).toEqual([1, 2]);
  });
});

describe("rankSentences", () => {
  const rank = (sentences: string[]) => rankSentences(sentences.map((text) => splitWords(text, "en")));

  it("puts the sentence that shares most with the others first", () => {
    const { scores } = rank([
      "Bees make honey from nectar.",
      "Nectar comes from flowers.",
      "Honey keeps bees alive.",
      "Trains were late.",
    ]);
    expect(byScore(scores)[0]).toBe(0);
    expect(byScore(scores).at(-1)).toBe(3);
  });

  it("keeps the order of equals", () => {
    expect(byScore(rank(["Same words here.", "Same words here.", "Same words here."]).scores)).toEqual([0, 1, 2]);
  });

  it("looks at a bounded number of sentences", () => {
    const { ranking, total } = analyse("Bees make honey. ".repeat(MAX_RANKED_SENTENCES + 10));
    expect([total, ranking.scores.length]).toEqual([MAX_RANKED_SENTENCES + 10, MAX_RANKED_SENTENCES]);
  });
});
