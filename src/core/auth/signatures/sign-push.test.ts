import { generateKeyPairSync } from "node:crypto";
import fc from "fast-check";
import { createLocalJWKSet, type JWK } from "jose";
import { describe, expect, it } from "vitest";
import { type SigningKey, toPublicJwk } from "./keys.ts";
import { createPushToken, findPushTokenProblem, signPush, verifyPushSignature } from "./sign-push.ts";

const NOW = Date.UTC(2026, 0, 1);
const SECRET = "shared";
const URL_HERE = "https://hooks.example.com/alice?x=1";
const PUSH = { url: URL_HERE, body: "body" };

describe("a push signature", () => {
  it("is valid for any body, for as long as clocks may differ", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.integer({ min: -300_000, max: 300_000 }), (body, later) => {
        const header = signPush(SECRET, { url: URL_HERE, body }, NOW);
        expect(verifyPushSignature(header, SECRET, { url: URL_HERE, body }, NOW + later)).toBe("valid");
      }),
    );
  });

  it("[PUSH-RECEIVER-001] is not valid for another body, secret, time or receiver", () => {
    const header = signPush(SECRET, PUSH, NOW);
    expect(verifyPushSignature(header, SECRET, { ...PUSH, body: "bod" }, NOW)).toBe("wrong");
    expect(verifyPushSignature(header, "other", PUSH, NOW)).toBe("wrong");
    for (const url of ["https://hooks.example.com/bob?x=1", "https://hooks.example.com/alice", "http://127.0.0.1/"]) {
      expect(verifyPushSignature(header, SECRET, { ...PUSH, url }, NOW)).toBe("wrong");
    }
    expect(verifyPushSignature(header, SECRET, { ...PUSH, url: `${URL_HERE}#part` }, NOW)).toBe("valid");
    expect(verifyPushSignature(header, SECRET, PUSH, NOW + 302_000)).toBe("stale");
    expect(verifyPushSignature(header, SECRET, PUSH, NOW - 302_000)).toBe("stale");
    expect(verifyPushSignature(header.replace(/t=\d+/, "t=1767225601"), SECRET, PUSH, NOW)).toBe("wrong");
    expect(verifyPushSignature(undefined, SECRET, PUSH, NOW)).toBe("absent");
  });

  it("may stand beside others, and never throws for what is none", () => {
    const [, digest] = signPush(SECRET, PUSH, NOW).split(",");
    const header = `t=${NOW / 1_000}, v1=${"0".repeat(64)}, ${digest}, v0=old`;
    expect(verifyPushSignature(header, SECRET, PUSH, NOW)).toBe("valid");
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^t=\d*,v1=[0-9a-f]{0,70}$/)), (text) => {
        expect(["malformed", "wrong"]).toContain(verifyPushSignature(text, SECRET, PUSH, NOW));
      }),
    );
  });
});

describe("a push token", () => {
  const newKey = (): SigningKey => {
    const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    return { kid: "k1", alg: "ES256", privateKey };
  };
  const key = newKey();
  const claims = {
    issuer: "https://us.example",
    audience: "https://them.example",
    taskId: "t",
    body: "b",
    id: "1",
    now: NOW,
  };
  const expected = { audience: "https://them.example", issuer: "https://us.example", body: "b", now: NOW };

  it("says who sends what to whom, for a while", async () => {
    const keys = createLocalJWKSet({ keys: [toPublicJwk(key) as JWK] });
    const token = await createPushToken(key, claims);
    expect(await findPushTokenProblem(token, { keys, ...expected })).toBeUndefined();
    expect(await findPushTokenProblem(token, { keys, ...expected, body: "c" })).toBe("it was made for another body");
    expect(await findPushTokenProblem(token, { keys, ...expected, audience: "https://x.example" })).toMatch(/"aud"/);
    expect(await findPushTokenProblem(token, { keys, ...expected, issuer: "https://x.example" })).toMatch(/"iss"/);
    expect(await findPushTokenProblem(token, { keys, ...expected, now: NOW + 400_000 })).toMatch(/"exp"/);
    expect(await findPushTokenProblem("no.token.at.all", { keys, ...expected })).toMatch(/JWS|JWT/);
    expect(await findPushTokenProblem(await createPushToken(newKey(), claims), { keys, ...expected })).toMatch(
      /signature/,
    );
  });
});
