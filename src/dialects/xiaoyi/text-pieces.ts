/** Text in pieces that a frame can carry. */

/** Of one frame, in code points. Longer ones are reported to cost the connection. */
export const LONGEST_TEXT = 4_000;

const HIGH_SURROGATES = [0xd800, 0xdbff] as const;
const LOW_SURROGATES = [0xdc00, 0xdfff] as const;

/** Where the code point after the one at `at` begins. */
function after(text: string, at: number): number {
  return isWithin(text.charCodeAt(at), HIGH_SURROGATES) && isWithin(text.charCodeAt(at + 1), LOW_SURROGATES)
    ? at + 2
    : at + 1;
}

function isWithin(unit: number, [first, last]: readonly [number, number]): boolean {
  return unit >= first && unit <= last;
}

export function countCodePoints(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; at = after(text, at)) count++;
  return count;
}

/** The last code points of a text, at most so many. */
export function lastOf(text: string, longest: number = LONGEST_TEXT): string {
  if (text.length <= longest) return text;
  const surplus = countCodePoints(text) - longest;
  let start = 0;
  for (let passed = 0; passed < surplus; passed++) start = after(text, start);
  return text.slice(start);
}

/** Pieces of at most `longest` code points that joined are the text; none for empty text. No pair is torn apart. */
export function splitText(text: string, longest: number = LONGEST_TEXT): string[] {
  // Never more code points than code units: most texts need no counting.
  if (text.length <= longest) return text === "" ? [] : [text];
  const pieces: string[] = [];
  let start = 0;
  let count = 0;
  for (let at = 0; at < text.length; at = after(text, at)) {
    if (count === longest) {
      pieces.push(text.slice(start, at));
      start = at;
      count = 0;
    }
    count++;
  }
  pieces.push(text.slice(start));
  return pieces;
}
