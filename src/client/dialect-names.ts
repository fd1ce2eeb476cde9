/**
 * Dialects that can be called with, in order of preference where a card leaves the choice. Apart from the dialects
 * themselves, so that a command line can name them without loading them.
 */
export const DIALECT_NAMES = ["a2a-v1", "a2a-v03", "a2a-v01", "tasks-rest", "xiaoyi-http"] as const;

export type DialectName = (typeof DIALECT_NAMES)[number];
