/** Generated requests, many at a time. A failure names the seed and the one request it is about. */
import fc, { type Arbitrary } from "fast-check";
import { cases } from "../../src/core/model/testing/exploring.ts";

/** Another seed makes other requests: `HOSTILE_SEED=$RANDOM`. */
export const seed = Number(process.env.HOSTILE_SEED ?? 20_261_115);
export const AT_ONCE = 40;

/** Not a property of fast-check: requests stand for themselves, and a batch need not be made smaller to be understood. */
export async function inBatches<T>(
  arbitrary: Arbitrary<T>,
  batches: number,
  check: (batch: readonly T[]) => Promise<unknown>,
): Promise<void> {
  for (let at = 0; at < batches * cases(20, 1); at++) {
    try {
      await check(fc.sample(arbitrary, { seed: seed + at, numRuns: AT_ONCE }));
    } catch (cause) {
      throw new Error(`Seed ${seed}, batch ${at}: ${cause instanceof Error ? cause.message : cause}`, { cause });
    }
  }
}

/** One of several requests that say the same. */
export function anyOf<T>(requests: Arbitrary<readonly T[]>): Arbitrary<T> {
  return fc.tuple(requests, fc.nat()).map(([choices, at]) => choices[at % choices.length] as T);
}
