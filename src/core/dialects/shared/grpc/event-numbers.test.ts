import fc from "fast-check";
import { expect, it } from "vitest";
import { cases } from "../../../model/testing/exploring.ts";
import * as arbitrary from "../../suite/arbitraries.ts";
import { embedNumber, extractNumber } from "./stream.ts";

it("a number put into any event comes out again, and the event is as it was", () => {
  fc.assert(
    fc.property(arbitrary.streamEvent, fc.nat(), (event, number) => {
      const back = extractNumber(embedNumber({ event, number, json: "" }));
      expect(back.event).toEqual(event);
      expect(back.number).toBe("message" in event ? undefined : number);
    }),
    { numRuns: cases(2_000) },
  );
});

it("an event without a number is left alone", () => {
  fc.assert(
    fc.property(arbitrary.streamEvent, (event) => {
      const back = extractNumber(event);
      expect(back.event).toBe(event);
      expect(back.number).toBeUndefined();
    }),
  );
});
