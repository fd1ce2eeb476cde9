/** The JSON Canonicalization Scheme, RFC 8785: one text for one value, so that it can be signed. */
import type { JsonValue } from "../model/json.ts";

/** The value has no canonical form. */
export class CanonicalJsonError extends Error {
  override readonly name = "CanonicalJsonError";
}

/** Throws a CanonicalJsonError for numbers that JSON cannot say and text that is not Unicode. */
export function canonicalJson(value: JsonValue): string {
  switch (typeof value) {
    case "string":
      return canonicalText(value);
    case "number":
      if (!Number.isFinite(value)) throw new CanonicalJsonError("A number is not finite.");
      // ECMAScript's own form of numbers is the one RFC 8785 prescribes; it writes -0 as 0.
      return JSON.stringify(value);
    case "boolean":
      return value ? "true" : "false";
    case "object":
      return value === null ? "null" : canonicalStructure(value);
    default:
      throw new CanonicalJsonError(`JSON has no ${typeof value}.`);
  }
}

function canonicalStructure(value: Exclude<JsonValue, string | number | boolean | null>): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  const members = Object.entries(value);
  // The default order of `sort` is that of UTF-16 code units, which is what is asked for.
  const sorted = members.map(([name]) => name).sort();
  const byName = new Map(members);
  return `{${sorted.map((name) => `${canonicalText(name)}:${canonicalJson(byName.get(name) as JsonValue)}`).join(",")}}`;
}

/** `JSON.stringify` writes the escapes of RFC 8785 and no others, except that it lets half a character pass as one. */
function canonicalText(text: string): string {
  if (!text.isWellFormed()) throw new CanonicalJsonError("A text has a lone surrogate in it.");
  return JSON.stringify(text);
}
