import fc from "fast-check";
import { expect, test } from "vitest";
import { LogEntry, type TaskEvent } from "../../model/event.ts";
import { fold } from "../../model/fold.ts";
import { legalLog } from "../../model/testing/events.ts";
import { mergeChunks } from "./task-write.ts";

/** Merges wherever that is possible, as a task under pressure does. */
function merged(entries: readonly LogEntry[]): LogEntry[] {
  const kept: { event: TaskEvent; received: LogEntry["received"] }[] = [];
  for (const { event, received } of entries) {
    const last = kept.at(-1);
    const both = last === undefined || received !== undefined ? undefined : mergeChunks(last.event, event);
    if (last !== undefined && both !== undefined) last.event = both;
    else kept.push({ event, received });
  }
  return kept.map(({ event, received }, index) => LogEntry.of(index + 1, event, received));
}

test("merging never changes what a log says", () => {
  fc.assert(
    fc.property(legalLog, (log) => {
      const fewer = merged(log);
      expect(fold(fewer).toTask()).toEqual(fold(log).toTask());
      expect(fewer.length).toBeLessThanOrEqual(log.length);
    }),
    { numRuns: 300 },
  );
});

test("merging changes nothing that was handed over before", () => {
  fc.assert(
    fc.property(legalLog, (log) => {
      const before = log.map(({ event }) => JSON.stringify(event));
      merged(log);
      expect(log.map(({ event }) => JSON.stringify(event))).toEqual(before);
    }),
  );
});

const chunk = (more: object, text = "x"): TaskEvent => ({
  artifactUpdate: {
    taskId: "t",
    contextId: "c",
    artifact: { artifactId: "a", parts: [{ text }] },
    append: true,
    ...more,
  },
});

test.each([
  ["a new beginning", chunk({}), chunk({ append: false })],
  ["what follows the last chunk", chunk({ lastChunk: true }), chunk({})],
  ["another artifact", chunk({}), chunk({ artifact: { artifactId: "b", parts: [{ text: "x" }] } })],
  ["metadata", chunk({ metadata: { a: 1 } }), chunk({})],
  [
    "text with a media type",
    chunk({}),
    chunk({ artifact: { artifactId: "a", parts: [{ text: "x", mediaType: "text/html" }] } }),
  ],
  ["data", chunk({}), chunk({ artifact: { artifactId: "a", parts: [{ data: 1 }] } })],
  ["a new name", chunk({}), chunk({ artifact: { artifactId: "a", name: "n", parts: [{ text: "x" }] } })],
  ["text that is long already", chunk({}, "x".repeat(70_000)), chunk({})],
  [
    "a status",
    { statusUpdate: { taskId: "t", contextId: "c", status: { state: "TASK_STATE_WORKING" as const } } },
    chunk({}),
  ],
])("stays apart: %s", (_name, earlier, later) => {
  expect(mergeChunks(earlier, later)).toBeUndefined();
});

test("the last of two chunks makes both the last", () => {
  expect(mergeChunks(chunk({ append: false }, "a"), chunk({ lastChunk: true }, "b"))).toEqual({
    artifactUpdate: {
      taskId: "t",
      contextId: "c",
      artifact: { artifactId: "a", parts: [{ text: "ab" }] },
      append: false,
      lastChunk: true,
    },
  });
});
