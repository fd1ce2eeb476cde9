/** Signing agent cards: A2A §8.4, a detached JWS (RFC 7515) over canonical JSON. */
import { constants, sign } from "node:crypto";
import type { AgentCardSignature } from "../model/card.ts";
import type { JsonObject } from "../model/json.ts";
import { signedForms } from "./card-forms.ts";
import { canonicalJson } from "./jcs.ts";
import type { SigningAlgorithm, SigningKey } from "./signing-key.ts";

/**
 * The signatures of a card given as A2A 1.0 writes it (§8.4.1): one, and others for libraries that sign another form,
 * where that is not the same.
 */
export function signCard(document: JsonObject, key: SigningKey): readonly AgentCardSignature[] {
  const payloads = new Set(signedForms(document).map(canonicalJson));
  return [...payloads].map((payload) => signText(payload, key));
}

function signText(payload: string, { alg, jku, kid, privateKey }: SigningKey): AgentCardSignature {
  const header = { alg, kid, typ: "JOSE", ...(jku === undefined ? {} : { jku }) };
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
