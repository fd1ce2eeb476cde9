import { LogEntry, type RequestDetails } from "../model/event.ts";
import type { Message } from "../model/message.ts";

/**
 * A run of log entries as one text: a line of JSON per entry, before it a line that begins with `+` if the entry
 * brought a caller's message, and one that begins with `=` for what came with the message. JSON has no raw line breaks, so nothing needs escaping and nothing needs parsing to be
 * passed on to a reader.
 */
export function encodeSegment(entries: readonly LogEntry[]): string {
  let body = "";
  for (const entry of entries) {
    if (body !== "") body += "\n";
    if (entry.received !== undefined) body += `+${JSON.stringify(entry.received)}\n`;
    if (entry.request !== undefined) body += `=${JSON.stringify(entry.request)}\n`;
    body += entry.json;
  }
  return body;
}

/** The entries numbered above `after`, at most `limit`, of a segment that begins with number `first`. */
export function decodeSegment(
  first: number,
  body: string,
  after: number = 0,
  limit: number = Number.POSITIVE_INFINITY,
): LogEntry[] {
  const entries: LogEntry[] = [];
  let received: string | undefined;
  let request: string | undefined;
  let number = first;
  let start = 0;
  while (start < body.length && entries.length < limit) {
    const found = body.indexOf("\n", start);
    const end = found === -1 ? body.length : found;
    if (body.charCodeAt(start) === PLUS) {
      received = body.slice(start + 1, end);
    } else if (body.charCodeAt(start) === EQUALS) {
      request = body.slice(start + 1, end);
    } else {
      if (number > after) {
        const message = received === undefined ? undefined : (JSON.parse(received) as Message);
        const note = request === undefined ? undefined : (JSON.parse(request) as RequestDetails);
        entries.push(LogEntry.fromJson(number, body.slice(start, end), message, note));
      }
      received = undefined;
      request = undefined;
      number++;
    }
    start = end + 1;
  }
  return entries;
}

const PLUS = "+".charCodeAt(0);
const EQUALS = "=".charCodeAt(0);
