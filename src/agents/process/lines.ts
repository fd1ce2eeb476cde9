/** A line without end must not fill the memory: past this many characters it is handed on in pieces. */
export const LONGEST_LINE = 1_048_576;

/** Lines of one read that are handed on one by one; a flood of short lines would keep all else waiting for as many events. */
const MAX_LINES_OF_READ = 64;
const MAY_BE_JSON = /^\s*\{/;

export interface Line {
  /** With its newline, so that all lines joined are the whole output. */
  readonly text: string;
  /** False for the pieces of a line that was too long to keep, and for lines of text that came in a flood. */
  readonly whole: boolean;
}

/** Cuts decoded text into lines as it comes, reading on only when asked for more. */
export async function* linesOf(
  chunks: AsyncIterable<string>,
  longest: number = LONGEST_LINE,
): AsyncGenerator<Line, void, undefined> {
  let pending = "";
  let whole = true;
  for await (const chunk of chunks) {
    let start = 0;
    let count = 0;
    let joined = "";
    for (let end = chunk.indexOf("\n"); end !== -1; end = chunk.indexOf("\n", start)) {
      const text = pending + chunk.slice(start, end + 1);
      if (count++ < MAX_LINES_OF_READ || MAY_BE_JSON.test(text)) {
        if (joined !== "") yield { text: joined, whole: false };
        joined = "";
        yield { text, whole };
      } else joined += text;
      pending = "";
      whole = true;
      start = end + 1;
    }
    if (joined !== "") yield { text: joined, whole: false };
    pending += chunk.slice(start);
    if (pending.length > longest) {
      yield { text: pending, whole: false };
      pending = "";
      whole = false;
    }
  }
  if (pending !== "") yield { text: pending, whole };
}
