/**
 * A shared secret under the body of a push notification and the address it goes to, so that no receiver can pass it on to
 * another: `t=<seconds>,v1=<hex of HMAC-SHA256 over "t.address.body">`.
 */
import { createHmac, timingSafeEqual } from "node:crypto";

export const PUSH_SIGNATURE_HEADER = "x-dragoman-signature";

const MOST_SKEW_SECONDS = 300;

export type SignatureVerdict = "valid" | "absent" | "malformed" | "stale" | "wrong";

export interface SignedPush {
  /** Of the webhook, as it was registered. */
  readonly url: string;
  readonly body: string;
}

export function signPush(secret: string, push: SignedPush, now: number): string {
  const seconds = Math.floor(now / 1_000);
  return `t=${seconds},v1=${digestOf(secret, seconds, push).toString("hex")}`;
}

/** Several `v1` may stand in one header, so that a secret can be changed without a gap; one that fits is enough. */
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
  return Math.abs(now / 1_000 - seconds) > MOST_SKEW_SECONDS ? "stale" : "valid";
}

function digestOf(secret: string, seconds: number, { url, body }: SignedPush): Buffer {
  const address = new URL(url);
  address.hash = "";
  return createHmac("sha256", secret).update(`${seconds}.${address.href}.`).update(body).digest();
}
