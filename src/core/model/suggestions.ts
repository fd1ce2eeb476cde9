/** The most similar candidate; undefined if none is similar enough to have been meant. */
export function closestMatch(word: string, candidates: readonly string[]): string | undefined {
  const limit = Math.max(2, Math.floor(word.length / 3));
  let best: string | undefined;
  let least = limit + 1;
  for (const candidate of candidates) {
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase());
    // Two words without a common letter are not similar, however short they are.
    if (distance < least && distance < Math.max(word.length, candidate.length)) {
      least = distance;
      best = candidate;
    }
  }
  return best;
}

/** Insertions, deletions, replacements and swaps of neighbours that make one word of the other. */
export function editDistance(from: string, to: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let i = 1; i <= from.length; i++) {
    const current = [i];
    for (let j = 1; j <= to.length; j++) {
      const same = from[i - 1] === to[j - 1];
      let cost = Math.min(last[j]! + 1, current[j - 1]! + 1, last[j - 1]! + (same ? 0 : 1));
      const swapped = i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1];
      if (swapped) cost = Math.min(cost, beforeLast[j - 2]! + 1);
      current.push(cost);
    }
    beforeLast = last;
    last = current;
  }
  return last[to.length]!;
}

/** Refuses what a caller without types may have misspelled. `what` takes the options, e.g. `connect`. */
export function rejectUnknownKeys(what: string, given: object, known: readonly string[]): void {
  if (typeof given !== "object" || given === null) throw new TypeError(`${what}: the options must be an object.`);
  const unknown = Object.keys(given).filter((key) => !known.includes(key));
  if (unknown.length === 0) return;
  const problems = unknown.map((key) => {
    const meant = closestMatch(key, known);
    return `unknown option "${key}"${meant === undefined ? "" : `; did you mean "${meant}"?`}`;
  });
  throw new TypeError(`${what}: ${problems.join("; ")}`);
}
