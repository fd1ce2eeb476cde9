import { describe, expect, it } from "vitest";
import { writeDocument } from "./document.ts";
import { CORAL_REEFS, MEDICAL_AI } from "./fixtures/texts.ts";
import { writeOutline } from "./outline.ts";
import { mainClause, refersBack } from "./phrases.ts";
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

  it("keeps what the author says is the point, also before a colon", () => {
    const text = [
      "许多人认为，阅读纸质书和阅读电子书没有区别，内容相同，效果自然相同。我过去也这样想，直到我开始教中学语文。",
      "三年前，学校给每个学生发了平板电脑，课文和课外书都可以在上面看。起初大家都很高兴，书包轻了，查生词也方便。可是期末考试时，学生对长篇文章的理解明显下降了。",
      "这并不意味着应当放弃电子书。查资料、读新闻，屏幕更快也更便宜。我的主张是：需要深入思考的长文，应当让学生在纸上读。",
    ].join("\n\n");
    expect(summarize(text).text).toContain("我的主张是：需要深入思考的长文，应当让学生在纸上读。");
  });

  it("has no order about someone whom it does not name", () => {
    const text = [
      "A colony of bees has a character, and it persists for years although the bees change. One hive by the apple tree has always been gentle, and another sends guards across the whole garden.",
      "Beekeepers explain this difference by the queen, who lays every egg and lives for three or four years. Replace her and the temper of the colony changes within two months.",
    ].join("\n\n");
    expect(summarize(text, { sentences: 1 }).text).not.toContain("Replace her");
    expect(refersBack("Replace her and the temper of the colony changes within two months.")).toBe(true);
  });

  it("does not end a clause where its object begins", () => {
    const sentence = "石门大桥的经验说明，大型工程的成败，取决于是否认真听取当地人的意见。";
    expect(mainClause(sentence, "zh", 30)).toBeUndefined();
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
