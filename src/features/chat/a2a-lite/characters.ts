/** Characters as the marker's grammar sees them. */

/** Separates the parameters of a marker; does not end a line. */
export function isSpace(code: number): boolean {
  if (code < 0x80) return code === 0x20 || code === 0x09;
  return code === 0xa0 || code === 0x3000 || (code >= 0x2000 && code <= 0x200a) || code === 0x202f || code === 0x205f;
}

export function isLineBreak(code: number): boolean {
  return (code >= 0x0a && code <= 0x0d) || code === 0x85 || code === 0x2028 || code === 0x2029;
}

/** Needed by scripts and emoji. */
export function isJoiner(code: number): boolean {
  return code === 0x200c || code === 0x200d;
}

/** Control and format characters: they show nothing, or change the order in which text is shown. */
export function isInvisible(code: number): boolean {
  if (code < 0x20) return !(code === 0x09 || isLineBreak(code));
  if (code < 0x7f) return false;
  return (
    (code <= 0x9f && code !== 0x85) ||
    code === 0xad ||
    code === 0x34f ||
    code === 0x61c ||
    code === 0x115f ||
    code === 0x1160 ||
    code === 0x17b4 ||
    code === 0x17b5 ||
    (code >= 0x180b && code <= 0x180e) ||
    (code >= 0x200b && code <= 0x200f) ||
    (code >= 0x202a && code <= 0x202e) ||
    (code >= 0x2060 && code <= 0x206f) ||
    code === 0x3164 ||
    code === 0xfeff ||
    code === 0xffa0 ||
    (code >= 0xfff9 && code <= 0xfffb) ||
    (code >= 0xfdd0 && code <= 0xfdef) ||
    code >= 0xfffe
  );
}

/** Full-width forms of ASCII, as Chinese and Japanese keyboards enter them, are the characters themselves; so are 【 and 】. */
export function foldWidth(code: number): number {
  if (code === 0x3010) return 0x5b;
  if (code === 0x3011) return 0x5d;
  return code >= 0xff01 && code <= 0xff5e ? code - 0xfee0 : code;
}

const LINE_BREAKS = /\r\n?|[\v\f\u0085\u2028\u2029]/g;
/** Besides tabs and line breaks; noncharacters are not allowed in XML. */
const CONTROLS = /[^\P{Cc}\t\n]|[\ufdd0-\ufdef\ufffe\uffff]/gu;

/**
 * What any network makes of a text, so that a text which is escaped after this arrives as it was escaped: line breaks
 * are `\n`, other control characters are spaces, and it is well-formed UTF-16.
 */
export function normalizeText(text: string): string {
  return text.replaceAll(LINE_BREAKS, "\n").replaceAll(CONTROLS, " ").toWellFormed();
}
