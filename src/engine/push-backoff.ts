/**
 * How long to wait after a number of failures: twice as long each time up to a bound, and of that a half to the whole by
 * chance, so that receivers that failed together are not tried together again.
 */
export function backoff(failures: number, first: number, longest: number, chance: number): number {
  const whole = Math.min(first * 2 ** (failures - 1), longest);
  return Math.round(whole * (0.5 + chance / 2));
}
