import { describe, expect, it } from "vitest";
import { SIGNATURE_WINDOW_MS, secretsEqual, signTimestamp, verifySignature } from "./signature.ts";

describe("a signature", () => {
  it.each([
    ["2e3b71f5def64d95a727314f028bf5aa", "1547630863716", "6lFqepUu79KSxVCsrXyB/aLVFIdutsTLLx1cZjxDE4I="],
    ["xiaoyi-secret-key", "1785024000000", "rBiSv+0iYT8NxcMGavPxZTwQTwGf6XejK68CexsG2CI="],
  ])("of %s at %s is the published one", (secret, timestamp, sign) => {
    expect(signTimestamp(secret, timestamp)).toBe(sign);
    expect(verifySignature(secret, { timestamp, sign }, Number(timestamp))).toBe("good");
  });

  const now = 1_785_024_000_000;
  const signedAt = (at: number, secret = "secret") => ({
    timestamp: String(at),
    sign: signTimestamp(secret, String(at)),
  });

  it.each([
    [0, "good"],
    [SIGNATURE_WINDOW_MS - 1, "good"],
    [1 - SIGNATURE_WINDOW_MS, "good"],
    [SIGNATURE_WINDOW_MS, "stale"],
    [-SIGNATURE_WINDOW_MS, "stale"],
  ])("%i ms away is %s", (distance, verdict) => {
    expect(verifySignature("secret", signedAt(now + distance), now)).toBe(verdict);
  });

  it.each([
    ["another key's", signedAt(now, "other")],
    ["another time's", { ...signedAt(now), timestamp: String(now + 1) }],
    ["none", { timestamp: String(now), sign: undefined }],
    ["without a time", { timestamp: undefined, sign: signTimestamp("secret", "") }],
    ["of no number", { timestamp: "soon", sign: signTimestamp("secret", "soon") }],
    ["of a number in another form", { timestamp: "1e12", sign: signTimestamp("secret", "1e12") }],
    ["empty", { timestamp: String(now), sign: "" }],
  ])("%s is wrong", (_name, signed) => {
    expect(verifySignature("secret", signed, now)).toBe("wrong");
  });

  it("of a stranger is wrong, however old", () => {
    expect(verifySignature("secret", signedAt(0, "other"), now)).toBe("wrong");
  });
});

describe("secrets", () => {
  it("are the same or not, whatever their lengths", () => {
    expect(secretsEqual("abc", "abc")).toBe(true);
    expect(secretsEqual("abc", "abcd")).toBe(false);
    expect(secretsEqual("", "abc")).toBe(false);
  });
});
