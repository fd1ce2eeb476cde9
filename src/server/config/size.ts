const BYTES = {
  B: 1,
  KB: 1_000,
  MB: 1_000_000,
  GB: 1_000_000_000,
  KiB: 1_024,
  MiB: 1_048_576,
  GiB: 1_073_741_824,
} as const;

/** A whole or decimal number and a unit: `512KiB`, `16MiB`, `1.5GB`. */
export const SIZE_PATTERN = /^(\d+(?:\.\d+)?)(B|KB|MB|GB|KiB|MiB|GiB)$/;

/** Bytes of a written size; undefined if it is not one. */
export function parseSize(text: string): number | undefined {
  const match = SIZE_PATTERN.exec(text);
  if (match === null) return undefined;
  const bytes = Math.round(Number(match[1]) * BYTES[match[2] as keyof typeof BYTES]);
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}

/** The shortest whole-number spelling that parses back to the same bytes. */
export function formatSize(bytes: number): string {
  for (const unit of ["GiB", "MiB", "KiB"] as const) {
    const size = BYTES[unit];
    if (bytes >= size && bytes % size === 0) return `${bytes / size}${unit}`;
  }
  return `${bytes}B`;
}
