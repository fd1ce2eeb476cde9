import { describe, expect, it } from "vitest";
import { detectLanguage, insideEnglishSentence, LABELS } from "./language.ts";

describe("detectLanguage", () => {
  it.each([
    ["", "en"],
    ["🚀🚀", "en"],
    ["The history of Rome", "en"],
    ["The character 道 means way or path in Chinese", "en"],
    ["مرحبا بالعالم", "en"],
    ["量子计算", "zh"],
    ["用 Rust 写一个 HTTP server", "zh"],
    ["介绍 Kubernetes Horizontal Pod Autoscaler", "zh"],
    ["Go语言并发编程", "zh"],
  ] as const)("%s → %s", (text, language) => {
    expect(detectLanguage(text)).toBe(language);
  });
});

describe("insideEnglishSentence", () => {
  it.each([
    ["The main parts", "the main parts"],
    ["What changed", "what changed"],
    ["Costs, risks and side effects", "costs, risks and side effects"],
    ["The Old Man and the Sea", "The Old Man and the Sea"],
    ["Rome", "Rome"],
    ["HTTP servers", "HTTP servers"],
    ["A2A agents", "A2A agents"],
  ])("%s → %s", (text, inside) => {
    expect(insideEnglishSentence(text)).toBe(inside);
  });
});

describe("labels", () => {
  it("recognise their own skeleton note", () => {
    for (const labels of Object.values(LABELS)) {
      expect(labels.skeletonNote("《红楼梦》 and “Rome”")).toMatch(labels.skeletonMark);
    }
  });

  it("turn points into one sentence", () => {
    expect(LABELS.en.guide(["The parts", "What they cost", "Who pays"])).toBe(
      "Start with the parts; then turn to what they cost; close with who pays.",
    );
    expect(LABELS.en.guide(["Roman law", "Trade"])).toBe("This section covers: Roman law; Trade.");
    expect(LABELS.zh.guide(["定义", "成本", "前景"])).toBe("本节先写定义；再写成本；最后写前景。");
    expect(LABELS.zh.guide(["定义", "成本"])).toBe("本节先写定义，再写成本。");
  });
});
