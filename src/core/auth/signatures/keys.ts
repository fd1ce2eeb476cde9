/** The private key that signs cards, from a file. */

import { createPrivateKey, createPublicKey, type KeyObject } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { JWK } from "jose";
import { isObject } from "../../model/json.ts";
import { canParseUrl } from "../../model/url.ts";

export type PublicJwk = JWK;

/** What the protected header of a signature contains about its key. */
interface KeyHint {
  readonly kid: string;
  readonly alg: string;
  readonly jku?: string | undefined;
}

/** The keys a signature may have been made with; empty where none is trusted. */
export type KeySource = (hint: KeyHint) => Promise<readonly PublicJwk[]>;

interface KeySourceOptions {
  /** Each with its `kid`; a key without one is tried for every signature. */
  readonly keys?: readonly PublicJwk[];
  /** Origins whose key sets may be fetched where a signature names one; https only. */
  readonly jkuOrigins?: readonly string[];
  /** For key sets; ought to be a guarded one that follows no redirects. */
  readonly fetch?: typeof globalThis.fetch;
  /** Milliseconds since the epoch. */
  readonly now?: () => number;
}

const MAX_KEY_SET_CHARACTERS = 256 * 1024;

/** Public keys that may vouch for a card: pinned ones, and those of key sets at pinned origins. */
export function createKeySource(options: KeySourceOptions): KeySource {
  const { keys = [], jkuOrigins = [], fetch, now = Date.now } = options;
  const origins = new Set(jkuOrigins.map((origin) => new URL(origin).origin));
  return async ({ alg, kid, jku }) => {
    const pinned = keys.filter((key) => (key.kid ?? kid) === kid && isUsable(key, alg, now()));
    if (pinned.length > 0) return pinned;
    if (jku === undefined || fetch === undefined || !canParseUrl(jku)) return [];
    const { origin, protocol } = new URL(jku);
    // The address is the signer's choice, so that it proves nothing unless its place is trusted.
    if (protocol !== "https:" || !origins.has(origin)) return [];
    const found = await fetchKeySet(jku, fetch);
    return found.filter((key) => key.kid === kid && isUsable(key, alg, now()));
  };
}

/** Keys for something else, that have expired or were revoked are not used. */
function isUsable(key: PublicJwk, alg: string, now: number): boolean {
  const { exp, revoked } = key as { readonly exp?: unknown; readonly revoked?: unknown };
  if (key.use !== undefined && key.use !== "sig") return false;
  if (key.key_ops !== undefined && !key.key_ops.includes("verify")) return false;
  if (key.alg !== undefined && plainAlgorithm(key.alg) !== plainAlgorithm(alg)) return false;
  if (revoked !== undefined && revoked !== false) return false;
  return exp === undefined || (typeof exp === "number" && exp * 1000 > now);
}

/** RFC 9864 gives Ed25519 a name of its own. */
const plainAlgorithm = (name: string) => (name === "Ed25519" ? "EdDSA" : name);

async function fetchKeySet(url: string, fetch: typeof globalThis.fetch): Promise<readonly PublicJwk[]> {
  const response = await fetch(url, {
    headers: { accept: "application/jwk-set+json, application/json" },
    redirect: "error",
  });
  if (response.status !== 200)
    throw new KeyError(`The key set could not be fetched: the answer was ${response.status}.`);
  const text = await response.text();
  if (text.length > MAX_KEY_SET_CHARACTERS) throw new KeyError("The key set is too large.");
  return parsePublicKeys(text, "The key set");
}

/** Keys from a JWK set, a JWK or a PEM; `where` is for the message. */
export function parsePublicKeys(text: string, where: string): readonly PublicJwk[] {
  try {
    if (!text.trimStart().startsWith("{")) return [toJwkFromPem(text)];
    const value: unknown = JSON.parse(text);
    if (isObject(value) && Array.isArray(value.keys)) return value.keys.filter(isPublicJwk);
    if (isPublicJwk(value)) return [value];
  } catch {
    // Reported below, without the cause: parsers quote what they could not read.
  }
  throw new KeyError(`${where} holds no public key that can be read: a PEM, a JWK or a JWK set is expected.`);
}

function toJwkFromPem(text: string): PublicJwk {
  const key = createPublicKey(text);
  const alg = algorithmOf(key);
  return { ...exportJwk(key), alg };
}

function exportJwk(key: KeyObject): { readonly [member: string]: string; readonly kty: string } {
  const { kty = "", ...members } = key.export({ format: "jwk" });
  return { ...Object.fromEntries(Object.entries(members).filter(isText)), kty };
}

function isText(member: [string, unknown]): member is [string, string] {
  return typeof member[1] === "string";
}

/** Secrets that are shared with the signer prove nothing about who signed, and private keys have no place among these. */
function isPublicJwk(value: unknown): value is PublicJwk {
  return isObject(value) && typeof value.kty === "string" && value.kty !== "oct" && value.d === undefined;
}

export const SIGNING_ALGORITHMS = ["ES256", "EdDSA", "RS256"] as const;
export type SigningAlgorithm = (typeof SIGNING_ALGORITHMS)[number];

export interface SigningKey {
  readonly kid: string;
  readonly alg: SigningAlgorithm;
  readonly privateKey: KeyObject;
  /** Where the public key is published, for verifiers that trust that place. */
  readonly jku?: string;
}

export interface SigningKeyOptions {
  /** PEM (PKCS #8, SEC 1 or PKCS #1) or a private JWK. */
  readonly keyFile: string;
  readonly kid: string;
  /** Default: the algorithm the key is made for. */
  readonly alg?: SigningAlgorithm;
  readonly jku?: string;
}

/** A key that cannot be used. The message never has anything of the key in it. */
export class KeyError extends Error {
  override readonly name = "KeyError";
}

const MIN_RSA_BITS = 2048;

export async function loadSigningKey(options: SigningKeyOptions): Promise<SigningKey> {
  const { keyFile, kid, jku } = options;
  let text: string;
  try {
    text = await readFile(keyFile, "utf8");
  } catch (error) {
    const code = error instanceof Error && "code" in error ? ` (${String(error.code)})` : "";
    throw new KeyError(`The key file ${keyFile} could not be read${code}.`);
  }
  const privateKey = parsePrivateKey(text, keyFile);
  const alg = algorithmOf(privateKey);
  if (alg === undefined) {
    throw new KeyError(
      `The key in ${keyFile} signs with none of ES256 (P-256), EdDSA (Ed25519) and RS256 (RSA, 2048 bits).`,
    );
  }
  if (options.alg !== undefined && options.alg !== alg) {
    throw new KeyError(`The key in ${keyFile} is made for ${alg}, not for ${options.alg}.`);
  }
  return { kid, alg, privateKey, jku };
}

function parsePrivateKey(text: string, where: string): KeyObject {
  try {
    if (text.trimStart().startsWith("{")) return createPrivateKey({ key: JSON.parse(text), format: "jwk" });
    return createPrivateKey(text);
  } catch {
    // Without the cause: parsers quote what they could not read.
    throw new KeyError(`${where} holds no private key that can be read: an unencrypted PEM or a JWK is expected.`);
  }
}

function algorithmOf(key: KeyObject): SigningAlgorithm | undefined {
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = key;
  if (type === "ed25519") return "EdDSA";
  if (type === "ec") return details?.namedCurve === "prime256v1" ? "ES256" : undefined;
  return type === "rsa" && (details?.modulusLength ?? 0) >= MIN_RSA_BITS ? "RS256" : undefined;
}

/** The half that may be published, as a member of a JWK set. */
export function toPublicJwk({ alg, kid, privateKey }: SigningKey): Record<string, string> & { readonly kid: string } {
  return { ...exportJwk(createPublicKey(privateKey)), kid, alg, use: "sig" };
}
