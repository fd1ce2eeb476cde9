/** A signed token beside a push notification: who sent it, to whom, about which task, with which body. */
import { createHash, createPrivateKey, createPublicKey, type JsonWebKey, type KeyObject } from "node:crypto";
import type { JWK, JWTVerifyGetKey } from "jose";

/** Loaded with the first token: few servers sign any, and all of them want to be ready soon. */
const jose = () => import("jose");

export const PUSH_TOKEN_HEADER = "x-dragoman-jwt";

export const PUSH_ALGORITHMS = ["ES256", "EdDSA", "RS256"] as const;
export type PushAlgorithm = (typeof PUSH_ALGORITHMS)[number];

const LIFETIME_SECONDS = 300;

export interface PushKey {
  readonly kid: string;
  readonly alg: PushAlgorithm;
  readonly key: KeyObject;
}

/** Reads a private key: PEM (PKCS #8, SEC 1, PKCS #1) or a JWK. Throws a TypeError that shows nothing of it. */
export function readPushKey(text: string, kid: string, wanted?: PushAlgorithm): PushKey {
  let key: KeyObject;
  try {
    const trimmed = text.trim();
    key = trimmed.startsWith("{")
      ? createPrivateKey({ key: JSON.parse(trimmed) as JsonWebKey, format: "jwk" })
      : createPrivateKey(trimmed);
  } catch {
    throw new TypeError("is no private key in PEM or JWK form");
  }
  const alg = algorithmOf(key);
  if (alg === undefined) throw new TypeError("must be a P-256, Ed25519 or RSA key");
  if (wanted !== undefined && wanted !== alg) throw new TypeError(`is a key for ${alg}, not for ${wanted}`);
  return { kid, alg, key };
}

function algorithmOf(key: KeyObject): PushAlgorithm | undefined {
  if (key.asymmetricKeyType === "ed25519") return "EdDSA";
  if (key.asymmetricKeyType === "rsa") return "RS256";
  return key.asymmetricKeyDetails?.namedCurve === "prime256v1" ? "ES256" : undefined;
}

/** As it is published. */
export async function publicPushKey({ key, kid, alg }: PushKey): Promise<JWK> {
  const { exportJWK } = await jose();
  return { ...(await exportJWK(createPublicKey(key))), kid, alg, use: "sig" };
}

export interface PushTokenClaims {
  readonly issuer: string;
  /** Origin of the receiver. */
  readonly audience: string;
  readonly taskId: string;
  readonly body: string;
  /** Of this try alone. */
  readonly id: string;
  readonly now: number;
}

export async function createPushToken({ key, kid, alg }: PushKey, claims: PushTokenClaims): Promise<string> {
  const { SignJWT } = await jose();
  const issuedAt = Math.floor(claims.now / 1_000);
  return new SignJWT({ taskId: claims.taskId, request_body_sha256: hashOf(claims.body) })
    .setProtectedHeader({ alg, kid, typ: "JWT" })
    .setIssuer(claims.issuer)
    .setAudience(claims.audience)
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + LIFETIME_SECONDS)
    .setJti(claims.id)
    .sign(key);
}

/** Public keys of a sender, as a receiver looks them up. */
export type PushKeys = JWTVerifyGetKey;

/** Those that a sender publishes: fetched when needed, and again when it signs with one that is not among them. */
export function pushKeysAt(url: URL): PushKeys {
  let keys: Promise<PushKeys> | undefined;
  return async (header, token) => {
    keys ??= jose().then(({ createRemoteJWKSet }) => createRemoteJWKSet(url));
    return (await keys)(header, token);
  };
}

export interface PushTokenExpectation {
  readonly keys: PushKeys;
  readonly audience: string;
  readonly issuer?: string;
  readonly body: string;
  readonly now: number;
}

/** Undefined if all is well, else what is wrong, for people. */
export async function whyPushTokenFails(token: string, expected: PushTokenExpectation): Promise<string | undefined> {
  try {
    const { jwtVerify } = await jose();
    const { payload } = await jwtVerify(token, expected.keys, {
      audience: expected.audience,
      ...(expected.issuer === undefined ? undefined : { issuer: expected.issuer }),
      algorithms: [...PUSH_ALGORITHMS],
      currentDate: new Date(expected.now),
      requiredClaims: ["iat", "exp", "jti", "taskId", "request_body_sha256"],
      clockTolerance: 30,
    });
    return payload.request_body_sha256 === hashOf(expected.body) ? undefined : "it was made for another body";
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

function hashOf(body: string): string {
  return createHash("sha256").update(body).digest("hex");
}
