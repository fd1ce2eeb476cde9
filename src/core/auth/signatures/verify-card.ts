/** Whether a trusted key has signed a card: A2A §8.4.3. */

import { isObject, type JsonObject } from "../../model/json.ts";
import { JsonParseError, parseJson } from "../../wire/parse-json.ts";
import type { KeySource, PublicJwk } from "./keys.ts";
import { CanonicalJsonError, canonicalJson, findUnsignedPaths, signedForms, withoutSignatures } from "./sign-card.ts";

const QUOTE = '"';

/**
 * Whether any object in a valid JSON text has two members of one name, however they are spelled: readers disagree about
 * which one counts, so that no signature can cover it.
 */
export function hasDuplicateMembers(text: string): boolean {
  /** The names seen in each open object; undefined for an array. */
  const open: (Set<string> | undefined)[] = [];
  for (let at = 0; at < text.length; at++) {
    switch (text[at]) {
      case "{":
        open.push(new Set());
        break;
      case "[":
        open.push(undefined);
        break;
      case "}":
      case "]":
        open.pop();
        break;
      case QUOTE: {
        const end = endOfString(text, at);
        const names = open.at(-1);
        if (names !== undefined && isFollowedByColon(text, end)) {
          const name: unknown = JSON.parse(text.slice(at, end));
          if (names.has(String(name))) return true;
          names.add(String(name));
        }
        at = end - 1;
        break;
      }
    }
  }
  return false;
}

/** Just after the closing quote. */
function endOfString(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && text[at] !== QUOTE) at += text[at] === "\\" ? 2 : 1;
  return at + 1;
}

function isFollowedByColon(text: string, start: number): boolean {
  let at = start;
  while (/\s/.test(text[at] ?? "")) at++;
  return text[at] === ":";
}

/** `unverifiable`: signed, but by no key that is trusted here. `invalid`: a trusted key did not sign this. */
export type CardVerification =
  | {
      readonly status: "verified";
      readonly kid: string;
      readonly alg: string;
      /** What was signed. Anyone could have added the rest of the document. */
      readonly document: JsonObject;
      /** Paths of the rest of the document. */
      readonly uncovered: readonly string[];
    }
  | { readonly status: "absent" }
  | { readonly status: "unverifiable"; readonly reason: string }
  | { readonly status: "invalid"; readonly reason: string };

const VERIFYING_ALGORITHMS: readonly string[] = ["ES256", "ES384", "ES512", "EdDSA", "Ed25519", "RS256", "PS256"];

export interface CardVerificationOptions {
  readonly keys: KeySource;
  /** The document as A2A 1.0 writes the card in it (§8.4.1), for one that has more in it; undefined if there is none. */
  readonly normalise: (document: JsonObject) => JsonObject | undefined;
  readonly algorithms?: readonly string[];
}

/** A form of the document that may be what was signed. */
interface Form {
  readonly payload: string;
  readonly document: JsonObject;
  readonly uncovered: readonly string[];
}

type Outcome = Exclude<CardVerification, { readonly status: "absent" }>;
type Verified = Extract<Outcome, { readonly status: "verified" }>;

const MAX_SIGNATURES = 32;

/** `text` as it was received: a reading of it may have lost what was signed. */
export async function verifyCard(text: string, options: CardVerificationOptions): Promise<CardVerification> {
  const document = readDocument(text);
  if (typeof document === "string") return { status: "invalid", reason: document };
  const { signatures } = document;
  if (signatures === undefined || (Array.isArray(signatures) && signatures.length === 0)) return { status: "absent" };
  if (!Array.isArray(signatures)) return { status: "invalid", reason: "The signatures are not a list." };
  const forms = formsOf(withoutSignatures(document), options.normalise);
  if (forms.length === 0) return { status: "invalid", reason: "The card has no canonical form." };
  const outcomes: Outcome[] = [];
  for (const signature of signatures.slice(0, MAX_SIGNATURES)) {
    outcomes.push(await verifySignature(signature, forms, options));
  }
  // The forms come in the order of how much they contain.
  const placeOf = ({ document }: Verified) => forms.findIndex((form) => form.document === document);
  const [verified] = outcomes
    .filter((outcome) => outcome.status === "verified")
    .sort((one, other) => placeOf(one) - placeOf(other));
  if (verified !== undefined) return verified;
  // One that is known to be wrong is more informative than one that cannot be verified.
  return outcomes.find(({ status }) => status === "invalid") ?? outcomes[0] ?? { status: "absent" };
}

function readDocument(text: string): JsonObject | string {
  try {
    const value = parseJson(text);
    if (!isObject(value)) return "The card is not a JSON object.";
    return hasDuplicateMembers(text) ? "The card names a member twice." : value;
  } catch (error) {
    if (error instanceof JsonParseError) return error.message;
    throw error;
  }
}

/** The document itself, and the forms of the 1.0 card in it. */
function formsOf(document: JsonObject, normalise: CardVerificationOptions["normalise"]): readonly Form[] {
  const normal = normalise(document);
  const byPayload = new Map<string, Form>();
  for (const signed of [document, ...(normal === undefined ? [] : signedForms(normal))]) {
    const payload = canonical(signed);
    if (payload === undefined || byPayload.has(payload)) continue;
    byPayload.set(payload, { payload, document: signed, uncovered: findUnsignedPaths(document, signed) });
  }
  return [...byPayload.values()];
}

function canonical(document: JsonObject): string | undefined {
  try {
    return canonicalJson(document);
  } catch (error) {
    if (error instanceof CanonicalJsonError) return undefined;
    throw error;
  }
}

async function verifySignature(
  value: unknown,
  forms: readonly Form[],
  { algorithms = VERIFYING_ALGORITHMS, keys }: CardVerificationOptions,
): Promise<Outcome> {
  if (!isObject(value)) return invalid("A signature is not an object.");
  const { protected: protectedHeader, signature } = value;
  if (typeof protectedHeader !== "string" || typeof signature !== "string")
    return invalid("A signature is incomplete.");
  const header = readHeader(protectedHeader);
  if (header === undefined) return invalid("A signature's protected header cannot be read.");
  const { alg, kid, typ, jku, crit } = header;
  if (typeof alg !== "string" || !isNonEmptyString(kid) || !isNonEmptyString(typ)) {
    return invalid("A signature's protected header lacks alg, kid or typ.");
  }
  if (crit !== undefined) return unverifiable("A signature demands extensions that are not known here.");
  if (!algorithms.includes(alg)) return unverifiable(`A signature uses the algorithm ${alg}, which is not allowed.`);
  let candidates: readonly PublicJwk[];
  try {
    candidates = await keys({ kid, alg, jku: isNonEmptyString(jku) ? jku : undefined });
  } catch {
    return unverifiable(`The key set for the key ${kid} could not be fetched.`);
  }
  if (candidates.length === 0) return unverifiable(`The key ${kid} is not trusted here.`);
  for (const { payload, document, uncovered } of forms) {
    const jws = { payload: Buffer.from(payload).toString("base64url"), protected: protectedHeader, signature };
    for (const key of candidates) {
      if (await matches(jws, key, alg)) return { status: "verified", kid, alg, document, uncovered };
    }
  }
  return invalid(`The signature by the key ${kid} does not fit the card.`);
}

/** Only the protected header is used; anyone could have changed the unprotected one. */
async function matches(
  jws: { readonly payload: string; readonly protected: string; readonly signature: string },
  key: PublicJwk,
  alg: string,
): Promise<boolean> {
  const { flattenedVerify } = await import("jose");
  try {
    await flattenedVerify(jws, key, { algorithms: [alg] });
    return true;
  } catch {
    return false;
  }
}

function readHeader(text: string): JsonObject | undefined {
  if (!/^[A-Za-z0-9_-]+$/.test(text)) return undefined;
  try {
    const value = parseJson(Buffer.from(text, "base64url").toString("utf8"));
    return isObject(value) ? value : undefined;
  } catch (error) {
    if (error instanceof JsonParseError) return undefined;
    throw error;
  }
}

function isNonEmptyString(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

function unverifiable(reason: string): Outcome {
  return { status: "unverifiable", reason };
}

function invalid(reason: string): Outcome {
  return { status: "invalid", reason };
}
