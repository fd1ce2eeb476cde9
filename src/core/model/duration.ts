const MILLISECONDS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const;

/** A whole or decimal number and a unit: `500ms`, `60s`, `5m`, `1.5h`, `7d`. */
export const DURATION_PATTERN = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/;

/** What people type: also several units (`1h30m`), weeks, and a number alone, which is seconds. */
const TYPED_PATTERN = /^(?:(?:\d+(?:\.\d+)?(?:ms|[smhdw]))+|\d+(?:\.\d+)?)$/;

/** Milliseconds of a written duration, rounded; undefined if it is not one. `typed` reads what people type. */
export function parseDuration(text: string, { typed = false } = {}): number | undefined {
  const written = typed ? text.trim() : text;
  if (!(typed ? TYPED_PATTERN : DURATION_PATTERN).test(written)) return undefined;
  let milliseconds = 0;
  for (const [, amount, unit = "s"] of written.matchAll(/(\d+(?:\.\d+)?)(ms|[smhdw])?/g)) {
    milliseconds += Number(amount) * MILLISECONDS[unit as keyof typeof MILLISECONDS];
  }
  const rounded = Math.round(milliseconds);
  return Number.isSafeInteger(rounded) ? rounded : undefined;
}

/** The shortest whole-number spelling that parses back to the same milliseconds. */
export function formatDuration(milliseconds: number): string {
  for (const unit of ["d", "h", "m", "s"] as const) {
    const size = MILLISECONDS[unit];
    if (milliseconds >= size && milliseconds % size === 0) return `${milliseconds / size}${unit}`;
  }
  return `${milliseconds}ms`;
}
