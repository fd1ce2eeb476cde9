import type { Check } from "../check.ts";
import type { CheckContext } from "../check-context.ts";
import { PASSIVE_CHECKS } from "../observations.ts";
import { LIST_CHECKS } from "./list.ts";
import { PUSH_CHECKS } from "./push.ts";
import { SECURITY_CHECKS } from "./security.ts";
import { SEND_CHECKS } from "./send.ts";
import { SERVICE_PARAMETER_CHECKS } from "./service-parameters.ts";
import { STREAM_CHECKS } from "./stream.ts";
import { TASK_CHECKS } from "./tasks.ts";
import { ENCODING_CHECKS, ENVELOPE_CHECKS, LEGACY_CHECKS } from "./wire-format.ts";

export { EQUIVALENCE_CHECKS as CROSS_CHECKS } from "./binding-equivalence.ts";
export { CARD_CHECKS } from "./card.ts";

/** In order: checks that others build on first, those that evaluate the others last. */
export const INTERFACE_CHECKS: readonly Check<CheckContext>[] = [
  ...SERVICE_PARAMETER_CHECKS,
  ...SEND_CHECKS,
  ...TASK_CHECKS,
  ...LIST_CHECKS,
  ...ENCODING_CHECKS,
  ...STREAM_CHECKS,
  ...PUSH_CHECKS,
  ...SECURITY_CHECKS,
  ...ENVELOPE_CHECKS,
  ...LEGACY_CHECKS,
  ...PASSIVE_CHECKS,
];
