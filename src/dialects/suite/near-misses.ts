/** JSON that is nearly what a dialect expects: its words in the wrong places, with the wrong values. */
import fc from "fast-check";

export function nearMisses(names: readonly string[], words: readonly unknown[]): fc.Arbitrary<unknown> {
  const { value } = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 4, withCrossShrink: true },
      fc.oneof(
        fc.constantFrom(...words),
        fc.string({ maxLength: 4 }),
        fc.integer(),
        fc.constantFrom(null, true, {}, []),
      ),
      fc.dictionary(fc.constantFrom(...names), tie("value"), { maxKeys: 5, noNullPrototype: true }),
      fc.array(tie("value"), { maxLength: 3 }),
    ),
  }));
  return value;
}
