export { splitDocument, writeDocument } from "./document.ts";
export { LABELS } from "./language.ts";
export { type Outline, readOutline, writeOutline } from "./outline.ts";
export { summarize } from "./summary.ts";
