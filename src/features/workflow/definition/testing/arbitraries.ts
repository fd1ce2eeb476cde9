import fc from "fast-check";
import type { Reference } from "../plan.ts";

const segment = fc.oneof(
  fc.constantFrom("input", "steps", "item", "index", "a", "b", "text", "data", "artifacts", "parts", "state", "0"),
  fc.constantFrom("__proto__", "constructor", "length", "toString"),
  fc.string({ minLength: 1 }).filter((text) => /^[^\s.{}[\]"'$]+$/.test(text)),
);

export const arbitraryReference: fc.Arbitrary<Reference> = fc
  .array(segment, { minLength: 1, maxLength: 5 })
  .map((path) => ({ kind: "reference", path }));
