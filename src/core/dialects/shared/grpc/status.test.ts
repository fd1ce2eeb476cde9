import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ERROR_CODES, ProtocolError } from "../../../model/errors.ts";
import { cases } from "../../../model/testing/exploring.ts";
import { readErrorDetails } from "../errors.ts";
import { decodeStatusDetails, toRpcStatus } from "./status.ts";

describe("an error as a gRPC status", () => {
  it("comes back with all it said", () => {
    const text = fc.string({ maxLength: 20 });
    const metadata = fc.dictionary(
      text.filter((key) => key !== "__proto__"),
      text,
      { maxKeys: 3, noNullPrototype: true },
    );
    const violations = fc.array(fc.record({ field: text, description: text }, { noNullPrototype: true }), {
      minLength: 1,
      maxLength: 3,
    });
    fc.assert(
      fc.property(
        fc.constantFrom(...ERROR_CODES),
        text,
        metadata,
        violations,
        fc.integer({ min: 0, max: 5_000 }),
        (code, message, facts, wrong, tenths) => {
          const error = new ProtocolError(code, message, {
            metadata: facts,
            violations: wrong,
            retryAfter: tenths / 10,
          });
          const status = toRpcStatus(error, "FAILED_PRECONDITION");
          expect(status).toMatchObject({ code: 9, message });
          const read = readErrorDetails(decodeStatusDetails(status));
          expect(read).toMatchObject({ code, retryAfter: tenths / 10 });
          expect(read.metadata ?? {}).toEqual(facts);
          expect(read.violations?.map(({ field, description }) => [field, description])).toEqual(
            wrong.map(({ field, description }) => [field, description]),
          );
        },
      ),
      { numRuns: cases(1_000) },
    );
  });

  it("has no details that can be read when a peer put something else there", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), (details) => {
        expect(Array.isArray(decodeStatusDetails({ code: 5, message: "", details }))).toBe(true);
      }),
      { numRuns: cases(2_000) },
    );
    expect(decodeStatusDetails({ code: 5, message: "" })).toEqual([]);
  });
});
