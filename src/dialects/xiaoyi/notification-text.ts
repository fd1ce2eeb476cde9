/** The words of a notification: the bar shows three lines, which hold 84 Latin or 57 Chinese characters. */

const LATIN_ROOM = 84;
const WIDE_ROOM = 57;
/** A whole bar, in units that both kinds of characters take a whole number of. */
const ROOM = LATIN_ROOM * WIDE_ROOM;

/** Whatever is not surely narrow is taken for wide: a bar with room left is better than a word that is cut. */
const NARROW = /^[\p{Script=Latin}\p{Script=Cyrillic}\p{Script=Greek}\p{Nd}\p{M}\x20-\x7e\u00a0-\u00ff]$/u;
const SPACES = /[\p{White_Space}\p{Cc}]+/gu;
const ELLIPSIS = "…";

/** As much of a text as the bar shows, on one line, with dots where there was more. */
export function fitNotificationText(text: string): string {
  const line = text.replaceAll(SPACES, " ").trim();
  let room = ROOM;
  // Where the text ends if dots must follow.
  let end = 0;
  for (const { index, segment } of characters().segment(line)) {
    room -= widthOf(segment);
    if (room < 0) return line.slice(0, end).trimEnd() + ELLIPSIS;
    if (room >= widthOf(ELLIPSIS)) end = index + segment.length;
  }
  return line;
}

let segmenter: Intl.Segmenter | undefined;

/** Made for the first notification: it loads tables, and most servers send none. */
function characters(): Intl.Segmenter {
  segmenter ??= new Intl.Segmenter(undefined, { granularity: "grapheme" });
  return segmenter;
}

function widthOf(segment: string): number {
  let width = 0;
  for (const character of segment) width += NARROW.test(character) ? WIDE_ROOM : LATIN_ROOM;
  return width;
}
