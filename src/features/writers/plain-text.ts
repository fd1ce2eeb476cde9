/** Small, linear helpers that turn marked-up or hostile text into clean single-line text. */

export const MAX_TITLE_LENGTH = 100;

const HAN_OR_WIDE = /[\u2e80-\u9fff\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\u3000-\u303f“”‘’…—]/;
const TERMINAL = /[.!?。！？…؟۔।][\p{Pe}\p{Pf}"'”’*_`]*$/u;

/** Removes inline Markdown and line breaks. The result is never longer than the input. */
export function cleanInline(text: string): string {
  return text
    .replace(/\p{Surrogate}/gu, "\ufffd")
    .replace(/\n[ \t]*>[ \t]?/g, "\n")
    .replace(/!\[([^\]\n]{0,300})\]\([^)\n]{0,2000}\)/g, "$1")
    .replace(/\[([^\]\n]{1,300})\]\([^)\n]{0,2000}\)/g, "$1")
    .replace(/(?<![\p{L}\p{N}*`])\*([^\s*`](?:[^*\n`]{0,200}[^\s*`])?)\*(?![\p{L}\p{N}*`])/gu, "$1")
    .replace(/\*\*|(?<!\w)__(?=\S)|(?<=\S)__(?!\w)|`+|~~/g, "")
    .replace(
      /(?<=[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef])[ \t]*\r?\n\s*(?=[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef])/g,
      "",
    )
    .replace(/[\s\p{Cc}]+/gu, " ")
    .trim();
}

/** Removes list, quote and heading marks, which would become structure of the surrounding Markdown. */
export function stripMarks(line: string): string {
  return line.replace(/^(?:[-*+•>#]+\s+)+/, "");
}

export function endsSentence(text: string): boolean {
  return TERMINAL.test(text.slice(-12));
}

export function stripFinalPunctuation(text: string): string {
  return text.slice(0, -8).concat(text.slice(-8).replace(/[\s.。!！?？,，;；:：、…]+$/u, ""));
}

/** Display width, counted up to `limit`: a Han character takes two columns. */
export function columns(text: string, limit: number): number {
  let width = 0;
  for (let index = 0; index < text.length && width < limit; index += 1) {
    width += HAN_OR_WIDE.test(text.charAt(index)) ? 2 : 1;
  }
  return width;
}

export function isWide(character: string): boolean {
  return HAN_OR_WIDE.test(character);
}

export function capitalize(text: string): string {
  return /^[a-z]/.test(text) && !/^[a-z]+[A-Z0-9]/.test(text) ? text.charAt(0).toUpperCase() + text.slice(1) : text;
}

/** Low surrogates, combining marks, variation selectors and the joiner belong to the character before them. */
function continuesCharacter(code: number): boolean {
  return (code >= 0xdc00 && code <= 0xdfff) || (code >= 0x300 && code <= 0x36f) || code === 0xfe0f || code === 0x200d;
}

/** Cuts at or before `limit` without splitting a character, as far as possible within a few steps. */
export function safeCut(text: string, start: number, limit: number): number {
  const earliest = Math.max(start + 1, limit - 32);
  let cut = limit;
  while (cut > earliest && (continuesCharacter(text.charCodeAt(cut)) || text.charCodeAt(cut - 1) === 0x200d)) cut -= 1;
  return cut;
}

/** At most `limit` characters, cut at a word boundary if possible, with an ellipsis if text was removed. */
export function truncate(text: string, limit: number): string {
  if (text.length <= limit) return text;
  const cut = safeCut(text, 0, limit - 1);
  const space = text.lastIndexOf(" ", cut);
  return `${text.slice(0, space > cut / 2 ? space : cut).trimEnd()}…`;
}

/**
 * Separator between two sentences: none after Chinese punctuation, otherwise a space. Curly quotation marks belong to
 * the text they enclose.
 */
export function gapBetween(before: string, after: string): string {
  const last = before
    .slice(-8)
    .replace(/["”’」』）)]+$/u, "")
    .slice(-1);
  return before === "" || isWide(last) ? "" : /^[.!?]$/.test(last) || !isWide(after.charAt(0)) ? " " : "";
}
