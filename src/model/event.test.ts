import fc from "fast-check";
import { expect, test } from "vitest";
import { LogEntry } from "./event.ts";
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
