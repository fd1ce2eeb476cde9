/** Xiaoyi's signatures: an HMAC over nothing but a timestamp. The same in both access modes and both directions. */
import { createHmac, hash, timingSafeEqual } from "node:crypto";

/** Maximum difference between a signed timestamp and the local clock. */
export const SIGNATURE_WINDOW_MS = 15 * 60 * 1000;

/** `timestamp` is milliseconds since the epoch in decimal, exactly as sent. */
export function signTimestamp(secretKey: string, timestamp: string): string {
  return createHmac("sha256", secretKey).update(timestamp).digest("base64");
}

export interface KeyPair {
  readonly accessKey: string;
  readonly secretKey: string;
}

/** Authentication headers for a request to the platform: created for each request, as the timestamp is checked. */
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

/** The signature is checked before the timestamp, so a caller without the key learns nothing about the local clock. */
export function verifySignature(
  secretKey: string,
  { sign, timestamp }: SignedTimestamp,
  now: number,
): SignatureVerdict {
  if (timestamp === undefined || sign === undefined || !TIMESTAMP.test(timestamp)) return "wrong";
  if (!secretsEqual(sign, signTimestamp(secretKey, timestamp))) return "wrong";
  return Math.abs(now - Number(timestamp)) < SIGNATURE_WINDOW_MS ? "good" : "stale";
}

/** In constant time for any lengths, as it compares digests. */
export function secretsEqual(given: string, expected: string): boolean {
  return timingSafeEqual(digestSecret(given), digestSecret(expected));
}

/** Of a fixed length, so that comparing it tells nothing about the length of the secret. */
export function digestSecret(secret: string): Buffer {
  return hash("sha256", secret, "buffer");
}
