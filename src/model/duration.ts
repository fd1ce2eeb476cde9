const MILLISECONDS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** A whole or decimal number and a unit: `500ms`, `60s`, `5m`, `1.5h`, `7d`. */
export const DURATION_PATTERN = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/;

/** Milliseconds of a written duration; undefined if it is not one, or is finer than a millisecond. */
export function parseDuration(text: string): number | undefined {
  const match = DURATION_PATTERN.exec(text);
  if (match === null) return undefined;
  const milliseconds = Number(match[1]) * MILLISECONDS[match[2] as keyof typeof MILLISECONDS];
  if (!Number.isSafeInteger(Math.round(milliseconds))) return undefined;
  return Math.round(milliseconds);
}

/** The shortest whole-number spelling that parses back to the same milliseconds. */
export function formatDuration(milliseconds: number): string {
  for (const unit of ["d", "h", "m", "s"] as const) {
    const size = MILLISECONDS[unit];
    if (milliseconds >= size && milliseconds % size === 0) return `${milliseconds / size}${unit}`;
  }
  return `${milliseconds}ms`;
}
