/** The middle value; for an even number of values, the mean of the two middle ones. */
export function median(values: readonly number[]): number {
  if (values.length === 0) throw new RangeError("median of no values");
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle]!;
  return sorted.length % 2 === 1 ? upper : (sorted[middle - 1]! + upper) / 2;
}

/** The smallest value that this fraction of all values does not exceed. */
export function quantile(values: readonly number[], fraction: number): number {
  if (values.length === 0) throw new RangeError("quantile of no values");
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(fraction * sorted.length) - 1)]!;
}

/**
 * Combines two series round by round and takes the median of the results. Pairing before
 * taking the median cancels whatever slowed the machine during one round.
 */
export function medianOfPairs(
  left: readonly number[],
  right: readonly number[],
  combine: (left: number, right: number) => number,
): number {
  const rounds = Math.min(left.length, right.length);
  return median(left.slice(0, rounds).map((value, round) => combine(value, right[round]!)));
}
