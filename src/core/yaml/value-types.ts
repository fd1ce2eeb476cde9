/** Value types shared by many keys. */

import { z } from "zod";
import { DURATION_PATTERN, parseDuration } from "../model/duration.ts";
import { MAX_TIMER_MS } from "../model/ports.ts";

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
const SIZE_PATTERN = /^(\d+(?:\.\d+)?)(B|KB|MB|GB|KiB|MiB|GiB)$/;

/** Parses a size into bytes; undefined if it is not a size. */
export function parseSize(text: string): number | undefined {
  const match = SIZE_PATTERN.exec(text);
  if (match === null) return undefined;
  const bytes = Math.round(Number(match[1]) * BYTES[match[2] as keyof typeof BYTES]);
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}

/** The shortest whole-number notation that parses back to the same bytes. */
export function formatSize(bytes: number): string {
  for (const unit of ["GiB", "MiB", "KiB"] as const) {
    const size = BYTES[unit];
    if (bytes >= size && bytes % size === 0) return `${bytes / size}${unit}`;
  }
  return `${bytes}B`;
}

const DURATION_ERROR = "must be a duration such as 500ms, 60s, 5m, 1h or 7d";
export const duration = z
  .string({ error: DURATION_ERROR })
  .regex(DURATION_PATTERN, { error: DURATION_ERROR })
  .transform((text) => parseDuration(text) ?? Number.POSITIVE_INFINITY)
  .refine(Number.isFinite, { error: "is too long" });
export const timer = duration.refine((milliseconds) => milliseconds <= MAX_TIMER_MS, {
  error: "must be shorter than 25 days",
});
export const wait = timer.refine((milliseconds) => milliseconds > 0, { error: "must be longer than nothing" });

/** A shorter limit would trigger on the normal work of a server. */
const MIN_WATCHDOG_MS = 1_000;
const WATCHDOG_ERROR = "must be a duration of at least 1s, or false";
export const watchdog = z.union(
  [z.literal(false), timer.refine((milliseconds) => milliseconds >= MIN_WATCHDOG_MS, { error: WATCHDOG_ERROR })],
  { error: WATCHDOG_ERROR },
);

const SIZE_ERROR = "must be a size such as 512KiB, 16MiB or 1GiB";
export const size = z
  .string({ error: SIZE_ERROR })
  .regex(SIZE_PATTERN, { error: SIZE_ERROR })
  .transform((text) => parseSize(text) ?? Number.POSITIVE_INFINITY)
  .refine((bytes) => Number.isFinite(bytes) && bytes > 0, { error: SIZE_ERROR });

export const optional = <T extends z.ZodType>(type: T, description: string) =>
  type.exactOptional().describe(description);

export const count = z.int().min(1);
export const rate = z.number().gt(0, { error: "must be more than nothing" });
export const port = z.int().min(0).max(65_535);
export const text = z.string().min(1, { error: "must not be empty" });

const MEDIA_TYPE_ERROR = "must be a media type such as application/pdf, or a family such as image/*";
export const mediaType = z
  .string({ error: MEDIA_TYPE_ERROR })
  .regex(/^[\w!#$&^.+-]+\/(?:\*|[\w!#$&^.+-]+)$/, { error: MEDIA_TYPE_ERROR })
  .transform((type) => type.toLowerCase());
