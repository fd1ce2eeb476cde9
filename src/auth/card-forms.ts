/** The forms of a card that are signed. */
import type { JsonObject, JsonValue } from "../model/json.ts";

/** What signatures are about: everything but themselves. */
export function withoutSignatures(document: JsonObject): JsonObject {
  const { signatures: _, ...rest } = document;
  return rest;
}

/** A form of a card that is signed, and what can be relied on where a signature fits it. */
export interface SignedForm {
  readonly signed: JsonObject;
  readonly relied: JsonObject;
}

/**
 * What may have been signed of a card that is written as A2A 1.0 does (§8.4.1). After the form of the specification
 * come those of the official libraries, which leave out whatever is empty and, where they sign a card that was read
 * into memory, the security schemes too; of these nothing is known then. For many cards all forms are the same.
 */
export function signedForms(document: JsonObject): readonly SignedForm[] {
  const whole = withoutSignatures(document);
  const { securitySchemes: _, ...schemeless } = whole;
  return [
    { signed: whole, relied: whole },
    { signed: withoutEmpty(whole), relied: whole },
    { signed: withoutEmpty(schemeless), relied: schemeless },
  ];
}

function withoutEmpty(document: JsonObject): JsonObject {
  const stripped = strip(document);
  return isObject(stripped) ? stripped : {};
}

function strip(value: JsonValue): JsonValue | undefined {
  if (value === "" || value === null) return undefined;
  if (Array.isArray(value)) {
    const items = value.flatMap((item) => {
      const kept = strip(item);
      return kept === undefined ? [] : [kept];
    });
    return items.length === 0 ? undefined : items;
  }
  if (!isObject(value)) return value;
  const members = Object.entries(value).flatMap(([name, member]) => {
    const kept = strip(member);
    return kept === undefined ? [] : [[name, kept] as const];
  });
  return members.length === 0 ? undefined : Object.fromEntries(members);
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
