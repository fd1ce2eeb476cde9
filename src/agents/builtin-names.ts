/** What `use:` in a configuration may name. */
export const BUILTIN_NAMES = ["echo", "outline", "document", "summary", "tck"] as const;
export type BuiltinName = (typeof BUILTIN_NAMES)[number];
