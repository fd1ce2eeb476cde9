/** Signatures of push notifications: an HMAC with a shared secret, and a JWT that names sender, receiver, task and body. */

import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import type { JWTVerifyGetKey } from "jose";
import { SIGNING_ALGORITHMS, type SigningKey } from "./keys.ts";

/**
 * `t=<seconds>,v1=<hex of HMAC-SHA256 over "t.address.body">`. The address of the webhook is signed too, so that a
 * receiver cannot forward the notification to another.
 */
export const PUSH_SIGNATURE_HEADER = "x-dragoman-signature";

const MAX_SKEW_SECONDS = 300;

type SignatureVerdict = "valid" | "absent" | "malformed" | "stale" | "wrong";

interface SignedPush {
  /** Of the webhook, as it was registered. */
  readonly url: string;
  readonly body: string;
}

export function signPush(secret: string, push: SignedPush, now: number): string {
  const seconds = Math.floor(now / 1_000);
  return `t=${seconds},v1=${digestOf(secret, seconds, push).toString("hex")}`;
}

/** A header may contain several `v1`, so that a secret can be changed without a gap; one that matches is enough. */
export function verifyPushSignature(
  header: string | undefined,
  secret: string,
  push: SignedPush,
  now: number,
): SignatureVerdict {
  if (header === undefined) return "absent";
  const parts = header.split(",").map((part) => part.trim());
  const time = parts.find((part) => /^t=\d{1,12}$/.test(part));
  const given = parts.filter((part) => /^v1=[0-9a-f]{64}$/.test(part));
  if (time === undefined || given.length === 0) return "malformed";
  const seconds = Number(time.slice("t=".length));
  const expected = digestOf(secret, seconds, push);
  const fits = given.filter((part) => timingSafeEqual(Buffer.from(part.slice("v1=".length), "hex"), expected));
  if (fits.length === 0) return "wrong";
  return Math.abs(now / 1_000 - seconds) > MAX_SKEW_SECONDS ? "stale" : "valid";
}

function digestOf(secret: string, seconds: number, { url, body }: SignedPush): Buffer {
  const address = new URL(url);
  address.hash = "";
  return createHmac("sha256", secret).update(`${seconds}.${address.href}.`).update(body).digest();
}

/** Loaded with the first token: few servers sign any, and loading it would delay the start. */
const jose = () => import("jose");

export const PUSH_TOKEN_HEADER = "x-dragoman-jwt";

const LIFETIME_SECONDS = 300;

interface PushTokenClaims {
  readonly issuer: string;
  /** Origin of the receiver. */
  readonly audience: string;
  readonly taskId: string;
  readonly body: string;
  /** Of this try alone. */
  readonly id: string;
  readonly now: number;
}

export async function createPushToken({ privateKey, kid, alg }: SigningKey, claims: PushTokenClaims): Promise<string> {
  const { SignJWT } = await jose();
  const issuedAt = Math.floor(claims.now / 1_000);
  return new SignJWT({ taskId: claims.taskId, request_body_sha256: hashOf(claims.body) })
    .setProtectedHeader({ alg, kid, typ: "JWT" })
    .setIssuer(claims.issuer)
    .setAudience(claims.audience)
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + LIFETIME_SECONDS)
    .setJti(claims.id)
    .sign(privateKey);
}

/** Public keys of a sender, as a receiver looks them up. */
export type PushKeys = JWTVerifyGetKey;

/** Those that a sender publishes: fetched when needed, and again when it signs with one that is not among them. */
export function createRemotePushKeys(url: URL): PushKeys {
  let keys: Promise<PushKeys> | undefined;
  return async (header, token) => {
    keys ??= jose().then(({ createRemoteJWKSet }) => createRemoteJWKSet(url));
    return (await keys)(header, token);
  };
}

interface PushTokenExpectation {
  readonly keys: PushKeys;
  readonly audience: string;
  readonly issuer?: string;
  readonly body: string;
  readonly now: number;
}

/** Undefined if all is well, else what is wrong, for people. */
export async function findPushTokenProblem(token: string, expected: PushTokenExpectation): Promise<string | undefined> {
  try {
    const { jwtVerify } = await jose();
    const { payload } = await jwtVerify(token, expected.keys, {
      audience: expected.audience,
      issuer: expected.issuer,
      algorithms: [...SIGNING_ALGORITHMS],
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
