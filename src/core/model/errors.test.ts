import { expect, test } from "vitest";
import { ERROR_CODES, invalidParams, ProtocolError, taskNotFound } from "./errors.ts";

test("codes are distinct", () => {
  expect(new Set(ERROR_CODES).size).toBe(ERROR_CODES.length);
});

test.each(ERROR_CODES)("%s is carried with what belongs to it", (code) => {
  const cause = new Error("cause");
  const error = new ProtocolError(code, "said", { metadata: { taskId: "t" }, retryAfter: 2, cause });
  expect(ProtocolError.is(error)).toBe(true);
  expect(error).toBeInstanceOf(Error);
  expect(error).toMatchObject({ code, message: "said", name: "ProtocolError", retryAfter: 2, cause });
});

test("an instance of another copy of the class is recognised by its brand", () => {
  class OtherCopy extends Error {
    constructor() {
      super("from elsewhere");
      Object.defineProperty(this, Symbol.for("dragoman.ProtocolError"), { value: true });
    }
  }
  const foreign = new OtherCopy();
  expect(foreign).not.toBeInstanceOf(ProtocolError);
  expect(ProtocolError.is(foreign)).toBe(true);
});

test.each([undefined, null, "error", 1, {}, new Error("plain"), { code: "TASK_NOT_FOUND", message: "looks alike" }])(
  "%s is none",
  (value) => {
    expect(ProtocolError.is(value)).toBe(false);
  },
);

test("the brand stays out of sight", () => {
  expect(JSON.parse(JSON.stringify(taskNotFound("t")))).toMatchObject({ code: "TASK_NOT_FOUND" });
  expect(Object.getOwnPropertySymbols(Object.assign({}, taskNotFound("t")))).toEqual([]);
});

test("a missing cause is no cause", () => {
  expect("cause" in new ProtocolError("INTERNAL_ERROR", "said")).toBe(false);
});

test("a bad parameter names its field", () => {
  const error = invalidParams("message.parts", "must not be empty");
  expect(error.code).toBe("INVALID_PARAMS");
  expect(error.violations).toEqual([{ field: "message.parts", description: "must not be empty" }]);
});
