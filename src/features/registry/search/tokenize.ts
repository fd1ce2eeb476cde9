/**
 * Splits text into the terms of the index. English words are reduced to a stem, names such as `generate_outline` and
 * `WeatherTool` to their words. Text without spaces between words (Chinese, Japanese, Korean) becomes overlapping pairs
 * of characters: a dictionary segments a query and a description differently, and takes a hundred times as long.
 */

const WORD = /[\p{L}\p{N}]+/gu;
/** Also splits `WeatherTool` and `bookFlight`. */
const ASCII_WORD = /[A-Z]*[a-z0-9]+|[A-Z]+/g;
const CAMEL_CASE = /(\p{Ll}|\p{N})(?=\p{Lu})/gu;
const NON_ASCII = /[^\0-\x7f]/;
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]+/gu;
/** Nobody searches for a longer word; it would only take memory. */
const MAX_TERM_LENGTH = 40;

/** Words that say nothing about an agent. */
const STOP_WORDS = new Set(
  "a an and any are as at be by can do for from get give has have help how i in into is it its me my need of on or our please so some that the their them this to us use using want we what which who will with you your".split(
    " ",
  ),
);

/** The words of a text in ASCII as they are written; undefined if it has other characters. */
export function asciiWords(text: string): readonly string[] | undefined {
  return NON_ASCII.test(text) ? undefined : (text.match(ASCII_WORD) ?? []);
}

/** Empty for a word that says nothing. */
export function termOf(word: string): string {
  const lower = word.toLowerCase();
  return STOP_WORDS.has(lower) ? "" : stem(lower).slice(0, MAX_TERM_LENGTH);
}

/** Terms in order, repeated as often as they occur. `forQuery`: without the single characters that pairs cover. */
export function tokenize(text: string, forQuery = false): readonly string[] {
  const ascii = asciiWords(text);
  if (ascii !== undefined) return ascii.map(termOf).filter((term) => term !== "");
  const terms: string[] = [];
  for (const [word] of text.normalize("NFKC").replaceAll(CAMEL_CASE, "$1 ").toLowerCase().matchAll(WORD)) {
    if (NON_ASCII.test(word)) addMixed(word, forQuery, terms);
    else addWord(word, terms);
  }
  return terms;
}

function addWord(word: string, terms: string[]): void {
  const term = termOf(word);
  if (term !== "") terms.push(term);
}

/** Runs of unspaced script, and what is between them. */
function addMixed(word: string, forQuery: boolean, terms: string[]): void {
  let end = 0;
  for (const { 0: run, index } of word.matchAll(UNSPACED)) {
    if (index > end) addWord(word.slice(end, index), terms);
    addUnspaced([...run], forQuery, terms);
    end = index + run.length;
  }
  if (end < word.length) addWord(word.slice(end), terms);
}

function addUnspaced(characters: readonly string[], forQuery: boolean, terms: string[]): void {
  for (const [at, character] of characters.entries()) {
    if (!forQuery || characters.length === 1) terms.push(character);
    const next = characters[at + 1];
    if (next !== undefined) terms.push(character + next);
  }
}

const MIN_STEM = 3;

/** Plurals and the commonest endings of verbs; what is left need not be a word, only the same for both. */
function stem(word: string): string {
  if (word.length <= MIN_STEM) return word;
  let root = word;
  if (root.endsWith("ies")) root = `${root.slice(0, -3)}y`;
  else if (root.endsWith("s") && !/(?:ss|us|is)$/.test(root)) root = root.slice(0, -1);
  const verb = /^(.{3,}?)(?:ing|ed)$/.exec(root)?.[1];
  if (verb !== undefined && /[aeiouy]/.test(verb)) root = verb.replace(/([^aeiouls])\1$/, "$1");
  return root.length > MIN_STEM && root.endsWith("e") ? root.slice(0, -1) : root;
}
