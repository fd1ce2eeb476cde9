export { type Article, type ArticleSection, documentChunks, documentOf } from "./document.ts";
export { detectLanguage, type Language } from "./language.ts";
export { type Basis, type Outline, type OutlineSection, outlineOf } from "./outline.ts";
export { type Summary, summaryOf } from "./summary.ts";
