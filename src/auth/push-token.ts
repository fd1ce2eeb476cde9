/** A signed token beside a push notification: who sent it, to whom, about which task, with which body. */
import { createHash } from "node:crypto";
import type { JWTVerifyGetKey } from "jose";
import { SIGNING_ALGORITHMS, type SigningKey } from "./signing-key.ts";

/** Loaded with the first token: few servers sign any, and all of them want to be ready soon. */
const jose = () => import("jose");

export const PUSH_TOKEN_HEADER = "x-dragoman-jwt";

const LIFETIME_SECONDS = 300;

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
