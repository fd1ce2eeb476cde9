/** Kinds of values that many keys have. */
import { z } from "zod";
import { DURATION_PATTERN, parseDuration } from "../../model/duration.ts";
import { parseSize, SIZE_PATTERN } from "./size.ts";

/** Timers cannot be set further ahead than this. */
const LONGEST_TIMER = 2_147_483_647;

const DURATION_WORDS = "must be a duration such as 500ms, 60s, 5m, 1h or 7d";
export const duration = z
  .string({ error: DURATION_WORDS })
  .regex(DURATION_PATTERN, { error: DURATION_WORDS })
  .transform((text) => parseDuration(text) ?? Number.POSITIVE_INFINITY)
  .refine(Number.isFinite, { error: "is too long" });
export const timer = duration.refine((milliseconds) => milliseconds <= LONGEST_TIMER, {
  error: "must be shorter than 25 days",
});
export const wait = timer.refine((milliseconds) => milliseconds > 0, { error: "must be longer than nothing" });

/** Shorter, and work that every server does now and then would count. */
const MIN_WATCHDOG_MS = 1_000;
const WATCHDOG_WORDS = "must be a duration of at least 1s, or false";
export const watchdog = z.union(
  [z.literal(false), timer.refine((milliseconds) => milliseconds >= MIN_WATCHDOG_MS, { error: WATCHDOG_WORDS })],
  { error: WATCHDOG_WORDS },
);

const SIZE_WORDS = "must be a size such as 512KiB, 16MiB or 1GiB";
export const size = z
  .string({ error: SIZE_WORDS })
  .regex(SIZE_PATTERN, { error: SIZE_WORDS })
  .transform((text) => parseSize(text) ?? Number.POSITIVE_INFINITY)
  .refine((bytes) => Number.isFinite(bytes) && bytes > 0, { error: SIZE_WORDS });

export const count = z.int().min(1);
export const rate = z.number().gt(0, { error: "must be more than nothing" });
export const port = z.int().min(0).max(65_535);
export const text = z.string().min(1, { error: "must not be empty" });

const MEDIA_TYPE_WORDS = "must be a media type such as application/pdf, or a family such as image/*";
export const mediaType = z
  .string({ error: MEDIA_TYPE_WORDS })
  .regex(/^[\w!#$&^.+-]+\/(?:\*|[\w!#$&^.+-]+)$/, { error: MEDIA_TYPE_WORDS })
  .transform((type) => type.toLowerCase());
