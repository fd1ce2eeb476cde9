import fc from "fast-check";
import { expect, test } from "vitest";
import { readTrace } from "./trace.ts";

const PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

test("a valid trace context is read as it is", () => {
  expect(readTrace({ traceparent: PARENT })).toEqual({ traceparent: PARENT });
  expect(readTrace({ traceparent: PARENT, tracestate: "a=1,b=2" })).toEqual({
    traceparent: PARENT,
    tracestate: "a=1,b=2",
  });
  expect(readTrace({ traceparent: `01${PARENT.slice(2)}-more` })).toBeDefined();
});

test.each([
  ["nothing", undefined],
  ["a version that must not be used", `ff${PARENT.slice(2)}`],
  ["a trace id of zeros", `00-${"0".repeat(32)}-00f067aa0ba902b7-01`],
  ["a span id of zeros", `00-4bf92f3577b34da6a3ce929d0e0e4736-${"0".repeat(16)}-01`],
  ["upper case", PARENT.toUpperCase()],
  ["a second line", `${PARENT}\r\nx: y`],
])("%s is not a trace context", (_, traceparent) => {
  expect(readTrace({ traceparent, tracestate: "a=1" })).toBeUndefined();
});

test("a state that cannot be a header, or is too long, is left out", () => {
  expect(readTrace({ traceparent: PARENT, tracestate: `a=${"x".repeat(600)}` })).toEqual({ traceparent: PARENT });
  expect(readTrace({ traceparent: PARENT, tracestate: "a=\n" })).toEqual({ traceparent: PARENT });
});

test("whatever is read can be sent as headers again", () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), (parent, state) => {
      const read = readTrace({ traceparent: parent, tracestate: state }) ?? {};
      expect(() => new Headers({ ...read })).not.toThrow();
    }),
  );
});
