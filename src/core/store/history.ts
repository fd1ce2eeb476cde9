import type { Message } from "../model/message.ts";
import type { Task } from "../model/task.ts";
import { decodeSegment } from "./segment.ts";

/** A compacted history is kept in pieces of this many messages, so that its end can be read alone. */
export const MESSAGES_PER_PART = 64;
/** Part of a snapshot that holds the artifacts; the history's pieces follow from 1. */
export const ARTIFACTS_PART = 0;

interface SnapshotPart {
  readonly part: number;
  readonly body: string;
}

/** What a compacted task is kept as, beside its row. */
export function toSnapshotParts({ artifacts, history = [] }: Task): SnapshotPart[] {
  const parts: SnapshotPart[] = [];
  if (artifacts !== undefined) parts.push({ part: ARTIFACTS_PART, body: JSON.stringify(artifacts) });
  for (let start = 0; start < history.length; start += MESSAGES_PER_PART) {
    const body = JSON.stringify(history.slice(start, start + MESSAGES_PER_PART));
    parts.push({ part: ARTIFACTS_PART + 1 + start / MESSAGES_PER_PART, body });
  }
  return parts;
}

/**
 * The newest messages of a history, from the segments that bring any. Folding the whole log gives the same: each status
 * update adds the message that was received and then, once it is replaced, its own message.
 */
export function readNewestMessages(segments: string, count: number, currentHasMessage: boolean): Message[] {
  const newestFirst: Message[] = [];
  let skipCurrent = currentHasMessage;
  for (const entry of decodeSegment(1, segments).reverse()) {
    if (newestFirst.length >= count) break;
    // Chunks are recognised by their beginning and not parsed.
    if (entry.state === undefined) continue;
    const { event } = entry;
    const status =
      "task" in event ? event.task.status : "statusUpdate" in event ? event.statusUpdate.status : undefined;
    if (status?.message !== undefined) {
      if (skipCurrent) skipCurrent = false;
      else newestFirst.push(status.message);
    }
    if ("task" in event) newestFirst.push(...(event.task.history ?? []).toReversed());
    else if (entry.received !== undefined) newestFirst.push(entry.received);
  }
  return newestFirst.slice(0, count).reverse();
}
