import { describe, expect, it } from "vitest";
import { writeDocument } from "./document.ts";
import { CORAL_REEFS, MEDICAL_AI } from "./fixtures/texts.ts";
import { writeOutline } from "./outline.ts";
import { summarize } from "./summary.ts";

describe("summary", () => {
  it("takes the main sentences of an English text from all its paragraphs", () => {
    const summary = summarize(CORAL_REEFS);
    expect(summary.sentences).toEqual([
      "Coral reefs cover less than one percent of the ocean floor, yet they shelter roughly a quarter of all marine species.",
      "According to Dr. Maria Lopez, a marine biologist, the Great Barrier Reef has suffered six mass bleaching events since 1998.",
      "Fertiliser washed from farms feeds seaweed that smothers young corals.",
      "Scientists in Australia breed corals that tolerate higher temperatures, e.g. by crossing colonies from warm and cool waters.",
    ]);
    expect(summary.text).toBe(summary.sentences.join(" "));
    expect(summary.sourceSentences).toBe(17);
    expect(summary.keywords.slice(0, 3)).toEqual(["coral", "reefs", "algae"]);
  });

  it("does the same in Chinese", () => {
    const summary = summarize(MEDICAL_AI);
    expect(summary.text).toBe(
      "人工智能正在深刻改变医疗行业。过去，医生主要依靠经验和有限的检查手段作出诊断，如今，人工智能系统可以在几秒钟内分析成千上万张医学影像，帮助医生发现早期病变。借助深度学习模型，研究人员能够预测分子的结构和性质，从而大幅缩短药物筛选的时间。",
    );
    expect(summary.language).toBe("zh");
    expect(summary.keywords.slice(0, 3)).toEqual(["人工智能", "医生", "药物研发"]);
  });

  it("gives as many sentences as asked for, as far as there are any", () => {
    expect(summarize(CORAL_REEFS, { sentences: 1 }).sentences).toHaveLength(1);
    expect(summarize(CORAL_REEFS, { sentences: 7 }).sentences).toHaveLength(7);
    expect(summarize("One thing. Another matter.", { sentences: 99 }).text).toBe("One thing. Another matter.");
    expect(summarize("One thing.", { sentences: Number.NaN }).sentences).toHaveLength(1);
    expect(summarize("One thing.", { sentences: -3 }).sentences).toHaveLength(1);
  });

  it("leaves out repetitions", () => {
    const text = "Bees make honey in summer. Bees make honey in summer. Flowers need rain to open.";
    expect(summarize(text, { sentences: 3 }).sentences).toEqual([
      "Bees make honey in summer.",
      "Flowers need rain to open.",
    ]);
  });

  it("reads Markdown: no headings, code or marks in the text, the source as it stands in the sentences", () => {
    const summary = summarize(
      "# Bees\n\n**Bees** make [honey](https://example.com)\nin summer.\n\n```\nnot. this.\n```",
    );
    expect(summary.text).toBe("Bees make honey in summer.");
    expect(summary.sentences).toEqual(["**Bees** make [honey](https://example.com)\nin summer."]);
  });

  it.each(["hello", "Tea is good. Coffee too.", "茶好喝。咖啡也好喝。", "renewable energy"])(
    "of a short text is that text: %s",
    (text) => {
      expect(summarize(text).text).toBe(text);
    },
  );

  it("says that a skeleton is a skeleton, and nothing of its plan", () => {
    const article = writeDocument({ outline: writeOutline("electric cars") });
    expect(summarize(article.markdown).sentences).toEqual(article.introduction.slice(0, 1));
    const chinese = writeDocument({ outline: writeOutline("量子计算") });
    expect(summarize(chinese.markdown).sentences).toEqual(chinese.introduction.slice(0, 1));
  });

  it.each(["", "  \n ", "!?…"])("is empty for %j", (text) => {
    expect(summarize(text)).toEqual({ language: "en", text: "", sentences: [], keywords: [], sourceSentences: 0 });
  });
});
