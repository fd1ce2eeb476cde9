import { describe, expect, it } from "vitest";
import { CORAL_REEFS, MEDICAL_AI } from "./fixtures/texts.ts";
import { writeOutline } from "./outline.ts";

describe("outline of a topic", () => {
  it.each([
    ["electric cars", "Electric cars"],
    ["Write an outline about electric cars", "Electric cars"],
    ["Please write a 500-word article on the history of the Roman Empire.", "The history of the Roman Empire"],
    ["Could you give me a detailed outline for a blog post about remote work?", "Remote work"],
    ["I need an article about electric cars. Keep it simple.", "Electric cars"],
    ['I\'d like an essay titled "The Old Man and the Sea"', "The Old Man and the Sea"],
    ["The story of Rome", "The story of Rome"],
    ["Topic: climate change", "Climate change"],
    ["What is quantum computing?", "Quantum computing"],
    ["Why is the sky blue?", "Why is the sky blue?"],
    ["Rust vs. Go", "Rust vs. Go"],
    ["请写一份关于人工智能的大纲", "人工智能"],
    ["帮我写一篇关于人工智能在医疗中的应用的文章", "人工智能在医疗中的应用"],
    ["请为我生成一个主题为“量子计算”的大纲", "量子计算"],
    ["以“我的家乡”为题写一篇文章", "我的家乡"],
    ["围绕新能源汽车写一篇800字的文章", "新能源汽车"],
    ["写一篇800字的文章，主题是：量子计算", "量子计算"],
    ["写一份关于 Kubernetes 的大纲，不少于500字。", "Kubernetes"],
    ["你好，能不能帮我写个量子计算的提纲？", "量子计算"],
    ["介绍一下春节习俗", "春节习俗"],
    ["什么是区块链？", "区块链"],
    ["《红楼梦》的艺术特色", "《红楼梦》的艺术特色"],
  ])("%s → %s", (request, topic) => {
    const outline = writeOutline(request);
    expect(outline.topic).toBe(topic);
    expect(outline.basis).toBe("topic");
    expect(outline.sections.length).toBeGreaterThanOrEqual(5);
    for (const section of outline.sections) expect(section.points).toHaveLength(3);
  });

  it.each([
    [
      "Write an article about the history of tea for a school magazine, about 300 words",
      "The history of tea",
      { length: 300, audience: "a school magazine" },
    ],
    ["A talk about bees, for children, in a friendly tone", "Bees", { audience: "children", tone: "friendly" }],
    ["Electric cars, no more than 1,500 words", "Electric cars", { length: 1500 }],
    ["Please write a 500-word essay on bees. Keep it simple.", "Bees", { length: 500, tone: "simple" }],
    ["写一篇关于茶的历史的文章，约300字", "茶的历史", { length: 300 }],
    [
      "为校刊写一篇关于垃圾分类的文章，800字左右，语言通俗",
      "垃圾分类",
      { length: 800, audience: "校刊", tone: "通俗" },
    ],
    ["写一篇关于恐龙的短文，适合小学生阅读", "恐龙", { audience: "小学生" }],
    ["茶的历史，不超过500字", "茶的历史", { length: 500 }],
    ["Toys for children", "Toys for children", undefined],
    ["Rust for beginners", "Rust for beginners", undefined],
  ])("%s: about %s, and how to write it", (request, topic, brief) => {
    const outline = writeOutline(request);
    expect([outline.topic, outline.brief]).toEqual([topic, brief]);
  });

  it("gives a skeleton that names the topic, in its language", () => {
    expect(writeOutline("electric cars").sections.map(({ title }) => title)).toEqual([
      "Electric cars: background",
      "Core ideas",
      "How it works",
      "Applications and examples",
      "Limits and open questions",
      "Electric cars: outlook",
    ]);
    const chinese = writeOutline("请写一份关于 Kubernetes 的大纲");
    expect(chinese.language).toBe("zh");
    expect(chinese.sections.map(({ title }) => title)).toEqual([
      "Kubernetes：背景与由来",
      "核心概念",
      "基本原理与构成",
      "应用与案例",
      "局限与争议",
      "Kubernetes：未来展望",
    ]);
  });

  it("suits the skeleton to comparisons, instructions and questions", () => {
    expect(writeOutline("differences between TCP and UDP").sections[3]?.title).toBe("When to choose TCP");
    expect(writeOutline("微服务与单体架构的区别").sections[4]?.title).toBe("何时选择单体架构");
    expect(writeOutline("How to bake bread").sections[2]?.title).toBe("Step by step");
    expect(writeOutline("如何学习编程").sections[2]?.title).toBe("操作步骤");
    expect(writeOutline("Why is the sky blue?").sections[1]?.title).toBe("The short answer");
  });

  it("puts a topic with special characters in as it is", () => {
    expect(writeOutline("$& and {topic}").sections[0]?.title).toBe("$& and {topic}: background");
  });
});

describe("outline of a text", () => {
  it("groups English paragraphs below phrases of them, with their main statements as points", () => {
    const outline = writeOutline(CORAL_REEFS);
    expect(outline).toMatchObject({
      language: "en",
      basis: "text",
      topic: "Coral reefs cover less than one percent of the ocean floor",
    });
    expect(outline.sections.map(({ title }) => title)).toEqual([
      "Most reef-building corals live in partnership",
      "The algae may come back",
      "Warming is not the only threat",
      "Several groups are trying to help reefs recover",
    ]);
    expect(outline.sections[2]?.points).toEqual([
      "Fertiliser washed from farms feeds seaweed that smothers young corals.",
      "Overfishing removes the grazing fish that would otherwise keep seaweed in check.",
    ]);
    expect(outline.sections.flatMap(({ paragraphs }) => paragraphs)).toEqual(CORAL_REEFS.split("\n\n"));
  });

  it("groups Chinese paragraphs likewise", () => {
    const outline = writeOutline(`请根据以下内容生成大纲：\n${MEDICAL_AI}`);
    expect(outline).toMatchObject({ language: "zh", basis: "text", topic: "人工智能正在深刻改变医疗行业" });
    expect(outline.sections.map(({ title }) => title)).toEqual([
      "医生主要依靠经验和有限的检查手段作出诊断",
      "人工智能在医疗中的应用也面临不少挑战",
      "人工智能不会取代医生，而是成为医生的得力助手",
    ]);
    expect(outline.sections.flatMap(({ paragraphs }) => paragraphs)).toEqual(MEDICAL_AI.split("\n\n"));
  });

  it("follows the headings a text has", () => {
    const outline = writeOutline(
      "# 设计说明\n\n本文说明整体设计。\n\n## 一、架构\n\n### 1.1 客户端\n客户端负责交互。\n\n### 1.2 服务端\n服务端负责执行。\n\n## 二、接口\n\n| 路径 | 说明 |\n|---|---|\n| `/send` | 发送 |\n| `/get` | 查询 |\n",
    );
    expect(outline.topic).toBe("设计说明");
    expect(outline.sections).toEqual([
      { title: "引言", points: ["本文说明整体设计。"], paragraphs: ["本文说明整体设计。"] },
      {
        title: "架构",
        points: ["客户端", "服务端"],
        paragraphs: ["### 1.1 客户端\n客户端负责交互。", "### 1.2 服务端\n服务端负责执行。"],
      },
      {
        title: "接口",
        points: ["/send", "/get"],
        paragraphs: ["| 路径 | 说明 |\n|---|---|\n| `/send` | 发送 |\n| `/get` | 查询 |"],
      },
    ]);
  });

  it("takes short notes as they are", () => {
    const outline = writeOutline("Meeting notes\n- Ship v2 by Friday\n- Fix the login bug\n");
    expect(outline).toMatchObject({ topic: "Meeting notes", basis: "text" });
    expect(outline.sections).toEqual([
      {
        title: "Key points",
        points: ["Ship v2 by Friday", "Fix the login bug"],
        paragraphs: ["- Ship v2 by Friday\n- Fix the login bug"],
      },
    ]);
  });

  it.each(["", " \n\t ", "...", "\u200d"])("has no sections for %j", (text) => {
    expect(writeOutline(text)).toEqual({ topic: "", language: "en", basis: "topic", sections: [] });
  });
});
