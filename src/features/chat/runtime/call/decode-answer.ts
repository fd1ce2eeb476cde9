/** What a peer has answered, as artifacts. */

import { EXTENSIONS } from "../../../../core/model/extensions.ts";
import { isRawPart, isTextPart, type RawPart } from "../../../../core/model/message.ts";
import type { Clock } from "../../../../core/model/ports.ts";
import type { Artifact } from "../../../../core/model/task.ts";
import type { PostFile } from "../../../../core/wire/channel.ts";
import { readFiles } from "../files.ts";

export interface Answer {
  readonly text: string;
  readonly files: readonly PostFile[];
  /** No marker says that it is the result. */
  readonly isUnverified: boolean;
}

interface DecodedAnswer {
  readonly text: string;
  /** The files, each as an artifact of its own. */
  readonly artifacts: readonly Artifact[];
  /** What is missing, and why. */
  readonly notes: readonly string[];
}

/** Of what is not declared a result by its author. */
export const UNVERIFIED = { metadata: { [EXTENSIONS.unverified]: true }, extensions: [EXTENSIONS.unverified] };

export async function decodeAnswer({ files, isUnverified, text }: Answer, clock: Clock): Promise<DecodedAnswer> {
  const parts = await readFiles(files, clock);
  const read = parts.filter(isRawPart);
  const whole = read.find((part) => isWhole(part, text));
  const artifacts = read
    .filter((part) => part !== whole)
    .map((part, index) => {
      const name = part.filename === undefined ? undefined : { name: part.filename };
      return { artifactId: `file-${index + 1}`, ...name, parts: [part], ...(isUnverified && UNVERIFIED) };
    });
  const notes = parts.filter(isTextPart).map((part) => part.text);
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
