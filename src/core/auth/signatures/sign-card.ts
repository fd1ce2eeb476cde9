/** Signing agent cards: A2A §8.4, a detached JWS (RFC 7515) over canonical JSON. */

import { constants, sign } from "node:crypto";
import type { AgentCardSignature } from "../../model/card.ts";
import { isObject, type JsonObject, type JsonValue } from "../../model/json.ts";
import type { SigningAlgorithm, SigningKey } from "./keys.ts";

/** The value has no canonical form. */
export class CanonicalJsonError extends Error {
  override readonly name = "CanonicalJsonError";
}

/**
 * The JSON Canonicalization Scheme, RFC 8785: one text for one value, so that it can be signed. Throws a
 * CanonicalJsonError for numbers that JSON cannot represent and text that is not Unicode.
 */
export function canonicalJson(value: JsonValue): string {
  switch (typeof value) {
    case "string":
      return canonicalString(value);
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
  const members: string[] = [];
  // The default order of `sort` is that of UTF-16 code units, which is what is asked for.
  for (const name of Object.keys(value).sort()) {
    const member = (value as JsonObject)[name];
    if (member !== undefined) members.push(`${canonicalString(name)}:${canonicalJson(member)}`);
  }
  return `{${members.join(",")}}`;
}

/** `JSON.stringify` writes the escapes of RFC 8785 and no others, except that it lets half a character pass as one. */
function canonicalString(text: string): string {
  if (!text.isWellFormed()) throw new CanonicalJsonError("A text has a lone surrogate in it.");
  return JSON.stringify(text);
}

/** What signatures are about: everything but themselves. */
export function withoutSignatures(document: JsonObject): JsonObject {
  const { signatures: _, ...rest } = document;
  return rest;
}

/**
 * What may have been signed of a card that is written as A2A 1.0 does (§8.4.1). After the form of the specification
 * come those of the official libraries, which leave out whatever is empty and, where they sign a card that was read
 * into memory, the security schemes too. Where a signature fits one of them, that form is all that can be relied on: a
 * requirement without scopes counts as empty, so that anyone could have added another. For many cards all forms are
 * the same.
 */
export function signedForms(document: JsonObject): readonly JsonObject[] {
  const whole = withoutSignatures(document);
  const { securitySchemes: _, ...schemeless } = whole;
  return [whole, withoutEmpty(whole), withoutEmpty(schemeless)];
}

/** The parts of a document that are not in what was signed, by path; empty values are left out. */
export function findUnsignedPaths(
  document: JsonValue | undefined,
  signed: JsonValue | undefined,
  path = "",
): readonly string[] {
  if (isObject(document) && isObject(signed)) {
    return Object.entries(document).flatMap(([name, value]) =>
      findUnsignedPaths(
        value,
        Object.hasOwn(signed, name) ? signed[name] : undefined,
        path === "" ? name : `${path}.${name}`,
      ),
    );
  }
  if (Array.isArray(document) && Array.isArray(signed) && document.length === signed.length) {
    return document.flatMap((item, at) => findUnsignedPaths(item, signed[at], `${path}[${at}]`));
  }
  return document === signed || isEmptyValue(document) ? [] : [path];
}

function isEmptyValue(value: JsonValue | undefined): boolean {
  if (value === undefined) return true;
  return value === "" || value === null || value === false || (Array.isArray(value) && value.length === 0);
}

function withoutEmpty(document: JsonObject): JsonObject {
  const stripped = stripEmpty(document);
  return isObject(stripped) ? stripped : {};
}

function stripEmpty(value: JsonValue | undefined): JsonValue | undefined {
  if (value === undefined || value === "" || value === null) return undefined;
  if (Array.isArray(value)) {
    const items = value.flatMap((item) => {
      const kept = stripEmpty(item);
      return kept === undefined ? [] : [kept];
    });
    return items.length === 0 ? undefined : items;
  }
  if (!isObject(value)) return value;
  const members = Object.entries(value).flatMap(([name, member]) => {
    const kept = stripEmpty(member);
    return kept === undefined ? [] : [[name, kept] as const];
  });
  return members.length === 0 ? undefined : Object.fromEntries(members);
}

/**
 * The signatures of a card given as A2A 1.0 writes it (§8.4.1): one, and others for libraries that sign another form,
 * where that is not the same.
 */
export function signCard(document: JsonObject, key: SigningKey): readonly AgentCardSignature[] {
  const payloads = new Set(signedForms(document).map(canonicalJson));
  return [...payloads].map((payload) => signText(payload, key));
}

function signText(payload: string, { alg, jku, kid, privateKey }: SigningKey): AgentCardSignature {
  const header = { alg, kid, typ: "JOSE", jku };
  const protectedHeader = base64url(JSON.stringify(header));
  const input = Buffer.from(`${protectedHeader}.${base64url(payload)}`);
  return { protected: protectedHeader, signature: SIGN[alg](input, privateKey).toString("base64url") };
}

/** By the platform and at once, since a card is made when it is first read; signatures of ECDSA as RFC 7518 §3.4 has them. */
const SIGN = {
  ES256: (input, key) => sign("sha256", input, { key, dsaEncoding: "ieee-p1363" }),
  EdDSA: (input, key) => sign(null, input, key),
  RS256: (input, key) => sign("sha256", input, { key, padding: constants.RSA_PKCS1_PADDING }),
} as const satisfies Record<SigningAlgorithm, (input: Buffer, key: SigningKey["privateKey"]) => Buffer>;

function base64url(text: string): string {
  return Buffer.from(text).toString("base64url");
}
