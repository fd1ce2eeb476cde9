import fc from "fast-check";
import { expect, test } from "vitest";
import type { Task } from "../model/task.ts";
import { bytesOf, data, file, text, textOf } from "./parts.ts";

test("bytes of a file come back as they were given", () => {
  fc.assert(
    fc.property(fc.uint8Array(), (bytes) => {
      expect(Uint8Array.from(bytesOf(file({ bytes, filename: "a.bin" })) ?? [])).toEqual(bytes);
    }),
  );
  expect([text("a"), data({ a: 1 }), file({ url: "https://example.com/a" })].map(bytesOf)).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
});

test("the text of an answer is that of its artifacts, or else of its status", () => {
  const status = {
    state: "TASK_STATE_COMPLETED",
    message: { messageId: "m", role: "ROLE_AGENT", parts: [text("done")] },
  };
  const task = { id: "t", contextId: "c", status } as Task;
  const artifacts = [
    { artifactId: "1", parts: [text("one"), text("two")] },
    { artifactId: "2", parts: [data({})] },
    { artifactId: "3", parts: [text("three")] },
  ];
  expect(textOf({ task })).toBe("done");
  expect(textOf({ task: { ...task, artifacts } })).toBe("one\ntwo\n\nthree");
  expect(textOf({ message: { messageId: "m", role: "ROLE_AGENT", parts: [text("hello"), data(1)] } })).toBe("hello");
  expect(textOf([text("hello")])).toBe("hello");
});
