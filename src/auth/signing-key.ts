/** The private key that signs cards, from a file. */
import { createPrivateKey, createPublicKey, type KeyObject } from "node:crypto";
import { readFile } from "node:fs/promises";

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
  /** What the key is made for, unless given. */
  readonly alg?: SigningAlgorithm;
  readonly jku?: string;
}

/** A key that cannot be used. The message never has anything of the key in it. */
export class KeyError extends Error {
  override readonly name = "KeyError";
}

/** A public key as it is published. */
export interface PublishedKey {
  readonly [member: string]: string;
  readonly kid: string;
  readonly alg: SigningAlgorithm;
}

const SMALLEST_RSA_BITS = 2048;

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
  return { kid, alg, privateKey, ...(jku === undefined ? {} : { jku }) };
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

export function algorithmOf(key: KeyObject): SigningAlgorithm | undefined {
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = key;
  if (type === "ed25519") return "EdDSA";
  if (type === "ec") return details?.namedCurve === "prime256v1" ? "ES256" : undefined;
  return type === "rsa" && (details?.modulusLength ?? 0) >= SMALLEST_RSA_BITS ? "RS256" : undefined;
}

/** The half that may be published, as a member of a JWK set. */
export function toPublicJwk({ alg, kid, privateKey }: SigningKey): PublishedKey {
  const members = Object.entries(createPublicKey(privateKey).export({ format: "jwk" }));
  const texts = members.flatMap(([name, value]) => (typeof value === "string" ? [[name, value] as const] : []));
  return { ...Object.fromEntries(texts), kid, alg, use: "sig" };
}
