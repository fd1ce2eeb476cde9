import { type Brief, splitBrief } from "./brief.ts";
import { cleanInline, columns, stripFinalPunctuation, stripMarks } from "./plain-text.ts";
import { splitSentences } from "./segment.ts";

interface Request {
  /** The input without the phrase that asks for an outline or an article. */
  readonly content: string;
  /** A short line that names a subject, as opposed to source material. */
  readonly isTopic: boolean;
  readonly brief?: Brief;
}

/** Lead-ins are at the very beginning; patterns are only matched against this many characters. */
const LEAD_IN_LENGTH = 300;
const TOPIC_COLUMNS = 160;
/** After a lead-in, the first sentence is the subject even if remarks about style follow it. */
const ASKED_TOPIC_COLUMNS = 320;

const EN_NOUN =
  "(?:outline|article|essay|report|blog post|blog|post|paper|document|summary|text|story|guide|draft|structure|skeleton|piece|overview|write-?up|introduction|talk|speech|presentation|lecture)";
const EN_VERB =
  "(?:write|create|make|generate|draft|prepare|produce|give|build|compose|provide|develop|do|show|send|need|want|have|get)";
const EN_ABOUT = "(?:about|on|of|for|regarding|concerning|covering|titled|entitled|called|whose topic is|:)";
const ENGLISH_COURTESY =
  /^(?:(?:hi|hello|hey)(?: there)?[,!.]?\s+|(?:please|kindly)[,]?\s+|(?:can|could|would|will) you(?: please)?\s+|i(?:'d|’d| would) like(?: you)?(?: to)?\s+|(?:i|we) (?:want|need)(?: you)?(?: to)?\s+|help me(?: to)?\s+|let(?:'s|’s| us)\s+)/i;
const ENGLISH_REQUESTS = [
  new RegExp(
    `^(?:${EN_VERB}\\s+)?(?:me\\s+|us\\s+|out\\s+)?(?:an?\\s+|the\\s+|one\\s+|some\\s+)?(?:[\\w-]{1,20}\\s+){0,4}?${EN_NOUN}s?(?:\\s+(?:for|of)\\s+(?:an?|the|my|our)\\s+(?:[\\w-]{1,20}\\s+){0,3}?${EN_NOUN})?\\s*${EN_ABOUT}\\s*(?:the (?:topic|subject|theme)(?: of)?:?\\s+)?(?=\\S)`,
    "i",
  ),
  /^(?:write|tell me|talk)\s+(?:something\s+)?(?:about|on)\s+(?=\S)/i,
  /^(?:explain|describe|discuss|summari[sz]e|outline|introduce)(?:\s+to\s+me|\s+me)?[:\s]\s*(?=\S)/i,
  /^(?:topic|title|subject|theme)\s*[:：]\s*(?=\S)/i,
] as const;

const ENGLISH_ASKS = new RegExp(
  `^${EN_VERB}\\b|^an?\\s+(?:[\\w-]+\\s+){0,2}?(?:talk|speech|presentation|lecture|article|blog post|report)\\s+(?:about|on)\\b|outline|^(?:tell|talk|explain|describe|discuss|summari|introduce|topic|title|subject|theme)`,
  "i",
);

const ZH_NOUN = "(?:大纲|提纲|纲要|文章|短文|作文|论文|报告|文稿|文档|稿子|正文|博客|综述|摘要|总结|介绍|框架|目录)";
const ZH_VERB =
  "(?:撰写|书写|写作|编写|写|生成|创建|创作|制作|起草|草拟|拟定|拟|列出|列|做|给出|给|提供|准备|设计|输出|整理|完成|来)";
const ZH_MEASURE =
  "(?:一下|出)?\\s*(?:一|1)?\\s*(?:个|份|篇|段|套)?\\s*(?:[\\d一二三四五六七八九十百千]{1,5}字(?:左右|以内)?的?)?(?:详细|完整|简短|简单|专业|清晰)?的?";
const ZH_REST = "(?:[，,。！!；;].{0,80})?[吗吧]?[。.！!？?]?$";
const CHINESE_COURTESY =
  /^(?:你好|您好|请问|请|麻烦|劳烦|烦请|能否|能不能|可不可以|可以|可否|帮忙|帮我们|帮我|给我们|给我|为我们|为我|替我|我们?(?:需要|想要|希望|想|要)|[你您](?:帮我|给我|为我)?|[，,！!。\s])+/;
const CHINESE_REQUESTS = [
  new RegExp(
    `^${ZH_VERB}${ZH_MEASURE}${ZH_NOUN}?[，,]?\\s*(?:关于|有关|围绕|针对|主题[是为：:]+|题为|以)\\s*(.+?)(?:为题|为主题|这个主题|这一主题)?的?(?:详细|完整|简短|简单)?的?(?:文章|论文|报告)?的?${ZH_NOUN}${ZH_REST}`,
  ),
  new RegExp(
    `^(?:关于|有关|围绕|针对|以|就|根据)\\s*(.+?)(?:为题目|为题|为主题|这个主题|这一主题|这个话题)?[，,]?\\s*${ZH_VERB}${ZH_MEASURE}(?:文章|论文|报告)?的?${ZH_NOUN}${ZH_REST}`,
  ),
  new RegExp(
    `^${ZH_VERB}${ZH_MEASURE}${ZH_NOUN}[，,：:]?\\s*(?:主题|题目|标题|内容|关于|有关)?[是为：:]{0,2}\\s*(.+?)[。.！!]?$`,
  ),
  new RegExp(`^${ZH_VERB}${ZH_MEASURE}(?:关于|有关)?\\s*(.+?)的?${ZH_NOUN}${ZH_REST}`),
  new RegExp(`^(?:关于|有关)\\s*(.+?)的?${ZH_NOUN}?${ZH_REST}`),
  /^(?:主题|题目|标题|话题)\s*[：:]\s*(.+?)[。.]?$/,
  /^(?:介绍|说明|讲讲|讲解|谈谈|解释|聊聊|概述|总结|写写)(?:一下)?\s*(.+?)[。.！!]?$/,
  /^(.+?)的?(?:写作)?(?:大纲|提纲)[。.]?$/,
] as const;

const FOLLOWING =
  /^[^\n]{0,160}?(?:\b(?:following|below|this (?:text|article|document|passage))\b|以下|下面|下列|如下|下文)[^\n:：]{0,60}(?:[:：]\s*|\n\s*)(?=\S)/i;
const ASKS = new RegExp(`${EN_NOUN}|summari[sz]e|write|${ZH_NOUN}|${ZH_VERB}|概括|归纳`, "i");

export function readRequest(input: string): Request {
  const text = input.trim();
  const following = FOLLOWING.exec(text.slice(0, LEAD_IN_LENGTH));
  if (following !== null && ASKS.test(following[0])) {
    const rest = text.slice(following[0].length);
    return { content: rest, isTopic: isShortLine(rest), ...briefOf(splitBrief(following[0])) };
  }
  // Several lines, or a very long one, are source material: only a line with a request may precede it.
  if (text.length > ASKED_TOPIC_COLUMNS || text.includes("\n")) return { content: text, isTopic: false };
  const split = splitBrief(text);
  const subject = stripLeadIn(split.request);
  if (subject !== split.request) {
    const first = firstSentence(subject);
    if (columns(first, TOPIC_COLUMNS) < TOPIC_COLUMNS)
      return { content: tidyTopic(stripBorrowedQuestion(first)), isTopic: true, ...briefOf(split) };
  }
  return isShortLine(subject)
    ? { content: tidyTopic(subject), isTopic: true, ...briefOf(split) }
    : { content: text, isTopic: false };
}

const briefOf = ({ brief }: { readonly brief: Brief | undefined }) => brief && { brief };

function stripLeadIn(text: string): string {
  return stripEnglishLeadIn(stripChineseLeadIn(text));
}

function stripChineseLeadIn(text: string): string {
  const asked = text.replace(CHINESE_COURTESY, "");
  for (const pattern of CHINESE_REQUESTS) {
    const subject = pattern.exec(asked)?.[1];
    if (subject !== undefined && /[\p{L}\p{N}]/u.test(subject)) return subject;
  }
  return text;
}

function stripEnglishLeadIn(text: string): string {
  let rest = text;
  for (let round = 0; round < 4; round += 1) rest = rest.replace(ENGLISH_COURTESY, "");
  const asked = rest !== text;
  for (const pattern of ENGLISH_REQUESTS) {
    const match = pattern.exec(rest);
    // "The story of Rome" is a title; it is a request only with a verb, with a polite phrase, or if it names an
    // outline.
    if (match !== null && (asked || ENGLISH_ASKS.test(match[0]))) {
      return rest.slice(match[0].length);
    }
  }
  return /^(.{2,120}?)\s*[:—-]?\s+(?:article )?outline[.]?$/i.exec(rest)?.[1] ?? text;
}

/** "Could you write about bees?": the question mark belongs to the request unless the subject itself is a question. */
function stripBorrowedQuestion(subject: string): string {
  const asks =
    /^(?:what|why|how|when|where|who|which|is|are|do|does|can|should|will)\b|为什么|为何|如何|怎么|怎样|什么|是否|吗/i.test(
      subject,
    );
  return asks ? subject : stripFinalPunctuation(subject);
}

function firstSentence(text: string): string {
  const first = splitSentences(text)[0];
  return first === undefined ? text : text.slice(first.start, first.end);
}

function isShortLine(text: string): boolean {
  const line = text.trim();
  if (line === "" || line.includes("\n") || columns(line, TOPIC_COLUMNS) >= TOPIC_COLUMNS) return false;
  return splitSentences(line).length <= 1 && !isStatement(line);
}

/** A complete statement is source material, however short: it ends with a full stop and has a minimum length. */
function isStatement(line: string): boolean {
  return (/[.]$/.test(line) && line.split(/\s+/).length >= 8) || (/。$/.test(line) && line.length >= 18);
}

/** A pair of quotation marks around the whole topic, with none inside. */
const QUOTED =
  /^(?:"([^"]+)"|“([^“”]+)”|'([^']+)'|‘([^‘’]+)’|「([^「」]+)」|『([^『』]+)』|《([^《》]+)》|【([^【】]+)】)$/;

function tidyTopic(text: string): string {
  const clean = stripMarks(cleanInline(text));
  const question = /[?？]$/.test(clean);
  const plain = stripFinalPunctuation(clean);
  const bare = (
    QUOTED.exec(plain)
      ?.slice(1)
      .find((inside) => inside !== undefined) ?? plain
  ).trim();
  return question && bare !== "" ? bare + clean.slice(-1) : bare;
}
