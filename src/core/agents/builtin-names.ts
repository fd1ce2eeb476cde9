/** Values of `use:` in a configuration. */
export const BUILTIN_NAMES = ["echo", "outline", "document", "summary", "tck"] as const;
/** Those that a language model can write for. */
export const WRITER_NAMES = ["outline", "document", "summary"] as const satisfies readonly BuiltinName[];
export type WriterName = (typeof WRITER_NAMES)[number];
export type BuiltinName = (typeof BUILTIN_NAMES)[number];
