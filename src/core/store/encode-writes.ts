import type { LogEntry } from "../model/event.ts";
import type { Submit, Write } from "./contract.ts";
import { encodeSegment } from "./segment.ts";

/** In characters. An entry of this size has a segment of its own: to join large texts is to copy them. */
const LARGE_SEGMENT = 256 * 1024;

/** Entries of one write as a row of the log. */
export interface Segment {
  readonly first: number;
  last: number;
  bringsMessage: boolean;
  body: string | Uint8Array;
}

/** A write with its part of the log as it is stored; of other writes both are empty. */
export interface EncodedWrite {
  readonly write: Write;
  readonly segments: readonly Segment[];
  /** Of the task that a submit makes. */
  readonly metadata: string | null;
}

/** Yields each large segment as soon as it is made: encoding the next takes as long again. */
export function* encodeWrites(
  writes: readonly Write[],
  large: number = LARGE_SEGMENT,
): Generator<Segment, EncodedWrite[]> {
  const encoded: EncodedWrite[] = [];
  for (const write of writes) {
    if (write.kind !== "submit" && write.kind !== "append") {
      encoded.push({ write, segments: [], metadata: null });
      continue;
    }
    // Before the entries are encoded: then they have no event any more and would have to be parsed.
    const metadata = write.kind === "submit" ? metadataOf(write) : null;
    const segments: Segment[] = [];
    let open: (Segment & { body: string }) | undefined;
    for (const entry of write.entries) {
      const brings = bringsMessage(entry);
      const body = encodeSegment([entry]);
      const { number } = entry;
      if (open === undefined || body.length >= large) {
        open = { first: number, last: number, bringsMessage: brings, body };
        segments.push(open);
      } else {
        open.body += `\n${body}`;
        open.last = number;
        open.bringsMessage ||= brings;
      }
      if (open.body.length < large) continue;
      yield open;
      open = undefined;
    }
    encoded.push({ write, segments, metadata });
  }
  return encoded;
}

export function encodeAll(encoding: Generator<Segment, EncodedWrite[]>): EncodedWrite[] {
  let step = encoding.next();
  while (step.done !== true) step = encoding.next();
  return step.value;
}

export function sizeOf(segments: readonly Segment[]): number {
  let bytes = 0;
  for (const { body } of segments) bytes += typeof body === "string" ? Buffer.byteLength(body) : body.length;
  return bytes;
}

/** The newest segment of a task that brings messages, by its last number. */
export function messageSegmentOf(segments: readonly Segment[], earlier: number | null): number | null {
  return segments.findLast((segment) => segment.bringsMessage)?.last ?? earlier;
}

function metadataOf({ entries, metadata }: Submit): string | null {
  const event = entries[0]?.event;
  const own = metadata ?? (event !== undefined && "task" in event ? event.task.metadata : undefined);
  return own === undefined ? null : JSON.stringify(own);
}

/** Whether an entry adds to the history, now or when its status is replaced. */
function bringsMessage({ event, received }: LogEntry): boolean {
  if ("task" in event) return event.task.status.message !== undefined || (event.task.history?.length ?? 0) > 0;
  return "statusUpdate" in event && (event.statusUpdate.status.message !== undefined || received !== undefined);
}
