/** What a request says about an article beside its subject: how long, for whom, in which tone. */

export type Brief = {
  /** Words, or characters in Chinese. */
  length?: number;
  audience?: string;
  tone?: string;
};

const NUMBER = "(\\d{1,3}(?:[,，]\\d{3})+|\\d{1,6})";
const MAX_LENGTH = 100_000;
const ENGLISH_LENGTH = new RegExp(
  `(?:,?\\s*(?:(?:in|of|with|at|using|and|it should be)\\s+)?(?:(?:about|around|approximately|roughly|some|at most|at least|no more than|not more than|up to|under|max(?:imum)?(?: of)?|ca\\.?|~)\\s*)?)${NUMBER}[\\s-]*words?(?:\\s+(?:long|or so|or less|max(?:imum)?|at most))?`,
  "i",
);
/** Publications may follow the subject at once, readers only after a comma: "toys for children" is a subject. */
const ENGLISH_AUDIENCE = [
  /(?:,\s*|\s+)(?:and\s+)?for\s+((?:an?|the|my|our|your)\s+(?:[\w'’-]+\s+){0,3}?(?:magazine|newspaper|newsletter|journal|blog|website|brochure|audience|class|paper))(?=\s*(?:[,.;!]|$))/i,
  /,\s*(?:and\s+)?(?:(?:written|meant|suitable)\s+)?(?:for|aimed at|addressed to)\s+((?:[\w'’-]+\s+){0,4}?[\w'’-]+)(?=\s*(?:[,.;!]|$))/i,
];
const ENGLISH_TONE = [
  /(?:,\s*|\s+)(?:and\s+)?(?:in|with|using)\s+(?:an?\s+)?([\w-]+(?:(?:,| and| but) [\w-]+)?)\s+(?:tone|style|voice|language|manner)(?=\s*(?:[,.;!]|$))/i,
  /(?:,|\.)\s*(?:and\s+)?(?:please\s+)?(?:keep it|make it)\s+([\w-]+(?:(?:,| and| but) [\w-]+)?)(?=\s*(?:[,.;!]|$))/i,
];
const CHINESE_LENGTH = new RegExp(
  `[，,；;]?(?:全文|篇幅|字数)?(?:要求|控制)?(?:为|在)?(?:约为?|大约|大概|不少于|不超过|不多于|至少|至多|最多)?\\s*${NUMBER}\\s*个?字(?:左右|以内|以上|上下)?(?:的(?=文章|短文|作文|报告|稿子|博客))?`,
);
const CHINESE_AUDIENCE = [
  /[，,；;]\s*(?:面向|适合|针对|写给|发给|投给|用于|刊登在|发表在|登在|读者(?:是|为)|给)([^，,。；;！!]{1,16}?)(?:阅读|看|使用|用|上|的读者)?(?=[，,。；;！!]|$)/,
  /(?:^|(?<=[请我]))(?:面向|为|给)((?!我|我们|你)[^，,。；;关以写]{2,12})(?=写|撰写|起草|编写|准备)/,
];
const CHINESE_TONE =
  /[，,；;]\s*(?:语言|语气|文风|风格)(?:要|应当?|尽量)?([^，,。；;！!]{1,12})(?=[，,。；;！!]|$)|[，,；;]\s*(?:用|以)([^，,。；;！!]{1,10})的(?:语言|语气|文风|风格)(?=[，,。；;！!]|$)/;

/** The request without these instructions, and the instructions. */
export function splitBrief(request: string): { readonly request: string; readonly brief: Brief | undefined } {
  let rest = request;
  const brief: Brief = {};
  const take = (pattern: RegExp): string | undefined => {
    const found = pattern.exec(rest);
    if (found === null) return undefined;
    rest = rest.slice(0, found.index) + rest.slice(found.index + found[0].length);
    return found.slice(1).find((group) => group !== undefined);
  };
  const length = toLength(take(ENGLISH_LENGTH) ?? take(CHINESE_LENGTH));
  const audience = [...ENGLISH_AUDIENCE, ...CHINESE_AUDIENCE].map((pattern) => take(pattern)).find(Boolean);
  const tone = [...ENGLISH_TONE, CHINESE_TONE].map((pattern) => take(pattern)).find(Boolean);
  if (length !== undefined) brief.length = length;
  if (audience !== undefined) brief.audience = audience.trim();
  if (tone !== undefined) brief.tone = tone.trim();
  return Object.keys(brief).length === 0 ? { request, brief: undefined } : { request: rest.trim(), brief };
}

function toLength(digits: string | undefined): number | undefined {
  const length = Number(digits?.replace(/[,，]/g, ""));
  return length > 0 && length <= MAX_LENGTH ? length : undefined;
}

const MAX_REMARK_LENGTH = 100;

/** Of an outline that was received. */
export function readBrief(value: unknown): Brief | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { audience, length, tone } = value as Readonly<Record<string, unknown>>;
  const line = (text: unknown) =>
    typeof text === "string"
      ? text
          .replace(/[\s\p{C}]+/gu, " ")
          .trim()
          .slice(0, MAX_REMARK_LENGTH)
      : "";
  const brief: Brief = {
    ...(typeof length === "number" && length > 0 && length <= MAX_LENGTH && { length }),
    ...(line(audience) !== "" && { audience: line(audience) }),
    ...(line(tone) !== "" && { tone: line(tone) }),
  };
  return Object.keys(brief).length === 0 ? undefined : brief;
}
