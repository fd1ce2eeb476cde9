import type { Brief } from "./brief.ts";

export type Language = "en" | "zh";

/** Enough to detect the language; reading the rest of a long text would only cost time. */
const SAMPLE_LENGTH = 20_000;
/**
 * A Han character counts as much as a whole word of another script, so that technical Chinese with many English names
 * is detected as Chinese.
 */
const HAN_SHARE_OF_CHINESE = 0.3;

const TOKEN = /(\p{Script=Han})|(?:(?!\p{Script=Han})[\p{L}\p{M}])+/gu;

export function detectLanguage(text: string): Language {
  let han = 0;
  let tokens = 0;
  for (const match of text.slice(0, SAMPLE_LENGTH).matchAll(TOKEN)) {
    tokens += 1;
    if (match[1] !== undefined) han += 1;
  }
  return tokens > 0 && han / tokens > HAN_SHARE_OF_CHINESE ? "zh" : "en";
}

interface Labels {
  readonly introduction: string;
  /** Title of the only section of a short text. */
  readonly keyPoints: string;
  readonly untitled: string;
  readonly part: (number: number) => string;
  /** Title composed of words of equal weight. */
  readonly list: (words: readonly string[]) => string;
  /** Notes that the article does not contain facts yet. */
  readonly skeletonNote: (title: string, brief?: Brief) => string;
  /** Matches that note, so that a summary of a skeleton repeats it. */
  readonly skeletonMark: RegExp;
  /** Lists the parts of an article that is still to be written. */
  readonly plan: (titles: readonly string[]) => string;
  /** Matches that plan, which is excluded from summaries and outlines. */
  readonly planMark: RegExp;
  /** One sentence that describes to the author what to write in a section. */
  readonly guide: (points: readonly string[]) => string;
  readonly fullStop: string;
}

/** One of our skeletons without its note and its plan; undefined for any other text. */
export function skeletonBody(text: string): string | undefined {
  const lines = text.split("\n", REMARK_LINES).map((line) => line.replace(/^[>\s]+/, ""));
  const labels = Object.values<Labels>(LABELS).find(({ skeletonMark }) =>
    lines.some((line) => skeletonMark.test(line)),
  );
  if (labels === undefined) return undefined;
  return text
    .split("\n")
    .filter((line) => !labels.skeletonMark.test(line.replace(/^[>\s]+/, "")) && !labels.planMark.test(line))
    .join("\n");
}

/** The note is below the title. */
const REMARK_LINES = 20;

const ENGLISH_NUMBERS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
const CHINESE_NUMBERS = ["零", "一", "两", "三", "四", "五", "六", "七", "八", "九", "十"];

function englishList(words: readonly string[]): string {
  return words.length <= 1 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words[words.length - 1]}`;
}

/** Lower-cases a leading "The" or "What", but not names such as "Rome", "HTTP" and "The Old Man". */
export function insideEnglishSentence(text: string): string {
  const first = /^([A-Z][a-z]*)(?:,? (?=[a-z0-9“])|,|$)/u.exec(text)?.[1];
  return first !== undefined && OPENING_WORDS.has(first.toLowerCase())
    ? text.charAt(0).toLowerCase() + text.slice(1)
    : text;
}

const OPENING_WORDS = new Set(
  (
    "a an the this that these those what which who whom whose why when where how whether one two three some any all both each every " +
    "its their our your his her is are do does can should key main common current future early recent short definition overview " +
    "history background benefits advantages disadvantages challenges limits risks costs uses applications examples types role impact " +
    "effects causes importance introduction steps tools people names other more most first second third if in on at for from with"
  ).split(" "),
);

function englishGuide(points: readonly string[]): string {
  const inside = points.map(insideEnglishSentence);
  const [first, ...rest] = inside;
  const last = rest.pop();
  if (first === undefined) return "";
  // Capitals that may belong to a name are preserved; such points read better in a list than inside a clause.
  if (last === undefined || inside.some((point) => /^\p{Lu}/u.test(point)))
    return `This section covers: ${points.join("; ")}.`;
  return `Start with ${[first, ...rest.map((point) => `then turn to ${point}`), `close with ${last}`].join("; ")}.`;
}

function chineseGuide(points: readonly string[]): string {
  const [first, ...rest] = points;
  const last = rest.pop();
  if (first === undefined) return "";
  if (last === undefined) return `本节主要写${first}。`;
  if (rest.length === 0) return `本节先写${first}，再写${last}。`;
  return `本节先写${[first, ...rest.map((point) => `再写${point}`), `最后写${last}`].join("；")}。`;
}

function englishBrief({ audience, length, tone }: Brief = {}): string {
  return [audience && `for ${audience}`, length && `about ${length} words`, tone && `tone: ${tone}`]
    .filter(Boolean)
    .join(", ");
}

function chineseBrief({ audience, length, tone }: Brief = {}): string {
  return [audience && `读者：${audience}`, length && `约${length}字`, tone && `语言：${tone}`]
    .filter(Boolean)
    .join("，");
}

const inBrackets = (text: string, open: string, close: string) => (text === "" ? "" : open + text + close);

function englishCount(count: number): string {
  return `${ENGLISH_NUMBERS[count] ?? count} ${count === 1 ? "part" : "parts"}`;
}

export const LABELS = {
  en: {
    introduction: "Introduction",
    keyPoints: "Key points",
    untitled: "Untitled",
    part: (number) => `Part ${number}`,
    list: englishList,
    skeletonNote: (title, brief?: Brief) =>
      `This is a skeleton for “${title}”${inBrackets(englishBrief(brief), " (", ")")}, built without source material: each section says what to write, and the facts are still to be filled in.`,
    skeletonMark: /^This is a skeleton for “/,
    plan: (titles) => `The plan has ${englishCount(titles.length)} — ${titles.join("; ")}.`,
    planMark: /^The plan has \S+ parts? — /,
    guide: englishGuide,
    fullStop: ".",
  },
  zh: {
    introduction: "引言",
    keyPoints: "要点",
    untitled: "未命名",
    part: (number) => `第${number === 2 ? "二" : (CHINESE_NUMBERS[number] ?? number)}部分`,
    list: (words) => words.join("与"),
    skeletonNote: (title, brief?: Brief) =>
      `这是《${title.replace(/[《》]/g, "")}》的写作骨架${inBrackets(chineseBrief(brief), "（", "）")}，没有使用任何素材：各节只说明该写什么，具体内容有待补充。`,
    skeletonMark: /^这是《[^》]*》的写作骨架/,
    plan: (titles) => `全文计划分为${CHINESE_NUMBERS[titles.length] ?? titles.length}个部分——${titles.join("；")}。`,
    planMark: /^全文计划分为\S{1,3}个部分——/,
    guide: chineseGuide,
    fullStop: "。",
  },
} as const satisfies Record<Language, Labels>;
