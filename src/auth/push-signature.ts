/** A shared secret under the body of a push notification: `t=<seconds>,v1=<hex of HMAC-SHA256 over "t.body">`. */
import { createHmac, timingSafeEqual } from "node:crypto";

export const PUSH_SIGNATURE_HEADER = "x-dragoman-signature";

const MOST_SKEW_SECONDS = 300;

export type SignatureVerdict = "valid" | "absent" | "malformed" | "stale" | "wrong";

export function signPush(secret: string, body: string, now: number): string {
  const seconds = Math.floor(now / 1_000);
  return `t=${seconds},v1=${digestOf(secret, seconds, body).toString("hex")}`;
}

/** Several `v1` may stand in one header, so that a secret can be changed without a gap; one that fits is enough. */
export function verifyPushSignature(
  header: string | undefined,
  secret: string,
  body: string,
  now: number,
): SignatureVerdict {
  if (header === undefined) return "absent";
  const parts = header.split(",").map((part) => part.trim());
  const time = parts.find((part) => /^t=\d{1,12}$/.test(part));
  const given = parts.filter((part) => /^v1=[0-9a-f]{64}$/.test(part));
  if (time === undefined || given.length === 0) return "malformed";
  const seconds = Number(time.slice("t=".length));
  const expected = digestOf(secret, seconds, body);
  const fits = given.filter((part) => timingSafeEqual(Buffer.from(part.slice("v1=".length), "hex"), expected));
  if (fits.length === 0) return "wrong";
  return Math.abs(now / 1_000 - seconds) > MOST_SKEW_SECONDS ? "stale" : "valid";
}

function digestOf(secret: string, seconds: number, body: string): Buffer {
  return createHmac("sha256", secret).update(`${seconds}.`).update(body).digest();
}
