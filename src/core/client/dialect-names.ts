import { installedExtensions } from "../extension/installed.ts";

const CORE_DIALECTS = ["a2a-v1", "a2a-v03", "a2a-v01", "tasks-rest"];

/**
 * Names of the dialects in which agents are called, in order of preference if the card allows several. Separate from the
 * dialects, so that the command line can list them without loading them.
 */
export const dialectNames = (): readonly string[] => [
  ...CORE_DIALECTS,
  ...installedExtensions().flatMap(({ dialectNames: names = [] }) => names),
];
