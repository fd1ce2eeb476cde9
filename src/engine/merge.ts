import { withParts } from "../model/artifact.ts";
import type { TaskEvent } from "../model/event.ts";
import { isPlainText } from "../model/part.ts";

/** Merging stops here, so that a run that never pauses is slowed down by the count of its events. */
const LONGEST_MERGED_TEXT = 64 * 1024;

/** Two adjacent plain-text chunks of one artifact as one chunk, or undefined if they must stay apart. */
export function mergeChunks(earlier: TaskEvent, later: TaskEvent): TaskEvent | undefined {
  if (!("artifactUpdate" in earlier) || !("artifactUpdate" in later)) return undefined;
  const first = earlier.artifactUpdate;
  const second = later.artifactUpdate;
  if (second.append !== true || first.lastChunk === true || first.artifact.artifactId !== second.artifact.artifactId) {
    return undefined;
  }
  if (first.metadata !== undefined || second.metadata !== undefined) return undefined;
  const { artifact } = second;
  if (artifact.metadata !== undefined || artifact.description !== undefined || artifact.extensions !== undefined) {
    return undefined;
  }
  if (artifact.name !== undefined && artifact.name !== first.artifact.name) return undefined;
  const left = first.artifact.parts;
  const last = left.at(-1);
  const next = artifact.parts[0];
  if (artifact.parts.length !== 1 || last === undefined || next === undefined) return undefined;
  if (!isPlainText(last) || !isPlainText(next) || last.text.length > LONGEST_MERGED_TEXT) return undefined;
  const parts = left.slice();
  parts[parts.length - 1] = { text: last.text + next.text };
  return {
    artifactUpdate: {
      ...first,
      artifact: withParts(first.artifact, parts),
      ...(second.lastChunk === true ? { lastChunk: true } : undefined),
    },
  };
}
