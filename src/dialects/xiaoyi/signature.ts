/** How Xiaoyi signs: only a timestamp, with the secret key. Both access modes, and both directions, do it alike. */
import { createHmac, timingSafeEqual } from "node:crypto";

/** How far a signed time may lie from ours. */
export const SIGNATURE_WINDOW_MS = 15 * 60 * 1000;

/** `timestamp` is milliseconds since the epoch in decimal, exactly as it is sent. */
export function signTimestamp(secretKey: string, timestamp: string): string {
  return createHmac("sha256", secretKey).update(timestamp).digest("base64");
}

export interface KeyPair {
  readonly accessKey: string;
  readonly secretKey: string;
}

/** What a request to the platform proves itself by: made anew for each, for its time is looked at. */
export function signedHeaders({ accessKey, secretKey }: KeyPair, now: number): Readonly<Record<string, string>> {
  const timestamp = String(now);
  return { "x-access-key": accessKey, "x-sign": signTimestamp(secretKey, timestamp), "x-ts": timestamp };
}

interface SignedTimestamp {
  readonly timestamp: string | undefined;
  readonly sign: string | undefined;
}

export type SignatureVerdict = "good" | "wrong" | "stale";

const TIMESTAMP = /^\d{1,15}$/;

/** A signature is judged before its time: whoever does not know the key learns nothing about our clock. */
export function verifySignature(
  secretKey: string,
  { sign, timestamp }: SignedTimestamp,
  now: number,
  windowMs: number = SIGNATURE_WINDOW_MS,
): SignatureVerdict {
  if (timestamp === undefined || sign === undefined || !TIMESTAMP.test(timestamp)) return "wrong";
  if (!secretsEqual(sign, signTimestamp(secretKey, timestamp))) return "wrong";
  return Math.abs(now - Number(timestamp)) < windowMs ? "good" : "stale";
}

/** In constant time, whatever the lengths: what is compared are keyed digests. */
export function secretsEqual(given: string, expected: string): boolean {
  return timingSafeEqual(digestOf(given), digestOf(expected));
}

function digestOf(text: string): Buffer {
  return createHmac("sha256", "comparison").update(text).digest();
}
