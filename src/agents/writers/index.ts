export { type Article, type ArticleSection, documentChunks, documentOf } from "./document.ts";
export { detectLanguage, LABELS, type Language } from "./language.ts";
export { type Basis, type Outline, type OutlineSection, outlineOf } from "./outline.ts";
export { readOutline } from "./outline-shape.ts";
export { type Summary, summaryOf } from "./summary.ts";
