/** Public keys that may vouch for a card: pinned ones, and those of key sets at pinned origins. */
import { createPublicKey } from "node:crypto";
import type { JWK } from "jose";
import { isObject } from "./card-forms.ts";
import { algorithmOf, KeyError } from "./signing-key.ts";

export type PublicJwk = JWK;

/** What the protected header of a signature says of its key. */
export interface KeyHint {
  readonly kid: string;
  readonly alg: string;
  readonly jku?: string | undefined;
}

/** The keys a signature may have been made with; empty where none is trusted. */
export type KeySource = (hint: KeyHint) => Promise<readonly PublicJwk[]>;

export interface KeySourceOptions {
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

export function createKeySource(options: KeySourceOptions): KeySource {
  const { keys = [], jkuOrigins = [], fetch, now = Date.now } = options;
  const origins = new Set(jkuOrigins.map((origin) => new URL(origin).origin));
  const mayUse = ({ alg, kid }: KeyHint, key: PublicJwk): boolean =>
    (key.kid === undefined || key.kid === kid) && isUsable(key, alg, now());

  return async (hint) => {
    const pinned = keys.filter((key) => mayUse(hint, key));
    if (pinned.length > 0) return pinned;
    const { jku } = hint;
    if (jku === undefined || fetch === undefined || !URL.canParse(jku)) return [];
    const { origin, protocol } = new URL(jku);
    // The address is the signer's choice, so that it proves nothing unless its place is trusted.
    if (protocol !== "https:" || !origins.has(origin)) return [];
    const found = await fetchKeySet(jku, fetch);
    return found.filter((key) => key.kid === hint.kid && isUsable(key, hint.alg, now()));
  };
}

/** Keys for something else, that have expired or were revoked are not used. */
function isUsable(key: PublicJwk, alg: string, now: number): boolean {
  const { exp, revoked } = key as { readonly exp?: unknown; readonly revoked?: unknown };
  if (key.use !== undefined && key.use !== "sig") return false;
  if (key.key_ops !== undefined && !key.key_ops.includes("verify")) return false;
  if (key.alg !== undefined && !isSameAlgorithm(key.alg, alg)) return false;
  if (revoked !== undefined && revoked !== false) return false;
  return exp === undefined || (typeof exp === "number" && exp * 1000 > now);
}

/** RFC 9864 gives Ed25519 a name of its own. */
function isSameAlgorithm(one: string, other: string): boolean {
  const plain = (name: string) => (name === "Ed25519" ? "EdDSA" : name);
  return plain(one) === plain(other);
}

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
    if (!text.trimStart().startsWith("{")) return [fromPem(text)];
    const value: unknown = JSON.parse(text);
    if (isObject(value) && Array.isArray(value.keys)) return value.keys.filter(isPublicJwk);
    if (isPublicJwk(value)) return [value];
  } catch {
    // Reported below, without the cause: parsers quote what they could not read.
  }
  throw new KeyError(`${where} holds no public key that can be read: a PEM, a JWK or a JWK set is expected.`);
}

function fromPem(text: string): PublicJwk {
  const key = createPublicKey(text);
  const alg = algorithmOf(key);
  const members = Object.entries(key.export({ format: "jwk" })).filter(([, value]) => typeof value === "string");
  return { ...Object.fromEntries(members), kty: String(key.export({ format: "jwk" }).kty), ...(alg && { alg }) };
}

/** Secrets that are shared with the signer prove nothing about who signed, and private keys have no place among these. */
function isPublicJwk(value: unknown): value is PublicJwk {
  return isObject(value) && typeof value.kty === "string" && value.kty !== "oct" && value.d === undefined;
}
