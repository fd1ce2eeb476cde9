import { describe, expect, it } from "vitest";
import { splitDocument, writeDocument } from "./document.ts";
import { CORAL_REEFS, MEDICAL_AI } from "./fixtures/texts.ts";
import { writeOutline } from "./outline.ts";

describe("document from an outline", () => {
  it("writes out the text that an outline carries, whole and below its headings", () => {
    const article = writeDocument({ outline: writeOutline(CORAL_REEFS), text: "Write it out." });
    expect(article).toMatchObject({ language: "en", basis: "text", introduction: [] });
    const prose = article.sections.flatMap(({ paragraphs }) => paragraphs).join("\n\n");
    expect(prose).toBe(CORAL_REEFS);
  });

  it.each([
    [
      "Two piers are cracked. Repairing them would cost 31 million.",
      "Two piers are cracked. Repairing them would cost 31 million.",
    ],
    ["Two piers are cracked. First, there is the cost.", "Two piers are cracked. First, there is the cost."],
    ["Two piers are cracked. A repair would cost 31 million.", "A repair would cost 31 million."],
  ])("repeats a heading only where the next sentence may refer to it: %s", (paragraph, written) => {
    const sections = [{ title: "Two piers are cracked", points: [], paragraphs: [paragraph] }];
    expect(writeDocument({ outline: { title: "Bridge", sections } }).sections[0]?.paragraphs).toEqual([written]);
  });

  it("writes the points of an outline without a text as prose", () => {
    const { topic, sections } = writeOutline(CORAL_REEFS);
    const outline = { topic, sections: sections.map(({ points, title }) => ({ title, points })) };
    expect(writeDocument({ outline }).markdown).toContain(
      "## Warming is not the only threat\n\nFertiliser washed from farms feeds seaweed that smothers young corals. Overfishing removes",
    );
  });

  it("keeps to the length that was asked for, with the beginning of each paragraph", () => {
    const { markdown, sections } = writeDocument({
      text: `Write an article of about 120 words from the following text:\n${CORAL_REEFS}`,
    });
    expect(markdown.split(/\s+/).length).toBeLessThan(180);
    const paragraphs = sections.flatMap((section) => section.paragraphs);
    expect(paragraphs).toHaveLength(4);
    for (const paragraph of paragraphs) expect(CORAL_REEFS).toContain(paragraph);
  });

  it("says that a skeleton is one, in the language of the topic", () => {
    const english = writeDocument({ outline: writeOutline("electric cars") });
    expect(english.markdown).toMatch(
      /^# Electric cars\n\n> This is a skeleton for “Electric cars”, built without source material/,
    );
    expect(english.sections[0]?.paragraphs).toEqual([
      "Start with a short definition, and what falls outside it; then turn to the need or problem behind it; close with who is involved and who is affected.",
    ]);
    const chinese = writeDocument({ outline: writeOutline("量子计算") });
    expect(chinese.markdown).toMatch(/^# 量子计算\n\n> 这是《量子计算》的写作骨架，没有使用任何素材/);
    expect(chinese.sections[1]?.paragraphs).toEqual([
      "本节先写读者必须了解的三四个术语；再写这些概念之间的关系；最后写一个常见误解及其澄清。",
    ]);
  });

  it("reads the outlines of other agents", () => {
    const article = writeDocument({
      outline: {
        outline: {
          title: "Remote work",
          sections: [
            { heading: "Benefits", bullets: ["Flexible hours", { text: "No commute" }, 3, null] },
            { title: "Risks", items: ["People may feel lonely when they rarely meet."] },
            "Conclusion",
            42,
          ],
        },
      },
    });
    expect(article).toMatchObject({ title: "Remote work", basis: "topic" });
    expect(article.sections).toEqual([
      { title: "Benefits", paragraphs: ["This section covers: Flexible hours; No commute; 3."] },
      { title: "Risks", paragraphs: ["People may feel lonely when they rarely meet."] },
      { title: "Conclusion", paragraphs: [] },
    ]);
  });

  it("reads an outline that travelled as JSON text, also below a request", () => {
    const json = JSON.stringify(writeOutline(MEDICAL_AI));
    const expected = writeDocument({ outline: writeOutline(MEDICAL_AI) });
    expect(writeDocument({ text: json })).toEqual(expected);
    expect(writeDocument({ outline: `\`\`\`json\n${json}\n\`\`\`` })).toEqual(expected);
    expect(writeDocument({ text: `请根据以下大纲生成文章正文：\n${json}` })).toEqual(expected);
  });

  it("keeps markup in titles and points from becoming structure", () => {
    const article = writeDocument({
      outline: {
        title: "# A\n## B",
        sections: [
          { title: "C\n\n# D", points: ["- x\n# y."] },
          { title: "E", paragraphs: ["# F\n\u0007\n## G"] },
        ],
      },
    });
    expect(article.markdown.split("\n").filter((line) => line.startsWith("#"))).toEqual([
      "# A ## B",
      "## C # D",
      "## E",
      "### F",
      "### G",
    ]);
  });

  it.each([
    undefined,
    null,
    0,
    "",
    [],
    {},
    [[]],
    { sections: null },
    { sections: [null] },
    { outline: { outline: {} } },
  ])("falls back on the text for %j", (outline) => {
    expect(writeDocument({ outline, text: "electric cars" }).title).toBe("Electric cars");
    expect(writeDocument({ outline })).toEqual({
      title: "",
      language: "en",
      basis: "topic",
      introduction: [],
      sections: [],
      markdown: "",
    });
  });
});

describe("document from a text", () => {
  it("is the one from its outline", () => {
    for (const text of [CORAL_REEFS, MEDICAL_AI]) {
      expect(writeDocument({ text })).toEqual(writeDocument({ outline: writeOutline(text) }));
    }
  });

  it("keeps lists as lists", () => {
    const { markdown } = writeDocument({
      text: "# Plan\n\n## Goals\n\nWe have two goals.\n\n- Fast\n- Small\n\n## Dates\n\nWe start in May.",
    });
    expect(markdown).toBe(
      "# Plan\n\n## Goals\n\nWe have two goals.\n\n- Fast\n- Small\n\n## Dates\n\nWe start in May.\n",
    );
  });
});

describe("chunks", () => {
  it("are headings and sentences", () => {
    const article = writeDocument({ text: "# Plan\n\n## Goals\n\nWe have two goals. Both matter.\n\n- Fast\n- Small" });
    expect([...splitDocument(article)]).toEqual([
      "# Plan\n\n",
      "## Goals\n\n",
      "We have two goals. ",
      "Both matter.\n\n",
      "- Fast\n",
      "- Small\n",
    ]);
    expect([...splitDocument({ markdown: "第一句。第二句！\n\n“好。”完。" })]).toEqual([
      "第一句。",
      "第二句！\n\n",
      "“好。”",
      "完。",
    ]);
  });

  it("are none for an empty article", () => {
    expect([...splitDocument(writeDocument({}))]).toEqual([]);
  });
});
