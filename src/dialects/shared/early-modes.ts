/**
 * Modes of early cards. Some are words for kinds of parts (text, data, file), some are media types, and readers of either
 * look at the same list.
 */

const WORDS = ["text", "data", "file"] as const;
type Word = (typeof WORDS)[number];

/** A word for parts of any kind of file says nothing about which. */
const MEDIA_TYPE_OF_WORD: Readonly<Record<Word, string>> = {
  text: "text/plain",
  data: "application/json",
  file: "*/*",
};

export function isWord(mode: unknown): mode is Word {
  return WORDS.some((word) => word === mode);
}

function wordsFor(mediaType: string): readonly Word[] {
  const plain = mediaType.split(";", 1)[0]?.trim().toLowerCase() ?? "";
  if (plain === "*/*") return WORDS;
  if (plain.startsWith("text/")) return ["text"];
  return [plain === "application/json" || plain.endsWith("+json") ? "data" : "file"];
}

/** The words for all of them, then the media types. */
export function toEarlyModes(modes: readonly string[]): string[] {
  return [...new Set([...modes.flatMap((mode) => (isWord(mode) ? [mode] : wordsFor(mode))), ...modes])];
}

/** Media types only: a word counts where no media type of its kind stands beside it. */
export function fromEarlyModes(modes: readonly string[]): string[] {
  const explained = new Set(modes.filter((mode) => !isWord(mode)).flatMap(wordsFor));
  return [
    ...new Set(
      modes.flatMap((mode) => {
        if (!isWord(mode)) return [mode];
        return explained.has(mode) ? [] : [MEDIA_TYPE_OF_WORD[mode]];
      }),
    ),
  ];
}
