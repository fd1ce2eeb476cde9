/** Values of `use:` for writers; a language model can write for them. */
export const WRITER_NAMES = ["outline", "document", "summary"] as const;
export type WriterName = (typeof WRITER_NAMES)[number];
