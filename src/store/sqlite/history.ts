import type { LogEntry } from "../../model/event.ts";
import type { Message } from "../../model/message.ts";
import { decodeSegment } from "../segment.ts";

/** Whether an entry among them adds to the history, now or when its status is replaced. */
export function bringsMessages(entries: readonly LogEntry[]): boolean {
  for (const entry of entries) {
    const { event } = entry;
    if ("task" in event) {
      if (event.task.status.message !== undefined || (event.task.history?.length ?? 0) > 0) return true;
    } else if ("statusUpdate" in event) {
      if (event.statusUpdate.status.message !== undefined || entry.received !== undefined) return true;
    }
  }
  return false;
}

/**
 * The newest messages of a history, from the segments that bring any. Folding the whole log gives the same: each status
 * update adds the message that was received and then, once it is replaced, its own message.
 */
export function newestMessages(segments: string, count: number, currentHasMessage: boolean): Message[] {
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
