/** The answer of a participant, as artifacts. */

import { EXTENSIONS } from "../../../core/model/extensions.ts";
import { isRawPart, isTextPart, type Part, type RawPart } from "../../../core/model/message.ts";
import type { Artifact } from "../../../core/model/task.ts";

interface DecodedAnswer {
  readonly text: string;
  /** The files, each as an artifact of its own. */
  readonly artifacts: readonly Artifact[];
  /** What is missing, and why. */
  readonly notes: readonly string[];
}

/** Marks an artifact that no marker declares to be the result. */
export const UNVERIFIED = { metadata: { [EXTENSIONS.unverified]: true }, extensions: [EXTENSIONS.unverified] };

/** `files`: the files of the answer, or a text for each that could not be read. */
export function decodeAnswer(text: string, files: readonly Part[], isUnverified: boolean): DecodedAnswer {
  const read = files.filter(isRawPart);
  const whole = read.find((part) => isWhole(part, text));
  const artifacts = read
    .filter((part) => part !== whole)
    .map((part, index) => {
      const name = part.filename === undefined ? undefined : { name: part.filename };
      return { artifactId: `file-${index + 1}`, ...name, parts: [part], ...(isUnverified && UNVERIFIED) };
    });
  const notes = files.filter(isTextPart).map((part) => part.text);
  return { text: whole === undefined ? text : toText(whole), artifacts, notes };
}

const ELLIPSIS = "…";

/** A long text is posted as a file, below its beginning. */
function isWhole(part: RawPart, excerpt: string): boolean {
  if (part.mediaType?.startsWith("text/") !== true || !excerpt.endsWith(ELLIPSIS)) return false;
  return toText(part).startsWith(excerpt.slice(0, -ELLIPSIS.length));
}

function toText({ raw }: RawPart): string {
  return Buffer.from(raw, "base64").toString("utf8");
}
