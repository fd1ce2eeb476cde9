import type { Clock } from "../ports.ts";

/** For code that waits for nothing: its time stands still. */
export const NO_CLOCK: Clock = { now: () => 0, after: () => () => {} };
