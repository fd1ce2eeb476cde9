/** A line without end must not fill the memory: past this many characters it is handed on in pieces. */
export const LONGEST_LINE = 1_048_576;

export interface Line {
  /** With its newline, so that all lines joined are the whole output. */
  readonly text: string;
  /** False for the pieces of a line that was too long to keep. */
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
    for (let end = chunk.indexOf("\n"); end !== -1; end = chunk.indexOf("\n", start)) {
      yield { text: pending + chunk.slice(start, end + 1), whole };
      pending = "";
      whole = true;
      start = end + 1;
    }
    pending += chunk.slice(start);
    if (pending.length > longest) {
      yield { text: pending, whole: false };
      pending = "";
      whole = false;
    }
  }
  if (pending !== "") yield { text: pending, whole };
}
