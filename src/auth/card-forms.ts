/** The forms of a card that are signed. */
import type { JsonObject, JsonValue } from "../model/json.ts";

/** What signatures are about: everything but themselves. */
export function withoutSignatures(document: JsonObject): JsonObject {
  const { signatures: _, ...rest } = document;
  return rest;
}

/**
 * What may have been signed of a card that is written as A2A 1.0 does (§8.4.1). After the form of the specification
 * come those of the official libraries, which leave out whatever is empty and, where they sign a card that was read
 * into memory, the security schemes too. Where a signature fits one of them, that form is all that can be relied on: a
 * requirement without scopes counts as empty, so that anybody could have put in another. For many cards all forms are
 * the same.
 */
export function signedForms(document: JsonObject): readonly JsonObject[] {
  const whole = withoutSignatures(document);
  const { securitySchemes: _, ...schemeless } = whole;
  return [whole, withoutEmpty(whole), withoutEmpty(schemeless)];
}

/** The parts of a document that are not in what was signed, by path; values that say nothing are left out. */
export function uncoveredParts(document: JsonValue, signed: JsonValue | undefined, path = ""): readonly string[] {
  if (isObject(document) && isObject(signed)) {
    return Object.entries(document).flatMap(([name, value]) =>
      uncoveredParts(
        value,
        Object.hasOwn(signed, name) ? signed[name] : undefined,
        path === "" ? name : `${path}.${name}`,
      ),
    );
  }
  if (Array.isArray(document) && Array.isArray(signed) && document.length === signed.length) {
    return document.flatMap((item, at) => uncoveredParts(item, signed[at], `${path}[${at}]`));
  }
  return document === signed || saysNothing(document) ? [] : [path];
}

function saysNothing(value: JsonValue): boolean {
  return value === "" || value === null || value === false || (Array.isArray(value) && value.length === 0);
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
