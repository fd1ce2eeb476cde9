import type { Language } from "./language.ts";
import { isWide } from "./plain-text.ts";
import type { Word } from "./segment.ts";

export interface Keyword {
  readonly text: string;
  readonly key: string;
  readonly weight: number;
}

interface Candidate {
  readonly key: string;
  readonly parts: readonly string[];
  /** How often each spelling occurs; capitals at the beginning of a sentence do not count as a spelling of their own. */
  readonly spellings: Map<string, number>;
  readonly first: number;
  count: number;
}

const LONGEST_PHRASE = 3;
/** Weight of a phrase of one, two, three words: what is said in more words says more. */
const PHRASE_WEIGHT = [0, 1, 1.7, 2.2] as const;

/** Words and repeated phrases by weight, the heaviest first; ties keep the order of the text. */
export function keywordsOf(sentences: readonly (readonly Word[])[], language: Language, limit: number): Keyword[] {
  const candidates = collect(sentences, language);
  const ranked = [...candidates.values()]
    .filter(({ parts, count }) => parts.length === 1 || count >= 2)
    .map((candidate) => ({ candidate, weight: weightOf(candidate) }))
    .sort((a, b) => b.weight - a.weight || a.candidate.first - b.candidate.first);

  const chosen: Keyword[] = [];
  const covered = new Map<string, number>();
  for (const { candidate, weight } of ranked) {
    if (chosen.length >= limit) break;
    // "learning" next to "machine learning" says nothing unless it also occurs often without it.
    const coveredCount = Math.max(...candidate.parts.map((part) => covered.get(part) ?? 0));
    if (coveredCount > 0 && candidate.count < 2 * coveredCount) continue;
    for (const part of candidate.parts) covered.set(part, Math.max(covered.get(part) ?? 0, candidate.count));
    chosen.push({ text: usualSpelling(candidate), key: candidate.key, weight });
  }
  return chosen;
}

function collect(sentences: readonly (readonly Word[])[], language: Language): Map<string, Candidate> {
  const candidates = new Map<string, Candidate>();
  let position = 0;
  for (const words of sentences) {
    words.forEach((_, start) => {
      position += 1;
      for (let length = 1; length <= LONGEST_PHRASE && start + length <= words.length; length += 1) {
        const phrase = words.slice(start, start + length);
        const last = phrase[length - 1]!;
        if (last.stop || (length > 1 && !last.joined)) break;
        add(candidates, phrase, position, start === 0, language);
      }
    });
  }
  return candidates;
}

function add(
  candidates: Map<string, Candidate>,
  phrase: readonly Word[],
  position: number,
  opensSentence: boolean,
  language: Language,
): void {
  const parts = phrase.map((word) => word.key);
  const key = parts.join(" ");
  let candidate = candidates.get(key);
  if (candidate === undefined) {
    candidate = { key, parts, spellings: new Map(), first: position, count: 0 };
    candidates.set(key, candidate);
  }
  candidate.count += 1;
  const spelling = phrase.reduce(
    (text, word) => (text === "" ? word.text : text + gap(text, word.text) + word.text),
    "",
  );
  const neutral = opensSentence && language === "en" && /^\p{Lu}\p{Ll}+/u.test(spelling);
  const shown = neutral ? spelling.charAt(0).toLowerCase() + spelling.slice(1) : spelling;
  candidate.spellings.set(shown, (candidate.spellings.get(shown) ?? 0) + (neutral ? 0.5 : 1));
}

function gap(left: string, right: string): string {
  return isWide(left.charAt(left.length - 1)) && isWide(right.charAt(0)) ? "" : " ";
}

function weightOf({ parts, count }: Candidate): number {
  return count * (PHRASE_WEIGHT[parts.length] ?? 1);
}

function usualSpelling({ spellings, key }: Candidate): string {
  let best = key;
  let most = 0;
  for (const [spelling, count] of spellings) {
    if (count > most) [best, most] = [spelling, count];
  }
  return best;
}
