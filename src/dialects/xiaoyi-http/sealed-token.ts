/**
 * Tokens that need no memory: they say until when they are good and are signed with a key made from a credential, so that
 * every node knows them, any number may be valid at a time, and a new credential ends them all.
 */
import { createHmac } from "node:crypto";
import { sameSecret } from "../xiaoyi/signature.ts";

export interface TokenScope {
  readonly secret: string;
  /** What the token is good for, and for which agent: the same credential may serve several. */
  readonly purpose: string;
}

/** The platform's console cuts longer ones. */
export const LONGEST_TOKEN = 64;

const UNIQUE_CHARACTERS = 16;
const SIGNATURE_BYTES = 24;
const TOKEN = /^([0-9a-z]{1,9})\.([\w-]{1,16})\.([\w-]{32})$/;

/** `unique` makes tokens of the same moment differ. */
export function issueToken(scope: TokenScope, expiresAt: number, unique: string): string {
  const head = `${Math.ceil(expiresAt / 1_000).toString(36)}.${unique.replaceAll(/[^\w-]/g, "").slice(-UNIQUE_CHARACTERS)}`;
  return `${head}.${signatureOf(scope, head)}`;
}

export function isGoodToken(scope: TokenScope, token: string, now: number): boolean {
  const match = TOKEN.exec(token);
  if (match === null) return false;
  const [, expiry = "", unique = "", signature = ""] = match;
  if (!sameSecret(signature, signatureOf(scope, `${expiry}.${unique}`))) return false;
  return Number.parseInt(expiry, 36) * 1_000 > now;
}

function signatureOf({ purpose, secret }: TokenScope, head: string): string {
  const key = createHmac("sha256", secret).update(purpose).digest();
  const digest = createHmac("sha256", key).update(head).digest();
  return digest.subarray(0, SIGNATURE_BYTES).toString("base64url");
}
