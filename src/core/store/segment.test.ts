import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LogEntry, type RequestDetails } from "../model/event.ts";
import type { Message } from "../model/message.ts";
import { decodeSegment, encodeSegment } from "./segment.ts";

const text = fc.string({ unit: "binary" });
const message: fc.Arbitrary<Message> = fc.record({
  messageId: text,
  role: fc.constant("ROLE_USER" as const),
  parts: fc.array(fc.record({ text }), { maxLength: 2 }),
});
const note = fc.record({ metadata: fc.constant({ a: "\n" }), authenticated: fc.boolean() }, { requiredKeys: [] });
const content = fc.array(
  fc.record({ text, received: fc.option(message, { nil: undefined }), request: fc.option(note, { nil: undefined }) }),
  { maxLength: 8 },
);

interface Item {
  readonly text: string;
  readonly received: Message | undefined;
  readonly request?: RequestDetails | undefined;
}

function toEntries(items: readonly Item[], first: number): LogEntry[] {
  return items.map((item, index) => {
    const artifact = { artifactId: item.text, parts: [{ text: item.text }] };
    return LogEntry.of(
      first + index,
      { artifactUpdate: { taskId: "t", contextId: "c", artifact } },
      item.received,
      item.request,
    );
  });
}

const plain = (entry: LogEntry) => ({
  number: entry.number,
  event: entry.event,
  received: entry.received,
  request: entry.request,
});

describe("a segment", () => {
  it("gives back any run of entries", () => {
    fc.assert(
      fc.property(content, fc.integer({ min: 1, max: 1e9 }), (items, first) => {
        const entries = toEntries(items, first);
        expect(decodeSegment(first, encodeSegment(entries)).map(plain)).toEqual(entries.map(plain));
      }),
    );
  });

  it("gives back any part of it", () => {
    fc.assert(
      fc.property(content, fc.nat(10), fc.integer({ min: 1, max: 10 }), (items, skip, limit) => {
        const entries = toEntries(items, 5);
        const decoded = decodeSegment(5, encodeSegment(entries), 4 + skip, limit);
        expect(decoded.map(plain)).toEqual(entries.slice(skip, skip + limit).map(plain));
      }),
    );
  });

  it("is a line of JSON per entry, and a marked line per received message", () => {
    const entries = toEntries([{ text: "a\nb", received: { messageId: "m", role: "ROLE_USER", parts: [] } }], 1);
    expect(encodeSegment(entries)).toBe(
      '+{"messageId":"m","role":"ROLE_USER","parts":[]}\n' +
        '{"artifactUpdate":{"taskId":"t","contextId":"c","artifact":{"artifactId":"a\\nb","parts":[{"text":"a\\nb"}]}}}',
    );
  });
});
