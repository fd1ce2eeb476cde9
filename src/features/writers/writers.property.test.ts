import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { splitDocument, summarize, writeDocument, writeOutline } from "./index.ts";

const fragment = fc.oneof(
  fc.constantFrom(
    "Bees make honey. ",
    "Dr. Hill said: “No!” ",
    "人工智能改变医疗。",
    "“好！”他说。",
    "\n\n",
    "\n",
    "# ",
    "## Part\n",
    "- item\n",
    "1. ",
    "> ",
    "```\n",
    "| a | b |\n",
    "|---|\n",
    "---\n",
    "**bold** ",
    "[a](b)",
    "![](x) ",
    "# ``\n",
    "第一章 ",
    "一、",
    "😀",
    "👨‍👩‍👧",
    "\ud83d",
    "\ude00",
    "مرحبا؟ ",
    "e\u0301",
    "\u200d",
    "\r\n",
    "...",
    "……",
    "write an outline about ",
    "请写一份关于",
    "的大纲",
    "the following text: ",
    "This is a skeleton for “",
    '{"title":',
  ),
  fc.string({ unit: "binary", maxLength: 30 }),
  fc.string({ unit: "grapheme", maxLength: 30 }),
);
const text = fc.array(fragment, { maxLength: 40 }).map((parts) => parts.join(""));

describe("the writers, whatever they are given", () => {
  it("summaries quote the source in order and are never longer than it", () => {
    fc.assert(
      fc.property(text, fc.option(fc.integer({ min: -1, max: 12 }), { nil: undefined }), (source, sentences) => {
        const summary = summarize(source, sentences === undefined ? {} : { sentences });
        let position = 0;
        for (const sentence of summary.sentences) {
          const found = source.indexOf(sentence, position);
          expect(found).toBeGreaterThanOrEqual(position);
          position = found + sentence.length;
        }
        expect(summary.text.length).toBeLessThanOrEqual(source.length);
        expect(summary.text).not.toMatch(/\n|\p{Surrogate}/u);
        expect(summary.sentences.length).toBeLessThanOrEqual(summary.sourceSentences);
        expect(summary.sentences.length > 0).toBe(summary.sourceSentences > 0);
        expect(summarize(source, sentences === undefined ? {} : { sentences })).toEqual(summary);
      }),
    );
  });

  it("outlines are whole: single-line titles and points, no empty ones, the same every time", () => {
    fc.assert(
      fc.property(text, (source) => {
        const outline = writeOutline(source);
        for (const line of outline.sections.flatMap(({ title, points }) => [title, ...points])) {
          expect(line).not.toBe("");
          expect(line).not.toMatch(/\n|\p{Surrogate}/u);
        }
        expect(writeOutline(source)).toEqual(outline);
      }),
    );
  });

  it("articles stream in pieces that make up the Markdown, from text or outline", () => {
    fc.assert(
      fc.property(text, (source) => {
        for (const article of [writeDocument({ text: source }), writeDocument({ outline: writeOutline(source) })]) {
          const chunks = [...splitDocument(article)];
          expect(chunks.join("")).toBe(article.markdown);
          expect(chunks).not.toContain("");
          expect(article.markdown).not.toMatch(/\p{Surrogate}/u);
        }
        expect(writeDocument({ text: source })).toEqual(writeDocument({ text: source }));
      }),
    );
  });

  it("an outline of the agents' own shape survives its way through JSON", () => {
    fc.assert(
      fc.property(text, (source) => {
        const outline = writeOutline(source);
        const article = writeDocument({ outline: JSON.parse(JSON.stringify(outline)) });
        expect(article).toEqual(writeDocument({ outline }));
        if (outline.sections.length > 0) {
          expect(article).toMatchObject({ language: outline.language, basis: outline.basis });
          expect(article.sections).toHaveLength(outline.sections.length);
        }
      }),
    );
  });

  it("odd outlines never throw", () => {
    const key = fc.constantFrom(
      "title",
      "topic",
      "sections",
      "points",
      "items",
      "outline",
      "data",
      "heading",
      "bullets",
      "text",
      "children",
      "language",
      "basis",
    );
    const { tree } = fc.letrec((tie) => ({
      tree: fc.oneof(
        { depthSize: "small" },
        fc.oneof(fragment, fc.integer(), fc.boolean(), fc.constant(null), fc.constant(undefined)),
        fc.array(tie("tree"), { maxLength: 4 }),
        fc.dictionary(key, tie("tree"), { maxKeys: 4 }),
      ),
    }));
    fc.assert(
      fc.property(fc.oneof(tree, fc.anything()), (outline) => {
        const article = writeDocument({ outline });
        expect([...splitDocument(article)].join("")).toBe(article.markdown);
      }),
      { numRuns: 300 },
    );
  });

  it.each([
    ["words without punctuation", "word "],
    ["one endless word", "a"],
    ["Han without punctuation", "智"],
    ["full stops", "."],
    ["headings", "# a\n"],
    ["list items", "- a\n"],
    ["open brackets", "[a]("],
    ["fences", "```\n"],
    ["lone surrogates", "\ud83d"],
    ["sentences", "The bee, says Dr. Hill, makes honey. "],
    ["Chinese sentences", "蜜蜂采集花蜜，酿成蜂蜜。"],
  ])("a megabyte of %s is worked through", (_, unit) => {
    const source = unit.repeat(Math.ceil(2 ** 20 / unit.length));
    const outline = writeOutline(source);
    expect(outline.sections.length).toBeLessThanOrEqual(25);
    const { markdown } = writeDocument({ text: source });
    expect(markdown.length).toBeLessThan(100_000);
    expect(summarize(source).text.length).toBeLessThan(5_000);
  });
});
