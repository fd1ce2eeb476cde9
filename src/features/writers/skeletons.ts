import { insideEnglishSentence, type Language } from "./language.ts";

interface SkeletonSection {
  readonly title: string;
  readonly points: readonly string[];
}

type Kind = "subject" | "guide" | "comparison" | "question" | "history";
type Template = readonly (readonly [title: string, ...points: string[]])[];

/**
 * Placeholders: `{topic}` is the topic, `{a}` and `{b}` are the two sides of a comparison, `{a}` is also the subject of
 * a history. Points are phrases that read well on their own and inside the sentence that the article builds from them
 * ("Start with …; then turn to …; and close with …").
 */
const TEMPLATES = {
  en: {
    subject: [
      [
        "{topic}: background",
        "A short definition, and what falls outside it",
        "The need or problem behind it",
        "Who is involved and who is affected",
      ],
      [
        "Core ideas",
        "The three or four terms a reader has to know",
        "How these ideas depend on one another",
        "A common misunderstanding, and what is true instead",
      ],
      [
        "How it works",
        "The main parts or steps, in order",
        "What decides whether the result is good or bad",
        "One example followed from beginning to end",
      ],
      [
        "Applications and examples",
        "Two or three real cases, with names, dates and numbers",
        "What changed for the people concerned",
        "What these cases have in common",
      ],
      [
        "Limits and open questions",
        "Costs, risks and side effects",
        "The strongest objection, and how well it holds up",
        "What is not yet known about {topic}",
      ],
      [
        "{topic}: outlook",
        "The developments to watch in the next few years",
        "What the reader should remember or do next",
        "Where to read more about {topic}",
      ],
    ],
    guide: [
      [
        "The goal: {topic}",
        "What the result looks like when it works",
        "Who this guide is for and what they know already",
        "How long it takes and what it costs",
      ],
      [
        "Before you start",
        "Materials, tools and access needed",
        "Decisions that are hard to change later",
        "Safety, permissions and backups",
      ],
      [
        "Step by step",
        "The first step, with the reason for it",
        "The steps that follow, each with the sign that it worked",
        "The last step, and how to check the whole",
      ],
      [
        "When something goes wrong",
        "The three most common mistakes",
        "How to recognise each of them early",
        "How to undo or repair the damage",
      ],
      [
        "Going further",
        "Ways to do it faster or better",
        "Alternatives for other needs",
        "Where to read more about {topic}",
      ],
    ],
    comparison: [
      ["{a} and {b} at a glance", "One sentence on {a}", "One sentence on {b}", "Why the choice between them comes up"],
      [
        "What they share",
        "The problem that both address",
        "Features and assumptions in common",
        "Terms that mean the same in both",
      ],
      [
        "Where they differ",
        "Differences in principle",
        "Differences in cost, speed and effort",
        "Differences in risk and maturity",
      ],
      [
        "When to choose {a}",
        "Situations in which {a} is the better fit",
        "What has to be in place first",
        "A real example, with its result",
      ],
      [
        "When to choose {b}",
        "Situations in which {b} is the better fit",
        "What has to be in place first",
        "A real example, with its result",
      ],
      [
        "Conclusion",
        "A rule of thumb for choosing between {a} and {b}",
        "What would change the verdict",
        "Open questions",
      ],
    ],
    question: [
      [
        "The question: {topic}",
        "Why it is asked, and by whom",
        "What exactly has to be answered",
        "What the question takes for granted",
      ],
      [
        "The short answer",
        "The answer in one or two sentences",
        "How certain it is",
        "The condition under which it holds",
      ],
      [
        "The explanation",
        "The facts the answer rests on",
        "The reasoning from these facts to the answer",
        "An example or comparison that makes it clear",
      ],
      [
        "Other views",
        "Answers that differ, and who gives them",
        "Evidence for and against each",
        "Common misunderstandings",
      ],
      ["What follows", "What the answer means in practice", "What is still open", "Where to read more"],
    ],
    history: [
      [
        "Before {a}",
        "What people did before there was {a}",
        "The conditions that made {a} possible",
        "The sources this history rests on",
      ],
      [
        "Origins",
        "The earliest evidence, with place and date",
        "The people and legends at its beginning",
        "What {a} was at first, compared with today",
      ],
      [
        "Spread",
        "The routes by which {a} spread, in order of time",
        "Who carried it, and who resisted",
        "How it changed in each new place",
      ],
      [
        "Turning points",
        "Two or three events after which nothing was as before, with dates",
        "The causes of each",
        "Those who gained and those who lost",
      ],
      [
        "The modern age",
        "What industry, trade and science made of {a}",
        "The figures that show how much it grew",
        "The conflicts of this time",
      ],
      [
        "{a} today, and what its history shows",
        "Where things stand now",
        "What has stayed the same from the beginning",
        "Where to read more about the history of {a}",
      ],
    ],
  },
  zh: {
    subject: [
      ["{topic}：背景与由来", "“{topic}”的含义与边界", "它产生的原因和要解决的问题", "涉及的人群与机构"],
      ["核心概念", "读者必须了解的三四个术语", "这些概念之间的关系", "一个常见误解及其澄清"],
      ["基本原理与构成", "主要组成部分或关键环节", "影响结果好坏的因素", "一个从头到尾的完整实例"],
      ["应用与案例", "两三个真实案例，注明名称、时间和数据", "案例给相关人群带来的变化", "这些案例的共同点"],
      ["局限与争议", "成本、风险与副作用", "最有力的反对意见及其依据", "“{topic}”尚未解决的问题"],
      ["{topic}：未来展望", "今后几年值得关注的动向", "读者应当记住的要点或可以采取的行动", "延伸阅读"],
    ],
    guide: [
      ["目标：{topic}", "做成之后是什么样子", "适合哪些读者，需要哪些基础", "所需的时间与费用"],
      ["准备工作", "所需的材料、工具与权限", "事后难以更改的决定", "安全与备份方面的注意事项"],
      ["操作步骤", "第一步及其理由", "后续各步，以及每一步成功的标志", "最后一步与整体检查"],
      ["常见问题", "最常见的三个错误", "及早发现错误的办法", "补救与恢复的办法"],
      ["进阶与延伸", "做得更快更好的技巧", "适合其他需求的替代方案", "延伸阅读"],
    ],
    comparison: [
      ["{a}与{b}概览", "{a}的一句话介绍", "{b}的一句话介绍", "为什么需要在两者之间取舍"],
      ["共同点", "两者都要解决的问题", "共有的特点与前提", "两者通用的术语"],
      ["主要差异", "原理上的差异", "成本、效率与投入上的差异", "风险与成熟度上的差异"],
      ["何时选择{a}", "更适合{a}的场景", "需要具备的前提条件", "一个真实案例及其结果"],
      ["何时选择{b}", "更适合{b}的场景", "需要具备的前提条件", "一个真实案例及其结果"],
      ["结论", "在{a}与{b}之间选择的经验法则", "可能改变结论的因素", "有待讨论的问题"],
    ],
    question: [
      ["问题：{topic}", "谁在问，为什么问", "究竟要回答什么", "问题背后的预设"],
      ["简要回答", "一两句话的答案", "答案的可靠程度", "答案成立的条件"],
      ["详细解释", "答案所依据的事实", "从事实到答案的推理过程", "一个帮助理解的例子或比喻"],
      ["不同看法", "其他答案及其提出者", "支持与反对各种答案的证据", "常见的误解"],
      ["启示", "答案在实践中的意义", "仍未解决的问题", "延伸阅读"],
    ],
    history: [
      ["{a}出现之前", "没有{a}的时候人们怎么做", "{a}得以出现的条件", "本文所依据的史料"],
      ["起源", "最早的证据，注明地点与年代", "相关的人物与传说", "最初的{a}与今天有何不同"],
      ["传播", "{a}传播的路线，按时间先后", "传播者与反对者", "传入各地之后的变化"],
      ["转折", "两三个改变走向的事件，注明年代", "每个事件的成因", "受益的人与受损的人"],
      ["近现代", "工业、贸易与科学给{a}带来的改变", "说明其规模的数据", "这一时期的争端"],
      ["今天的{a}与历史的启示", "当前的状况", "从开始至今没有改变的东西", "延伸阅读"],
    ],
  },
} as const satisfies Record<Language, Record<Kind, Template>>;

interface TopicReading {
  readonly kind: Kind;
  readonly topic: string;
  readonly a?: string;
  readonly b?: string;
}

const COMPARISONS = [
  /^(?:the\s+)?(?:comparing|compare|comparison (?:of|between)|differences? between)\s+(.{1,60}?)\s+(?:and|with|to|vs\.?|versus)\s+(.{1,60})$/i,
  /^(.{1,60}?)\s*(?:\bvs\b\.?|\bversus\b|对比|还是)\s*(.{1,60})$/i,
  /^(.{1,30}?)(?:与|和|跟|同|及)(.{1,30}?)(?:之间)?的?(?:区别|差异|对比|比较|异同|不同)$/,
] as const;

/** Topics whose sections are in chronological order. */
const HISTORIES = [
  /^(?:(?:a|the)\s+)?(?:(?:brief|short|long|early|modern|complete)\s+)*(?:history|origins?|evolution)\s+of\s+(.{1,80})$/i,
  /^(.{1,60}?)['’]s\s+history$/i,
  /^(?:the\s+)?(.{1,60}?)\s+history$/i,
  /^(.{1,40}?)的?(?:发展)?(?:历史|简史|历程|起源|由来|演变)$/,
  /^(.{1,40}?)(?:古代|近代|现代|当代|发展|通)?(?<!历)史$/,
] as const;

function readTopic(given: string): TopicReading {
  const question = /[?？]$/.test(given);
  const topic = given.replace(/[?？]+$/, "");
  const defined =
    /^(?:what (?:is|are)|什么是|何谓|何为)\s*(.{1,80})$/i.exec(topic)?.[1] ?? /^(.{1,40})是什么$/.exec(topic)?.[1];
  if (defined !== undefined) return { kind: "subject", topic: defined };
  for (const pattern of COMPARISONS) {
    const match = pattern.exec(topic);
    if (match?.[1] !== undefined && match[2] !== undefined)
      return { kind: "comparison", topic, a: match[1], b: match[2] };
  }
  for (const pattern of HISTORIES) {
    const of = pattern.exec(topic)?.[1]?.replace(/[:,：，]\s*(?:a|an|the)?$/i, "");
    if (of !== undefined && !/^(?:a|an|the)?$/i.test(of)) return { kind: "history", topic, a: of };
  }
  if (/^how (?:to|do i|do you|do we|can i|can you|can we)\s/i.test(topic) || /^(?:如何|怎么|怎样)/.test(topic))
    return { kind: "guide", topic };
  const asks =
    question ||
    /^(?:why|how|when|where|who|which|whether|is|are|does|do|can|should|will)\s/i.test(topic) ||
    /^(?:为什么|为何|是否|谁|哪)/.test(topic);
  return { kind: asks ? "question" : "subject", topic: asks ? given : topic };
}

export function buildSkeleton(given: string, language: Language): { topic: string; sections: SkeletonSection[] } {
  const reading = readTopic(given);
  const inside = language === "en" ? insideEnglishSentence(reading.topic) : reading.topic;
  const values: Record<string, string> = { topic: inside, a: reading.a ?? "", b: reading.b ?? "" };
  // A replacer function, because a topic may contain "$&" or "{a}".
  const fill = (template: string): string =>
    template.replace(/\{(topic|a|b)\}/g, (_, name: string) => values[name] ?? "");
  return {
    topic: reading.topic,
    sections: TEMPLATES[language][reading.kind].map(([title, ...points]) => ({
      title: fill(title),
      points: points.map(fill),
    })),
  };
}
