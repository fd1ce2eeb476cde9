import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { loadSigningKey, toPublicJwk } from "./keys.ts";

const folder = await mkdtemp(join(tmpdir(), "signing-key-"));
afterAll(() => rm(folder, { recursive: true }));

const keyFile = join(folder, "key");
const pem = (key: KeyObject) => key.export({ type: "pkcs8", format: "pem" });
const rsa = (modulusLength: number) => generateKeyPairSync("rsa", { modulusLength }).privateKey;
const p256 = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;

async function load(text: string | Buffer) {
  await writeFile(keyFile, text);
  return loadSigningKey({ keyFile, kid: "k" });
}

describe("a signing key", () => {
  it.each([
    ["ES256", pem(p256)],
    ["ES256", JSON.stringify(p256.export({ format: "jwk" }))],
    ["ES256", p256.export({ type: "sec1", format: "pem" })],
    ["EdDSA", pem(generateKeyPairSync("ed25519").privateKey)],
    ["RS256", rsa(2048).export({ type: "pkcs1", format: "pem" })],
  ])("for %s is read, and only its public half is published", async (alg, text) => {
    const published = toPublicJwk(await load(text));
    expect(published).toMatchObject({ kid: "k", alg, use: "sig" });
    for (const secret of ["d", "p", "q", "dp", "dq", "qi"]) expect(published).not.toHaveProperty(secret);
  });

  it.each([
    ["of another curve", pem(generateKeyPairSync("ec", { namedCurve: "P-384" }).privateKey)],
    ["that is too short", pem(rsa(1024))],
  ])("%s is refused", async (_, text) => {
    await expect(load(text)).rejects.toThrow("signs with none of ES256 (P-256), EdDSA (Ed25519) and RS256");
  });

  it.each(["", "{}", "{", "-----BEGIN PRIVATE KEY-----\nplanted\n-----END PRIVATE KEY-----"])(
    "is not found in %j, which is not repeated",
    async (text) => {
      const error: unknown = await load(text).catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ name: "KeyError", message: expect.stringContaining("holds no private key") });
      expect(String(error)).not.toContain("planted");
    },
  );
});
