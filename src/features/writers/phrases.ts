/** Shorter forms of a sentence that are still in the text word for word: its main clause, and a phrase for a heading. */

import type { Language } from "./language.ts";
import { capitalize, columns, endsSentence, stripFinalPunctuation } from "./plain-text.ts";

/** "However, reefs recover" becomes "Reefs recover". */
const CONNECTIVE =
  /^(?:however|but|and|still|so|moreover|furthermore|in addition|as a result|finally|today|now|meanwhile|therefore|thus|of course|for example|for instance),?\s+|^(?:不过|但是|然而|此外|另外|同时|因此|所以|总之|如今|目前|当然|例如|比如|与此同时|专家普遍认为|专家认为)，/i;

/** A pronoun that stands for something in an earlier sentence. */
const PRONOUN =
  /^(?:this|these|those|that|it|its|they|their|he|his|she|her|such|both|neither|some of (?:them|you)|one of them|the former|the latter|the others?|all others|the rest|\w+ (?:it|them|him|her|this|these)|\w+ing \w+ (?:it|them|him|this|these))\b|^(?:这|那|它|他|她|其(?!他|实)|此(?!外)|该|两者|对此|为此|由此|把它)/i;
/** The subject of a sentence that opens with a time or a place: "Between 1452 and 1455 he printed …". */
const LATER_PRONOUN =
  /^(?:after|at|before|between|by|during|for|from|if|in|later|now|on|once|since|soon|then|under|until|when|while|with|without)\b[^,]{0,40}?,? (?:it|they|he|she|this|these|them)\b/i;
const ORDINAL =
  /^(?:first(?:ly)?|second(?:ly)?|third(?:ly)?|fourth|next|then|finally|lastly|another|the (?:first|second|third|other)\b)(?=[\s,])|^(?:第[一二三四五六七八九十](?=[，,是、：])|首先|其次|再次|然后|接着|最后|[一二三四五]是|其一|其二|其三)|[，：]第一[，是]/i;
const LINKED =
  /^(?:otherwise|still|also|but|and|so|thus|then|together|instead|however|only then|in addition|as a result)\b|^(?:此外|因此|所以|同时|但|不过|然而|否则|于是|另外|反过来|也(?!许))/i;

/** Whether a sentence is only understood with the one before it. */
export function refersBack(sentence: string): boolean {
  return opensWithPronoun(sentence) || LINKED.test(sentence);
}

export function opensWithPronoun(sentence: string): boolean {
  return PRONOUN.test(sentence) || LATER_PRONOUN.test(sentence);
}

/** Whether a clause has a pronoun that may stand for something outside it. */
export function hasLooseEnd(clause: string): boolean {
  return /\b(?:it|them|they|this|these|those|like that|during that)\b/i.test(clause);
}

const SALUTATION =
  /^(?:dear|hello|hi|friends|ladies|thank you|thanks|congratulations|(?:best|kind) regards|yours|sincerely)\b|大家好|谢谢|^(?:各位|尊敬的|亲爱的|此致|敬礼|祝)/i;
/** Details around a text, such as "Present: Ann and Bob" and the date of the next meeting; not "My advice is: wait". */
const DETAIL =
  /^(?:[\p{Script=Latin} ]{2,16}(?<!\b(?:is|are))|\p{Script=Han}{2,5}(?<!是))[:：]|\bnext meeting\b|下次会议|以下|如下|\bfollowing\b/iu;

/** Nothing of what a text says: a greeting, a signature, an announcement of what follows. */
export function isFormality(sentence: string): boolean {
  return SALUTATION.test(sentence) || DETAIL.test(sentence) || /[:：,，]$/.test(sentence);
}

export function isSalutation(line: string): boolean {
  return SALUTATION.test(line);
}

/** One of several that belong together: "Second, …". */
export function isEnumerated(sentence: string): boolean {
  return ORDINAL.test(sentence);
}

/** Openings whose first clause says nothing on its own. */
const SUBORDINATE =
  /^(?:when|while|if|although|though|because|since|as|after|before|until|unless|in|on|at|by|for|from|with|without|according|despite|during|under|over|between|to)\b|^(?:当|如果|虽然|尽管|由于|因为|随着|根据|按照|对于|关于|除了|为了|在|从|借助|通过|要|据|截至|每|\d+ ?年|昨天|今天|以前|过去|近年来)/i;
/** A clause that only says who speaks, or when. */
const SPEECH =
  /(?:表示|宣布|透露|承认|介绍|认为|指出|回应|反映|提醒|发现|显示|表明|说明|证明|意味着|强调|相信|希望|知道|觉得|担心|说|报告|以后|之后|时候?|后|前|个月|期间|早晨|早上|上午|下午|晚上|当天|来说|来看|方面|\d ?[年月日])$|\b(?:said|says|explained|reported|warned|announced)$/;
/** Speech, as opposed to a name in quotation marks. */
const QUOTED = /["「『]|“[^”]{12,}”|“[^”]*$|^[^“]*”/;

/** Where an English sentence can end early without saying something else: before a clause that only adds to it. */
const ADDITION =
  /(?:,|;|:| [–—-]) (?=(?:(?:of )?which|who|whose|where|because|although|though|while|whereas|including|such as|for example|with|and|but|so|mainly|after|since|far)\b)|[;:] | [–—] /g;
/** A clause in Chinese that completes the one before it, which must not stand alone. */
const COMPLETES = /^(?:而|但|却|则|还|否则|所以|因此|从而|并不|不是|只|无法|不|[^，。]{0,7}(?:就|才|都|也|会))/;
/** What follows the colon is what the clause is about. */
const ANNOUNCES = /(?:话|点|个|件|项|是|下|乘坐|明显)$/;
const NEGATION = /\b(?:not|no|never|nobod[y]|neither|few|fewer|only)\b|n['’]t\b|不|没|无|未/i;
const MIN_COLUMNS = 14;

/** The main clause within `limit` columns, or the whole sentence if it fits; undefined if neither does. */
export function mainClause(sentence: string, language: Language, limit: number): string | undefined {
  const whole = stripFinalPunctuation(sentence);
  if (columns(whole, limit + 1) <= limit) return whole;
  const ends = language === "zh" ? chineseEnds(whole) : englishEnds(whole);
  return ends
    .map((end) => whole.slice(0, end).trimEnd())
    .filter((clause) => columns(clause, limit + 1) <= limit && columns(clause, MIN_COLUMNS) >= MIN_COLUMNS)
    .at(-1);
}

function englishEnds(sentence: string): number[] {
  const first = SUBORDINATE.test(sentence) ? sentence.indexOf(",") : -1;
  return [...sentence.matchAll(ADDITION)]
    .filter(({ 0: mark, index }) => {
      const rest = sentence.slice(index + mark.length);
      const before = sentence.slice(0, index);
      if (index <= first || before.split(" ").length < 4) return false;
      // "The engineer, who was ill, said": the clause is in the middle.
      if (/^(?:(?:of )?which|who|whose|where|with)\b/.test(rest) && rest.includes(",")) return false;
      return !(/^(?:but|because|so)\b/.test(rest) && NEGATION.test(before)) && isBalanced(before);
    })
    .map(({ index }) => index);
}

function chineseEnds(sentence: string): number[] {
  const marks = [...sentence.matchAll(/[，；：]|——/g)];
  const first = SUBORDINATE.test(sentence) ? (marks[0]?.index ?? -1) : -1;
  return marks
    .filter(({ 0: mark, index }) => {
      const before = sentence.slice(0, index);
      const rest = sentence.slice(index + mark.length);
      if (index <= first || SPEECH.test(before) || COMPLETES.test(rest)) return false;
      // Of several statements, the last one is not left without its end.
      if (before.includes("；") && mark !== "；") return false;
      if ((mark === "：" && ANNOUNCES.test(before)) || SUBORDINATE.test(before.split(/[，；：]/).at(-1)!)) return false;
      return !(NEGATION.test(before.split(/[，；：]/).at(-1) ?? "") && /^而|^但|^却/.test(rest)) && isBalanced(before);
    })
    .map(({ index }) => index);
}

/** No quotation or bracket is open at the end. */
function isBalanced(text: string): boolean {
  const count = (marks: RegExp) => text.match(marks)?.length ?? 0;
  return (
    count(/[“「『（(《]/g) === count(/[”」』）)》]/g) &&
    count(/"/g) % 2 === 0 &&
    !/(?:^|[\s，])(?:of|the|a|an|和|与|的)$/.test(text)
  );
}

/** Where an English phrase can end if no clause does: at a comma, and before words that add something. */
const PHRASE_END =
  /,? (?=(?:that|which|who|because|while|when|after|before|since|with|by|for|in|on|at|from|over|into|and|as|within|during|between|of)\b)|, | (?:found|fears?|feared|said|says|shows?|showed|suggests?|believes?|hopes?|thinks?|argues?|claims?|reported|warned) that /gi;
const OPEN_END =
  /(?:\b(?:a|an|the|of|and|or|to|that|such|only|not|even|just|more|less|than|is|are|was|were|be|been|has|have|had|will|would|can|could|may|must|should|very|so|as|do|does|did|it|they|he|she|we|i|you|also|both|either|most|some|my|your|our|their|his|her|its|about|there|came|went|began|got|led|lay|lies|continued?|consisted|depends?|received|feels?|means?|explained|reported|said|says|found|fears?|feared|shows?|showed|suggests?|believes?|hopes?|thinks?|argues?|claims?|warned|turns?|usually|instead|rather|long|years|centuries|months|weeks|days|hours|minutes)|[:;])$/i;

/** A phrase for a heading, and how well it reads: 0 for a whole clause, more for a part of one. */
export function headingPhrase(
  sentence: string,
  language: Language,
  limit: number,
  opensText = false,
): { readonly phrase: string; readonly cost: number } | undefined {
  const plain = stripFinalPunctuation(sentence.replace(CONNECTIVE, ""));
  if (QUOTED.test(plain) || /[?？]$/.test(sentence) || isFormality(sentence)) return undefined;
  if ((refersBack(plain) && !opensText) || isEnumerated(plain)) return undefined;
  const clause = mainClause(plain, language, limit);
  if (clause !== undefined && isHeading(clause) && (opensText || !hasLooseEnd(clause)))
    return { phrase: capitalize(clause), cost: 0 };
  const part = language === "zh" ? chineseInner(plain, limit) : englishPart(plain, limit);
  return part === undefined || (!opensText && hasLooseEnd(part)) ? undefined : { phrase: capitalize(part), cost: 1 };
}

function chineseInner(plain: string, limit: number): string | undefined {
  return plain.split(/[，；：]|——/).find((part) => isHeading(part) && isInnerClause(part, limit));
}

function englishPart(plain: string, limit: number): string | undefined {
  if (SUBORDINATE.test(plain)) {
    const opening = plain.split(", ", 1)[0]!;
    const rest = plain.slice(opening.length + 2);
    const isOpening = opening.split(" ").length <= MAX_OPENING_WORDS && rest !== "";
    if (isOpening && SUBORDINATE.test(rest)) return englishPart(rest, limit);
    if (isOpening && !refersBack(rest)) return mainClause(rest, "en", limit) ?? englishPart(rest, limit);
    // "In 1814 the paper was printed by steam": a whole sentence, with its time or place first.
    if (isOpening || !/^(?:in|on|at|by|between|during|from)\b/i.test(plain)) return undefined;
  }
  return [...plain.matchAll(PHRASE_END)]
    .map(({ index }) => plain.slice(0, index))
    .filter((phrase) => columns(phrase, limit + 1) <= limit && phrase.split(" ").length >= 3)
    .filter(
      (phrase) =>
        !OPEN_END.test(phrase) &&
        !/, |\bthat\b/.test(phrase) &&
        !NEGATION.test(phrase) &&
        isBalanced(phrase) &&
        isHeading(phrase),
    )
    .at(-1);
}

/** Of a time or a place before the sentence itself. */
const MAX_OPENING_WORDS = 8;

function isHeading(phrase: string): boolean {
  return columns(phrase, MIN_COLUMNS) >= MIN_COLUMNS && !SPEECH.test(phrase) && !endsSentence(phrase);
}

function isInnerClause(part: string, limit: number): boolean {
  return (
    columns(part, limit + 1) <= limit &&
    !SUBORDINATE.test(part) &&
    !COMPLETES.test(part) &&
    !refersBack(part) &&
    !/有没有|是否/.test(part)
  );
}
