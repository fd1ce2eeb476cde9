export { splitDocument, writeDocument } from "./document.ts";
export { detectLanguage, LABELS, type Language } from "./language.ts";
export { type Outline, readOutline, writeOutline } from "./outline.ts";
export { splitSentences } from "./segment.ts";
export { summarize } from "./summary.ts";
