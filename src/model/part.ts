import type { JsonObject, JsonValue } from "./json.ts";

interface PartCommon {
  readonly metadata?: JsonObject;
  readonly filename?: string;
  readonly mediaType?: string;
}

export interface TextPart extends PartCommon {
  readonly text: string;
}
/** `raw` is standard base64 with padding, as JSON carries bytes. */
export interface RawPart extends PartCommon {
  readonly raw: string;
}
export interface UrlPart extends PartCommon {
  readonly url: string;
}
/** `data` may be any JSON value, `null` included: presence of the member is what counts. */
export interface DataPart extends PartCommon {
  readonly data: JsonValue;
}

/** Exactly one of `text`, `raw`, `url`, `data`; there is no discriminator on the wire. */
export type Part = TextPart | RawPart | UrlPart | DataPart;

export const isTextPart = (part: Part): part is TextPart => "text" in part;
export const isRawPart = (part: Part): part is RawPart => "raw" in part;
export const isUrlPart = (part: Part): part is UrlPart => "url" in part;
export const isDataPart = (part: Part): part is DataPart => "data" in part;

/** A text part with nothing beside its text: two of them in a row can become one without losing anything. */
export function isPlainText(part: Part): part is TextPart {
  return isTextPart(part) && part.metadata === undefined && part.filename === undefined && part.mediaType === undefined;
}

/** The text of all text parts, one per line. */
export function textOf(parts: readonly Part[]): string {
  const only = parts[0];
  if (parts.length === 1 && only !== undefined) return isTextPart(only) ? only.text : "";
  return parts
    .filter(isTextPart)
    .map((part) => part.text)
    .join("\n");
}
