export { type Article, type ArticleSection, splitDocument, writeDocument } from "./document.ts";
export { detectLanguage, LABELS, type Language } from "./language.ts";
export { type Basis, type Outline, type OutlineSection, readOutline, writeOutline } from "./outline.ts";
export { type Summary, summarize } from "./summary.ts";
