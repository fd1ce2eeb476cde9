/** In [0, 1), like `Math.random`. */
export type Random = () => number;

/** Deterministic by seed, so that a run with random faults can be repeated (mulberry32). */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export function hexDigits(random: Random, count: number): string {
  let digits = "";
  while (digits.length < count) digits += Math.floor(random() * 16).toString(16);
  return digits;
}

/** Formatted as a random UUID; as unpredictable as its source. */
export function uuidFrom(random: Random): string {
  const digits = hexDigits(random, 30);
  const variant = "89ab"[Math.floor(random() * 4)];
  return [
    digits.slice(0, 8),
    digits.slice(8, 12),
    `4${digits.slice(12, 15)}`,
    `${variant}${digits.slice(15, 18)}`,
    digits.slice(18, 30),
  ].join("-");
}
