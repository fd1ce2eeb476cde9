/** Values of `use:` in a configuration. */
export const BUILTIN_NAMES = ["echo", "outline", "document", "summary", "tck"] as const;
export type BuiltinName = (typeof BUILTIN_NAMES)[number];
