/**
 * Names of the supported dialects, in order of preference if the card allows several. Separate from the dialects, so
 * that the command line can list them without loading them.
 */
export const DIALECT_NAMES = ["a2a-v1", "a2a-v03", "a2a-v01", "tasks-rest", "xiaoyi-http"] as const;

export type DialectName = (typeof DIALECT_NAMES)[number];
