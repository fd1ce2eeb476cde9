import type { Scenario } from "./scenario.ts";
import { CARDS } from "./scenarios/cards.ts";
import { PUSH } from "./scenarios/push.ts";
import { REFUSALS } from "./scenarios/refusals.ts";
import { SENDING } from "./scenarios/sending.ts";
import { STREAMING } from "./scenarios/streaming.ts";

/** Every row of the matrix. */
export const SCENARIOS: readonly Scenario[] = [...CARDS, ...SENDING, ...STREAMING, ...PUSH, ...REFUSALS];
