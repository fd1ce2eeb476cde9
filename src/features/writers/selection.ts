/** Which sentences say most of what a text says. */

import { type Analysis, byScore, sentenceText, sum } from "./analysis.ts";
import { isEnumerated, isFormality, refersBack } from "./phrases.ts";
import { columns, endsSentence } from "./plain-text.ts";

/** Words with which authors announce results, decisions and advice. */
const CUE =
  /\b(?:results? (?:show|suggest|indicate)|(?:shows?|found) that|we (?:found|recommend|conclude)|decided|rejected|recommends?|key|most (?:common|important)|main reason|nevertheless|in short|overall|should|announced|decision)\b|(?:结果|分析|研究)(?:显示|表明)|研究人员还?发现|决定|建议|要求|关键|最(?:容易|重要|常见)|必须|应当|总之|首次|第一条|宣布|不是.{1,20}而是/i;
/** Words with which they say what the whole text is for. */
const THESIS =
  /\b(?:i (?:think|believe|argue) (?:that|it|we)|my (?:whole |main )?(?:message|point|argument|view|advice)|the (?:whole|main|real|central|key) (?:message|point|question|issue|problem)|what matters|should therefore|the results show|the reason is|we are (?:releasing|announcing)|will take place|voted)\b|我认为|本文认为|我主张|我建议|我的(?:观点|看法|主张|结论|建议)|重要的(?:不)?是|归根结底|记住一句话|正式(?:发布|开通)|改为|关键在于|分析表明|(?:经验|教训|事实|实践)(?:说明|表明|证明|告诉)/i;
/** What follows is the point of such a sentence: "We have removed two things." */
const ANNOUNCEMENT =
  /\b(?:two|three|four|five|several|a few) (?:\w+ ){0,2}?(?:things|reasons|measures|points|steps|ways|kinds|problems|questions)\b[^,;:]*$|有[两二三四五六几]个。?$|[两二三四五六几](?:件事|点|个问题|个原因|项措施)。?$|我想讲/;
/** Amounts, dates and shares: what readers look for in a summary. */
const FIGURE = /\d[\d.,]*|\bpercent\b|[一二两三四五六七八九十百千万亿]{2,}|百分之/g;
const MAX_FIGURES = 4;
/** A date, which in news and announcements is what a reader has to know. */
const DATE =
  /\b\d{1,2} (?:January|February|March|April|May|June|July|August|September|October|November|December)\b|\d ?[年月] ?\d{1,2} ?[月日]/;
/** Added to a rank, which says little in a short text: there, most sentences share no word with another. */
const RANK_OF_ANY = 0.6;
/** Factor for the score of a sentence whose paragraph is already represented. */
const SAME_PARAGRAPH = 0.6;
const REPETITION = 0.6;
/** Factor for the first sentence of a paragraph, which often says what it is about. */
const PARAGRAPH_OPENING = 1.15;
/** Factors for a sentence that refers to the one before it. */
const WITHOUT_ANTECEDENT = 0.7;
const WITH_ANTECEDENT = 1.6;
const CONTINUES_OPENING = 2.1;
/** Factor for a greeting, or one of an enumeration, if nothing limits the choice but its number. */
const UNWANTED = 0.01;
/** What a word counts for each time that it was chosen before. */
const KNOWN_WORD = 0.3;

interface Selection {
  readonly count: number;
  /** Factor for the first candidate. */
  readonly openingBonus: number;
  /** Characters of all chosen ones together; if absent, any sentence may be chosen, also one that needs another. */
  readonly room?: number;
  /** Characters that one takes up. */
  readonly lengthOf?: (index: number) => number;
}

/**
 * The best sentences among `candidates`, in source order. Each is chosen for its rank and for what it adds: words that
 * are frequent in the text and not yet in the choice. It is spread over the paragraphs and has no near duplicates. A
 * sentence that is only understood with earlier ones is chosen together with them.
 */
export function bestSentences(analysis: Analysis, candidates: readonly number[], selection: Selection): number[] {
  const { ranking, blocks, sentences } = analysis;
  const { count, lengthOf = () => 0, openingBonus, room } = selection;
  const texts = candidates.map((index) => sentenceText(analysis, index));
  const unwanted = texts.map(
    (text, at) => isFormality(text) || isEnumerated(text) || isSignature(text, at >= texts.length - 2),
  );
  const unwantedFactor = room === undefined || unwanted.every(Boolean) ? UNWANTED : 0;
  const first = unwanted.indexOf(false);
  const scores = candidates.map((index, position) => {
    const opens = position === first ? openingBonus : opensParagraph(analysis, index) ? PARAGRAPH_OPENING : 1;
    return (
      Math.sqrt((ranking.scores[index] ?? 0) + RANK_OF_ANY) *
      formFactor(texts[position]!) *
      opens *
      (unwanted[position] ? unwantedFactor : 1)
    );
  });
  const group = (index: number): number => blocks[sentences[index]!.block]!.group;
  const available = new Set(candidates);
  const gain = createGain(analysis);
  const usualGain = sum(candidates, gain.of) / candidates.length;
  const chosen = new Set<number>();
  let left = room ?? Number.POSITIVE_INFINITY;
  while (chosen.size < count) {
    const gains = candidates.map((index, position) => {
      if (scores[position] === 0) return 0;
      const refers = index > 0 && refersBack(texts[position]!);
      const factor = !refers
        ? 1
        : !chosen.has(index - 1)
          ? WITHOUT_ANTECEDENT
          : position === first + 1
            ? CONTINUES_OPENING
            : WITH_ANTECEDENT;
      // What a text is for is often said in words that say little by themselves.
      const added = THESIS.test(texts[position]!) ? Math.max(gain.of(index), usualGain) : gain.of(index);
      return scores[position]! * factor * added;
    });
    const best = byScore(gains)[0];
    if (best === undefined || gains[best]! <= 0) break;
    const index = candidates[best]!;
    const bundle = room === undefined ? [index] : withAntecedents(analysis, index, available);
    const taken = bundle?.filter((one) => !chosen.has(one));
    const length = sum(taken ?? [], lengthOf);
    scores[best] = 0;
    if (taken === undefined || length > left) continue;
    left -= length;
    for (const index of taken) {
      chosen.add(index);
      gain.take(index);
      const wasRepresented = [...chosen].some((other) => other !== index && group(other) === group(index));
      candidates.forEach((other, position) => {
        if (other === index || ranking.similarity(index, other) > REPETITION) scores[position] = 0;
        else if (!wasRepresented && group(other) === group(index)) scores[position]! *= SAME_PARAGRAPH;
      });
    }
  }
  return [...chosen].sort((a, b) => a - b);
}

/** Sentences before one that are needed to understand it; more than these make it a poor choice. */
const MAX_ANTECEDENTS = 2;

/** The sentence, after those that it refers back to; undefined if they cannot be chosen. */
function withAntecedents(analysis: Analysis, index: number, available: ReadonlySet<number>): number[] | undefined {
  const taken = [index];
  for (let first = index; refersBack(sentenceText(analysis, first)); first -= 1) {
    // What opens the text refers to nothing in it.
    if (first === 0) break;
    if (taken.length > MAX_ANTECEDENTS || !available.has(first - 1)) return undefined;
    taken.unshift(first - 1);
  }
  // "My argument is not that … It is that …": what something is follows what it is not.
  const text = sentenceText(analysis, index);
  const isHalf = THESIS.test(text) && /\bnot that\b/.test(text) && refersBack(sentenceText(analysis, index + 1));
  return isHalf && available.has(index + 1) ? [...taken, index + 1] : taken;
}

/** A name or a date at the end of a letter. */
function isSignature(text: string, isAtEnd: boolean): boolean {
  return isAtEnd && !endsSentence(text) && columns(text, SIGNATURE_COLUMNS) < SIGNATURE_COLUMNS;
}

const SIGNATURE_COLUMNS = 40;

/** What the form of a sentence says about its worth in a selection. */
function formFactor(text: string): number {
  const figures = Math.min(MAX_FIGURES, text.match(FIGURE)?.length ?? 0);
  const factors = [
    endsSentence(text) ? 1 : 0.6,
    /[?？]["”’」]*$/.test(text) ? 0.5 : 1,
    /^["“「『]/.test(text) ? 0.7 : 1,
    columns(text, 30) < 30 ? 0.6 : 1,
    ANNOUNCEMENT.test(text) ? 0.4 : THESIS.test(text) ? 3 : CUE.test(text) ? 1.5 : 1,
    1 + 0.12 * figures,
    DATE.test(text) ? 1.3 : 1,
  ];
  return factors.reduce((product, factor) => product * factor, 1);
}

/** How much a sentence adds to those that were taken. */
function createGain({ words }: Analysis) {
  const terms = words.map((own) => new Set(own.filter((word) => !word.stop).map((word) => word.key)));
  const weights = new Map<string, number>();
  for (const set of terms) for (const key of set) weights.set(key, (weights.get(key) ?? 0) + 1);
  for (const [key, count] of weights) weights.set(key, Math.sqrt(count));
  return {
    /** Long sentences add more words, but not in proportion more for their length. */
    of(index: number): number {
      const own = terms[index]!;
      return own.size === 0 ? 1 : sum(own, (key) => weights.get(key) ?? 0) / Math.cbrt(own.size);
    },
    take(index: number): void {
      for (const key of terms[index]!) weights.set(key, (weights.get(key) ?? 0) * KNOWN_WORD);
    },
  };
}

function opensParagraph({ blocks, sentences }: Analysis, index: number): boolean {
  const groupOf = (at: number) => blocks[sentences[at]?.block ?? -1]?.group;
  return groupOf(index) !== groupOf(index - 1);
}
