import { readdirSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { REQUIREMENTS } from "./requirements.ts";

const CITATION = /["'`]\[(\d+(?:, \d+)*)\] /g;

function citations(): Set<number> {
  const cited = new Set<number>();
  for (const file of readdirSync(import.meta.dirname)) {
    if (!file.endsWith(".test.ts")) continue;
    const source = readFileSync(new URL(file, import.meta.url), "utf8");
    for (const [, numbers = ""] of source.matchAll(CITATION)) {
      for (const number of numbers.split(", ")) cited.add(Number(number));
    }
  }
  return cited;
}

const numbersOf = (requirements: typeof REQUIREMENTS) => requirements.map(({ number }) => number);

it("numbers every requirement once, without gaps", () => {
  expect(numbersOf(REQUIREMENTS)).toEqual(Array.from({ length: 88 }, (_, at) => at + 1));
});

it("has a test for every requirement that applies, and none for the others", () => {
  const expected = numbersOf(REQUIREMENTS.filter(({ notHere }) => notHere === undefined));
  expect([...citations()].sort((one, other) => one - other)).toEqual(expected);
});
