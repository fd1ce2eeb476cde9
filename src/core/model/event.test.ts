import fc from "fast-check";
import { expect, test } from "vitest";
import { ChunkFrame, LogEntry, type TaskEvent } from "./event.ts";
import { anyEvent, message } from "./testing/events.ts";

test("event and JSON are two forms of one thing", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1 }), anyEvent, fc.option(message, { nil: undefined }), (number, event, received) => {
      const made = LogEntry.of(number, event, received);
      const read = LogEntry.fromJson(number, JSON.stringify(event), received);
      expect(made.json).toBe(JSON.stringify(event));
      expect(read.event).toEqual(event);
      expect(read.json).toBe(made.json);
      expect(read.state).toBe(made.state);
      expect([read.number, read.received]).toEqual([number, received]);
    }),
  );
});

test("either form is made once", () => {
  fc.assert(
    fc.property(anyEvent, (event) => {
      const read = LogEntry.fromJson(1, JSON.stringify(event));
      expect(read.event).toBe(read.event);
      expect(LogEntry.of(1, event).event).toBe(event);
    }),
  );
});

test("the state is known of tasks and statuses alone", () => {
  fc.assert(
    fc.property(anyEvent, (event) => {
      const expected =
        "task" in event
          ? event.task.status.state
          : "statusUpdate" in event
            ? event.statusUpdate.status.state
            : undefined;
      expect(LogEntry.of(1, event).state).toBe(expected);
    }),
  );
});

test("a chunk read from disk is not parsed to learn that it has no state", () => {
  const entry = LogEntry.fromJson(1, '{"artifactUpdate" is not even JSON');
  expect(entry.state).toBeUndefined();
});

/** Chunks of few artifacts, most of them plain, some with a member more or in another order. */
const anyChunk = fc
  .record({
    id: fc.constantFrom("a", 'b"'),
    name: fc.option(fc.constantFrom("n", "ü\u2028"), { nil: undefined }),
    text: fc.string({ unit: "binary" }),
    oddity: fc.constantFrom(
      "none",
      "none",
      "lastChunk",
      "metadata",
      "filename",
      "description",
      "order",
      "first",
      "two parts",
    ),
  })
  .map(({ id, name, text, oddity }): TaskEvent => {
    const part = oddity === "filename" ? { text, filename: "f" } : { text };
    const parts = oddity === "two parts" ? [part, part] : [part];
    const named = name === undefined ? undefined : { name };
    const artifact = oddity === "order" ? { ...named, artifactId: id, parts } : { artifactId: id, parts, ...named };
    return {
      artifactUpdate: {
        taskId: "t",
        contextId: "c",
        artifact: oddity === "description" ? { ...artifact, description: "d" } : artifact,
        ...(oddity === "first" ? undefined : { append: true }),
        ...(oddity === "lastChunk" ? { lastChunk: true } : undefined),
        ...(oddity === "metadata" ? { metadata: { a: 1 } } : undefined),
      },
    };
  });

test("what chunks share does not change their JSON", () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(anyChunk, anyEvent)), (events) => {
      let frame: ChunkFrame | undefined;
      for (const [index, event] of events.entries()) {
        const own = ChunkFrame.of(event, frame);
        frame = own ?? frame;
        const entry = LogEntry.of(index + 1, event, undefined, undefined, own);
        expect(entry.state).toBe(LogEntry.of(1, event).state);
        expect(entry.json).toBe(JSON.stringify(event));
        expect(entry.json).toBe(JSON.stringify(event));
        expect(entry.event).toEqual(JSON.parse(JSON.stringify(event)));
        expect(entry.state).toBe(LogEntry.of(1, event).state);
      }
    }),
  );
});

test("chunks of one artifact share what is around their text", () => {
  const artifact = { artifactId: "a", parts: [{ text: "x" }] };
  const chunk = { artifactUpdate: { taskId: "t", contextId: "c", artifact, append: true } };
  const frame = ChunkFrame.of(chunk, undefined);
  expect(ChunkFrame.of(structuredClone(chunk), frame)).toBe(frame);
});
