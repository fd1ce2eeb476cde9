import { type Block, splitBlocks, trimRange } from "./blocks.ts";
import type { Language } from "./language.ts";
import { isWide, safeCut } from "./plain-text.ts";

const toWordSet = (list: string): ReadonlySet<string> => new Set(list.trim().split(/\s+/));

/** Function words, excluded from titles and rankings. The list is short on purpose. */
const STOP_WORDS = {
  en: toWordSet(`
    a about above according across actually after again against ago all almost along already also although always am among an and
    another any anyone anything are aren't around as aside at away back be became because become becomes been before began behind being
    below besides best better between beyond big bit both bring brings but by call called came can can't cannot cause come comes
    could couldn't did didn't different do does doesn't doing don't done down due during e.g each early either else enough etc even
    ever every everyone everything example far few find first five follow for found four from further gave general get gets give
    given gives go goes going gone good got great had has have haven't having he her here hers herself high him himself his how
    however i i'd i'll i'm i've i.e if important in include includes including indeed instead into is isn't it it's its itself
    just keep kept kind know known large last later latter least less let let's like likely little long look looks lot low made
    main mainly make makes making many may maybe me mean means might more most mostly much must my myself near nearly need needed
    needs neither never new next no nobody none nor not nothing now number of off often on once one only onto or other others
    otherwise our ours out over own part parts per perhaps place put quite rather real really recent said same saw say says second
    see seem seems seen several shall she should shouldn't show shown shows since small so some someone something sometimes soon
    still such take taken takes taking tell than that that's the their theirs them themselves then there there's therefore these
    they they're thing things think third this those though three through throughout thus to today together too took toward
    towards true try turn turned two under unless unlike until up upon us use used useful uses using usually various very via
    want was wasn't way ways we we're well went were weren't what when where whether which while who whole whom whose why will
    with within without won't work works would wouldn't yes yet you you're your yours yourself years year`),
  zh: toWordSet(`
    一 一个 一些 一种 一样 一直 一定 一般 一方面 另一方面 一下 一起 这 这个 这些 这种 这样 这里 那 那个 那些 那么 那样 它 它们 他 他们 她 她们
    我 我们 你 你们 您 自己 大家 别人 人们 的 地 得 了 着 过 和 与 及 以及 或 或者 并 并且 而 而且 但 但是 然而 不过 却 虽然 尽管 即使 如果
    假如 只要 只有 除非 因为 由于 所以 因此 于是 从而 以便 为了 关于 对于 根据 按照 通过 经过 随着 作为 除了 包括 例如 比如 其中 其他 其它
    其 此 此外 另外 同时 同样 首先 其次 然后 最后 最终 目前 现在 当前 今天 已 已经 曾 曾经 正在 将 将会 即将 开始 继续 进行 得到 成为 使 使得
    让 把 被 给 对 向 从 到 在 于 由 为 以 用 使用 利用 采用 是 不是 就是 也是 还是 都是 有 没有 具有 拥有 存在 能 能够 可以 可能 应该 应当 必须
    需要 会 要 想 不 不会 不能 不要 没 别 也 还 又 再 都 就 才 只 很 更 最 非常 十分 比较 更加 越来越 相当 几乎 大约 左右 许多 很多 不少 大量 各
    各种 各个 每 每个 某 某些 任何 所有 全部 整个 不同 不仅 不但 甚至 尤其 特别 主要 重要 什么 怎么 怎样 如何 为什么 哪 哪些 哪个 谁 多少 几
    上 下 中 里 内 外 前 后 之 之间 之后 之前 之一 以上 以下 以来 以后 方面 情况 时候 时 当 等 等等 个 种 次 年 月 日 说 认为 表示 指出 来 去 看
    做 起来 出来 下来 过来 进入 提出 带来 变得 仍然 仍 依然 往往 通常 常常 经常 有时 有些 有的 第一 第二 第三 两 三 四 五 多 大 小 高 低 新 好 地方 普遍 有望 超过 领域 不仅仅 逐渐 逐步 实现 主任 一位 方式 产生 发现 深刻`),
} as const satisfies Record<Language, ReadonlySet<string>>;

/** Abbreviations: the full stop after them does not end a sentence. */
const ABBREVIATIONS = toWordSet(`
    dr mr mrs ms prof st vs e.g i.e eg ie cf al fig figs no nos vol pp inc ltd co corp jr sr approx dept est gen gov hon rev sen
    rep jan feb mar apr jun jul aug sep sept oct nov dec mt ft u.s u.k ca ed eds`);

/** Offsets of a sentence in the source, and the block that contains it. */
export interface Sentence {
  readonly start: number;
  readonly end: number;
  readonly block: number;
}

export interface Word {
  /** As written. */
  readonly text: string;
  /** Lower case, without English plural and possessive endings: words with the same key count as the same word. */
  readonly key: string;
  readonly stop: boolean;
  /** Only a space (or, in Chinese, nothing) separates this word from the previous one. */
  readonly joined: boolean;
}

/** Longer stretches without punctuation are split, so that later steps work on bounded input. */
export const MAX_SENTENCE_LENGTH = 400;

const TERMINAL = /[.!?。！？؟۔।｡]/;
const TERMINAL_OR_DOTS = /[.!?。！？؟۔।｡…]/;
const CLOSER = /["'”’」』）)\]】»›*_`]/;
const HAS_CONTENT = /[\p{L}\p{N}\p{Extended_Pictographic}\p{Surrogate}]/u;

/**
 * Splits blocks into sentences, in order. Does not use `Intl.Segmenter`, which takes quadratic time on long input and
 * does not recognise abbreviations.
 */
export function splitSentences(text: string, blocks: readonly Block[] = splitBlocks(text)): Sentence[] {
  const sentences: Sentence[] = [];
  blocks.forEach((block, index) => {
    if (block.kind === "paragraph" || block.kind === "item") splitBlock(text, block, index, sentences);
  });
  return sentences;
}

function splitBlock(text: string, block: Block, blockIndex: number, into: Sentence[]): void {
  let start = block.start;
  let position = block.start;
  const close = (end: number): void => {
    const [from, to] = trimRange(text, start, end);
    if (to > from && HAS_CONTENT.test(text.slice(from, to))) into.push({ start: from, end: to, block: blockIndex });
    start = end;
  };
  while (position < block.end) {
    if (TERMINAL.test(text.charAt(position))) {
      const { end, closes } = afterMarks(text, start, position, block.end);
      position = end;
      if (closes) {
        close(end);
        continue;
      }
    } else {
      position += 1;
    }
    if (position - start >= MAX_SENTENCE_LENGTH) {
      const cut = longSentenceCut(text, start, position);
      close(cut);
      position = Math.max(cut, start);
    }
  }
  close(block.end);
}

/** The end of the punctuation that starts at `position`, and whether it ends the sentence. */
function afterMarks(text: string, start: number, position: number, limit: number): { end: number; closes: boolean } {
  const mark = text.charAt(position);
  const furthest = Math.min(limit, start + MAX_SENTENCE_LENGTH);
  let marksEnd = position + 1;
  while (marksEnd < furthest && TERMINAL_OR_DOTS.test(text.charAt(marksEnd))) marksEnd += 1;
  let end = marksEnd;
  while (end < furthest && CLOSER.test(text.charAt(end))) end += 1;
  return { end, closes: end >= limit || closesSentence() };

  function closesSentence(): boolean {
    const next = text.charAt(end);
    const quoted = end > marksEnd;
    if (isWide(mark)) {
      // “…！”他说 continues after the quotation; “…。”他说 usually does not.
      const goesOn = quoted && mark !== "。" && isWide(next) && !/[“「『]/.test(next);
      return !goesOn && !/[，、；：,;:]/.test(next);
    }
    if (!/\s/.test(next) && !isWide(next)) return false;
    if (mark !== ".") return !(quoted && startsLowerCase(text, end, limit));
    const abbreviated = marksEnd === position + 1 && isAbbreviation(text, start, position);
    return !abbreviated && !startsLowerCase(text, end, limit);
  }
}

function startsLowerCase(text: string, from: number, limit: number): boolean {
  let position = from;
  const furthest = Math.min(limit, from + 16);
  while (position < furthest && /[\s"'“‘(]/.test(text.charAt(position))) position += 1;
  return /\p{Ll}/u.test(text.charAt(position));
}

function isAbbreviation(text: string, start: number, dot: number): boolean {
  const before = /[\p{L}\p{N}.]+$/u.exec(text.slice(Math.max(start, dot - 12), dot))?.[0];
  if (before === undefined) return false;
  if (/^\p{Lu}$/u.test(before) || ABBREVIATIONS.has(before.toLowerCase())) return true;
  return /^\d{1,3}$/.test(before) && text.slice(start, dot).trim() === before;
}

function longSentenceCut(text: string, start: number, limit: number): number {
  for (let position = limit - 1; position > start + MAX_SENTENCE_LENGTH / 2; position -= 1) {
    if (/[\s,;，；、：]/.test(text.charAt(position))) return position + 1;
  }
  return safeCut(text, start, limit);
}

const segmenters = new Map<Language, Intl.Segmenter>();

function segmenterFor(language: Language): Intl.Segmenter {
  let segmenter = segmenters.get(language);
  if (segmenter === undefined) {
    segmenter = new Intl.Segmenter(language, { granularity: "word" });
    segmenters.set(language, segmenter);
  }
  return segmenter;
}

/** Words of one sentence. Callers pass bounded input: the segmenter's time grows with the square of its length. */
export function splitWords(sentence: string, language: Language): Word[] {
  const found: Word[] = [];
  let previousEnd = -1;
  for (const { segment, index, isWordLike } of segmenterFor(language).segment(
    sentence.slice(0, 2 * MAX_SENTENCE_LENGTH),
  )) {
    if (isWordLike !== true) continue;
    const lower = segment.toLowerCase().replaceAll("’", "'");
    const wide = isWide(segment.charAt(0));
    const gap = previousEnd === -1 ? "." : sentence.slice(previousEnd, index);
    found.push({
      text: segment,
      key: wide ? lower : stripEnding(lower),
      stop: STOP_WORDS.en.has(lower) || STOP_WORDS.zh.has(lower) || isTrivial(lower),
      joined: wide ? gap === "" : gap === " " || gap === "-",
    });
    previousEnd = index + segment.length;
  }
  return found;
}

/**
 * One letter or character, a number, an English adverb, a Chinese character with its particle: too short to name a
 * subject.
 */
function isTrivial(word: string): boolean {
  return (
    word.length < 2 ||
    /^[\p{N}.,:%_]+$/u.test(word) ||
    /^[a-z]{3,}ly$/.test(word) ||
    /^.[的了着]$/.test(word) ||
    NUMBER.test(word)
  );
}

/** Numbers in words, in Chinese with the unit that is counted. */
const NUMBER =
  /^(?:two|three|four|five|six|seven|eight|nine|ten|twenty|hundred|thousand|million|billion|percent|third|half)$|^(?:百分之|第?[零一二两三四五六七八九十百千万亿几半]+[个只件条位名年月日周天时分秒元岁次种家座份点倍]?)$/;

function stripEnding(word: string): string {
  const bare = word.endsWith("'s") ? word.slice(0, -2) : word;
  if (/^[a-z]{2,}ies$/.test(bare)) return `${bare.slice(0, -3)}y`;
  if (/^[a-z]{2,}(?:ss|sh|ch|x|z)es$/.test(bare)) return bare.slice(0, -2);
  return /^[a-z]{3,}s$/.test(bare) && !/(?:ss|us|is)$/.test(bare) ? bare.slice(0, -1) : bare;
}

/** At most `limit` items, evenly spread and always including the first one. */
export function sampleEvenly<T>(items: readonly T[], limit: number): T[] {
  if (items.length <= limit) return [...items];
  return Array.from({ length: limit }, (_, index) => items[Math.floor((index * items.length) / limit)]!);
}
