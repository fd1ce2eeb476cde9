import { createHash, createHmac, timingSafeEqual } from "node:crypto";

/** Only the time is signed: Base64 of HMAC-SHA256 with the secret key over decimal milliseconds. */
export function sign(secretKey: string, timestamp: string): string {
  return createHmac("sha256", secretKey).update(timestamp).digest("base64");
}

/** How far a signed time may be off, either way. Documented for calls; whether the link has it too is an assumption. */
export const DEFAULT_SKEW_MS = 15 * 60_000;

export type SignatureVerdict = "valid" | "wrong" | "stale" | "no-time";

export interface SignatureCheck {
  readonly secretKey: string;
  readonly now: number;
  readonly skewMs: number;
}

export function checkSignature(signature: string, timestamp: string, check: SignatureCheck): SignatureVerdict {
  if (!/^\d{1,16}$/.test(timestamp)) return "no-time";
  if (!sameSecret(signature, sign(check.secretKey, timestamp))) return "wrong";
  return Math.abs(check.now - Number(timestamp)) < check.skewMs ? "valid" : "stale";
}

/** Takes as long whether they are equal or not. */
export function sameSecret(one: string, other: string): boolean {
  return timingSafeEqual(digest(one), digest(other));
}

const digest = (text: string) => createHash("sha256").update(text).digest();
