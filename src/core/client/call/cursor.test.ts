import fc from "fast-check";
import { expect, test } from "vitest";
import type { StreamFrame } from "../../model/operation.ts";
import { Cursor } from "./cursor.ts";

function frame(number: number | undefined, json = `frame ${number}`): StreamFrame {
  const event = { statusUpdate: { taskId: "t", contextId: "c", status: { state: "TASK_STATE_WORKING" as const } } };
  return { event, json, ...(number === undefined ? {} : { number }) };
}

const numbers = (cursor: Cursor, ...frames: StreamFrame[]) =>
  frames.map((given) => cursor.accept(given)).map((event) => (event === undefined ? "dropped" : event.number));

test("from a trusted peer whatever is not beyond the last number is dropped", () => {
  const cursor = new Cursor(true, 3);
  expect(numbers(cursor, frame(3), frame(2), frame(4), frame(4), frame(5))).toEqual([
    "dropped",
    "dropped",
    4,
    "dropped",
    5,
  ]);
  expect(cursor.last).toBe(5);
});

test("frames without a number always pass and move nothing", () => {
  const cursor = new Cursor(false, undefined);
  expect(numbers(cursor, frame(undefined), frame(1), frame(undefined))).toEqual([undefined, 1, undefined]);
  expect(cursor.last).toBe(1);
});

test("an id that holds for several frames of an untrusted peer numbers only the first", () => {
  const cursor = new Cursor(false, undefined);
  expect(numbers(cursor, frame(7), frame(7), frame(8))).toEqual([7, undefined, 8]);
});

test("numbers that run backwards are no numbers", () => {
  const cursor = new Cursor(false, undefined);
  expect(numbers(cursor, frame(9), frame(4), frame(5))).toEqual([9, undefined, undefined]);
  expect(cursor.last).toBeUndefined();
});

test("however a log is repeated over connections, each number passes once and in order", () => {
  fc.assert(
    fc.property(fc.array(fc.nat(20), { maxLength: 10 }), fc.boolean(), (lengths, fromStart) => {
      const cursor = new Cursor(false, undefined);
      const passed: (number | undefined)[] = [];
      for (const length of [...lengths, 21]) {
        cursor.startConnection();
        const last = cursor.last;
        const from = fromStart || last === undefined ? 1 : last;
        for (let number = from; number < from + length; number++) {
          const event = cursor.accept(frame(number));
          if (event !== undefined) passed.push(event.number);
        }
      }
      expect(passed).toEqual(passed.map((_, at) => at + 1));
      expect(passed.length).toBeGreaterThanOrEqual(21);
    }),
  );
});
