import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FlattenedSign } from "jose";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { JsonObject } from "../../model/json.ts";
import {
  createKeySource,
  KeyError,
  loadSigningKey,
  type PublicJwk,
  parsePublicKeys,
  type SigningAlgorithm,
  type SigningKey,
  toPublicJwk,
} from "./keys.ts";
import { canonicalJson, signCard } from "./sign-card.ts";
import { verifyCard } from "./verify-card.ts";

const PRIVATE: Record<SigningAlgorithm, KeyObject> = {
  ES256: generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey,
  EdDSA: generateKeyPairSync("ed25519").privateKey,
  RS256: generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey,
};
const keyFor = (alg: SigningAlgorithm, kid = "k-1"): SigningKey => ({ kid, alg, privateKey: PRIVATE[alg] });
const CARD: JsonObject = {
  name: "Écho 中文 \u{1f602}",
  description: "Says it again.",
  version: "1.0.0",
  supportedInterfaces: [{ url: "https://a.example", protocolBinding: "JSONRPC", protocolVersion: "1.0" }],
  capabilities: { streaming: false },
  defaultInputModes: ["text/plain"],
  defaultOutputModes: ["text/plain"],
  skills: [{ id: "echo", name: "Echo", description: "Again.", tags: ["t"] }],
};
const signed = (card: JsonObject, ...keys: SigningKey[]): JsonObject => ({
  ...card,
  signatures: keys.flatMap((key) => signCard(card, key)).map((signature) => ({ ...signature })),
});
const pin = (...keys: SigningKey[]) => createKeySource({ keys: keys.map((key) => toPublicJwk(key) as PublicJwk) });
const known = new Set([...Object.keys(CARD), "securitySchemes", "securityRequirements"]);
/** As 1.0 would write it: members it does not know are not part of the card. */
const normalise = (document: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(document).filter(([name]) => known.has(name)));
const check = (card: unknown, keys = pin(keyFor("ES256"))) => verifyCard(JSON.stringify(card), { keys, normalise });

describe("a signed card", () => {
  it.each(["ES256", "EdDSA", "RS256"] as const)("is verified: %s", async (alg) => {
    const key = keyFor(alg);
    const [signature] = signCard(CARD, key);
    expect(JSON.parse(Buffer.from(signature?.protected ?? "", "base64url").toString())).toEqual({
      alg,
      kid: "k-1",
      typ: "JOSE",
    });
    expect(await check(signed(CARD, key), pin(key))).toEqual({
      status: "verified",
      kid: "k-1",
      alg,
      document: CARD,
      uncovered: [],
    });
  });

  it("is verified whatever the order of its members, and with white space", async () => {
    const document = signed(CARD, keyFor("ES256"));
    const reversed = Object.fromEntries(Object.entries(document).reverse());
    const text = JSON.stringify(reversed, null, 2);
    expect(await verifyCard(text, { keys: pin(keyFor("ES256")), normalise })).toMatchObject({ status: "verified" });
  });

  it("[CARD-SIGN-004] is not verified once any member changed", async () => {
    const document = signed(CARD, keyFor("ES256"));
    for (const [name, changed] of Object.entries({
      name: "Evil",
      version: "1.0.1",
      capabilities: { streaming: true },
    })) {
      expect(await check({ ...document, [name]: changed })).toMatchObject({ status: "invalid" });
    }
    const { description: _, ...less } = document;
    expect(await check(less)).toMatchObject({ status: "invalid" });
  });

  it("covers only what was signed: members beside it are not relied on", async () => {
    const document = { ...signed(CARD, keyFor("ES256")), url: "https://evil.example", protocolVersion: "0.3.0" };
    const uncovered = ["url", "protocolVersion"];
    expect(await check(document)).toMatchObject({ status: "verified", document: CARD, uncovered });
  });

  it("[CARD-SIGN-002] needs one of several signatures, for keys that are rotated", async () => {
    const old = { ...keyFor("RS256", "old") };
    const document = signed(CARD, old, keyFor("ES256", "new"));
    expect(await check(document, pin(keyFor("ES256", "new")))).toMatchObject({ status: "verified", kid: "new" });
    expect(await check(document, pin(old))).toMatchObject({ status: "verified", kid: "old" });
    expect(await check(document, pin(keyFor("EdDSA", "other")))).toMatchObject({ status: "unverifiable" });
  });

  it("has a second signature where libraries disagree about what is empty", async () => {
    const card = { ...CARD, description: "", skills: [] };
    const signatures = signCard(card, keyFor("ES256"));
    expect(signatures).toHaveLength(2);
    expect(signCard(CARD, keyFor("ES256"))).toHaveLength(1);
    const { description: _, skills: __, ...full } = card;
    const documents = [card, full];
    for (const [at, signature] of signatures.entries()) {
      const verification = await check({ ...card, signatures: [{ ...signature }] });
      expect(verification).toMatchObject({ status: "verified", uncovered: [] });
      expect("document" in verification && verification.document).toEqual(documents[at]);
    }
  });

  it("has security schemes only where its signature covers them", async () => {
    const card = { ...CARD, securitySchemes: { key: { apiKeySecurityScheme: { location: "header", name: "X-Key" } } } };
    const [whole, schemeless, ...others] = signCard(card, keyFor("ES256"));
    expect(others).toEqual([]);
    const verified = (signature: object | undefined) => check({ ...card, signatures: [{ ...signature }] });
    const outcome = { status: "verified", kid: "k-1", alg: "ES256" };
    expect(await verified(whole)).toEqual({ ...outcome, document: card, uncovered: [] });
    expect(await verified(schemeless)).toEqual({ ...outcome, document: CARD, uncovered: ["securitySchemes"] });
  });
});

describe("a requirement without scopes", () => {
  const card: JsonObject = {
    ...CARD,
    securitySchemes: {
      key: { apiKeySecurityScheme: { location: "header", name: "X-Key" } },
      query: { apiKeySecurityScheme: { location: "query", name: "key" } },
    },
    securityRequirements: [{ schemes: { key: {} } }],
  };
  const document = signed(card, keyFor("ES256"));

  it("is relied on where it was signed, in whatever order the signatures are", async () => {
    const { signatures } = document;
    const reversed = Array.isArray(signatures) ? signatures.toReversed() : [];
    expect(await check({ ...document, signatures: reversed })).toMatchObject({ document: card, uncovered: [] });
  });

  it.each([
    ["another", [{ schemes: { query: {} } }]],
    ["none", [{ schemes: {} }]],
  ])("is not relied on where it was replaced by %s", async (_, securityRequirements) => {
    const verification = await check({ ...document, securityRequirements });
    expect(verification).toMatchObject({ status: "verified", uncovered: ["securityRequirements"] });
    expect(verification).not.toHaveProperty("document.securityRequirements");
    expect(verification).toHaveProperty("document.securitySchemes", card.securitySchemes);
  });
});

describe("what is not verified", () => {
  const signWith = async (header: Record<string, unknown>, payload = canonicalJson(CARD)) => {
    const jws = await new FlattenedSign(Buffer.from(payload))
      .setProtectedHeader(header as { alg: string })
      .sign(PRIVATE.ES256, header.crit === undefined ? {} : { crit: { "urn:x": true } });
    return { protected: jws.protected ?? "", signature: jws.signature };
  };
  const reasonOf = async (card: unknown, keys = pin(keyFor("ES256"))) => {
    const outcome = await check(card, keys);
    return [outcome.status, "reason" in outcome ? outcome.reason : ""];
  };

  it("has no signature", async () => {
    expect(await check(CARD)).toEqual({ status: "absent" });
    expect(await check({ ...CARD, signatures: [] })).toEqual({ status: "absent" });
  });

  it("[CARD-SIGN-003] lacks kid or typ", async () => {
    for (const header of [
      { alg: "ES256", typ: "JOSE" },
      { alg: "ES256", kid: "k-1" },
      { alg: "ES256", kid: "", typ: "JOSE" },
    ]) {
      expect((await check({ ...CARD, signatures: [await signWith(header)] })).status).toBe("invalid");
    }
  });

  it("uses an algorithm that is not allowed, or demands what is not known", async () => {
    const encode = (header: object) => Buffer.from(JSON.stringify(header)).toString("base64url");
    const none = { protected: encode({ alg: "none", kid: "k-1", typ: "JOSE" }), signature: "" };
    const shared = { protected: encode({ alg: "HS256", kid: "k-1", typ: "JOSE" }), signature: "AAAA" };
    for (const signature of [none, shared]) {
      expect((await check({ ...CARD, signatures: [signature] })).status).toBe("unverifiable");
    }
    const crit = await signWith({ alg: "ES256", kid: "k-1", typ: "JOSE", crit: ["urn:x"], "urn:x": 1 });
    expect((await check({ ...CARD, signatures: [crit] })).status).toBe("unverifiable");
  });

  it("says what its key is only in the unprotected header", async () => {
    const { signature, protected: header } = await signWith({ alg: "ES256", typ: "JOSE" });
    const entry = { protected: header, signature, header: { kid: "k-1" } };
    expect((await check({ ...CARD, signatures: [entry] })).status).toBe("invalid");
  });

  it.each([
    ["signatures that are no list", { signatures: {} }],
    ["a signature that is none", { signatures: ["x"] }],
    ["a signature without its parts", { signatures: [{ protected: "e30" }] }],
    ["a header that is no base64url", { signatures: [{ protected: "!", signature: "AA" }] }],
    ["a header that is no JSON", { signatures: [{ protected: "AAAA", signature: "AA" }] }],
  ])("has %s", async (_, members) => {
    expect((await reasonOf({ ...CARD, ...members }))[0]).toBe("invalid");
  });

  it("names a member twice, is no object or no JSON", async () => {
    const text = JSON.stringify(signed(CARD, keyFor("ES256")));
    const twice = text.replace('{"name"', '{"name":"Other","name"');
    for (const wrong of [twice, "[]", "{", '"x"']) {
      expect((await verifyCard(wrong, { keys: pin(keyFor("ES256")), normalise })).status).toBe("invalid");
    }
  });

  it("is signed by a key that has expired, was revoked or is for something else", async () => {
    const document = signed(CARD, keyFor("ES256"));
    const jwk = toPublicJwk(keyFor("ES256"));
    const now = () => 2_000_000;
    const status = async (more: object) => {
      const keys = createKeySource({ keys: [{ ...jwk, ...more } as PublicJwk], now });
      return (await check(document, keys)).status;
    };
    expect(await status({ exp: 2_001 })).toBe("verified");
    for (const more of [
      { exp: 2_000 },
      { exp: "soon" },
      { revoked: {} },
      { use: "enc" },
      { key_ops: ["sign"] },
      { alg: "RS256" },
    ]) {
      expect(await status(more)).toBe("unverifiable");
    }
  });
});

describe("keys at an address the signature names", () => {
  const key = { ...keyFor("ES256"), jku: "https://keys.example/jwks.json" };
  const document = signed(CARD, key);
  const asked: string[] = [];
  const serving = (body: unknown, status = 200): typeof globalThis.fetch => {
    return async (input) => {
      asked.push(String(input));
      return new Response(JSON.stringify(body), { status });
    };
  };
  const set = { keys: [toPublicJwk(key)] };

  it("are fetched from a pinned origin", async () => {
    const keys = createKeySource({ jkuOrigins: ["https://keys.example"], fetch: serving(set) });
    expect(await check(document, keys)).toMatchObject({ status: "verified" });
    expect(asked).toEqual(["https://keys.example/jwks.json"]);
  });

  it.each([
    ["no origin is pinned", [], "https://keys.example/jwks.json"],
    ["another one is", ["https://other.example"], "https://keys.example/jwks.json"],
    ["it is not encrypted", ["http://keys.example"], "http://keys.example/jwks.json"],
    ["it is no URL", ["https://keys.example"], "keys"],
  ])("are not asked for where %s", async (_, jkuOrigins, jku) => {
    asked.length = 0;
    const keys = createKeySource({ jkuOrigins, fetch: serving(set) });
    expect(await check(signed(CARD, { ...key, jku }), keys)).toMatchObject({ status: "unverifiable" });
    expect(asked).toEqual([]);
  });

  it.each([
    ["there is no set", {}, 200],
    ["it is missing", set, 404],
    ["it has other keys", { keys: [{ ...toPublicJwk(key), kid: "other" }] }, 200],
    ["it has a shared secret", { keys: [{ kty: "oct", kid: "k-1", k: "AAAA" }] }, 200],
  ])("prove nothing where %s", async (_, body, status) => {
    const keys = createKeySource({ jkuOrigins: ["https://keys.example"], fetch: serving(body, status) });
    expect(await check(document, keys)).toMatchObject({ status: "unverifiable" });
  });
});

describe("key files", () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "dragoman-keys-"));
  });
  afterAll(() => rm(folder, { recursive: true }));
  const file = async (text: string | Buffer): Promise<string> => {
    const keyFile = join(folder, "key");
    await writeFile(keyFile, text);
    return keyFile;
  };

  it.each(["ES256", "EdDSA", "RS256"] as const)("are PEM or JWK: %s", async (alg) => {
    const pem = PRIVATE[alg].export({ format: "pem", type: "pkcs8" });
    const jwk = JSON.stringify(PRIVATE[alg].export({ format: "jwk" }));
    for (const text of [pem, jwk]) {
      const key = await loadSigningKey({ keyFile: await file(text), kid: "k-1" });
      expect(key.alg).toBe(alg);
      expect(await check(signed(CARD, key), pin(keyFor(alg)))).toMatchObject({ status: "verified" });
    }
  });

  it("are refused without a word of what is in them", async () => {
    const small = generateKeyPairSync("rsa", { modulusLength: 1024 }).privateKey.export({
      format: "pem",
      type: "pkcs8",
    });
    const other = generateKeyPairSync("ec", { namedCurve: "secp256k1" }).privateKey.export({
      format: "pem",
      type: "pkcs8",
    });
    const locked = PRIVATE.ES256.export({ format: "pem", type: "pkcs8", cipher: "aes-256-cbc", passphrase: "p" });
    for (const text of [small, other, locked, "planted secret", '{"planted":"secret"}']) {
      const error: unknown = await loadSigningKey({ keyFile: await file(text), kid: "k" }).catch(
        (error: unknown) => error,
      );
      expect(error).toBeInstanceOf(KeyError);
      expect(String(error)).not.toContain("planted secret");
    }
    const pem = PRIVATE.ES256.export({ format: "pem", type: "pkcs8" });
    await expect(loadSigningKey({ keyFile: await file(pem), kid: "k", alg: "RS256" })).rejects.toThrow(
      "made for ES256",
    );
    await expect(loadSigningKey({ keyFile: join(folder, "none"), kid: "k" })).rejects.toThrow(
      "could not be read (ENOENT)",
    );
  });

  it("hold nothing private in what is published", () => {
    for (const alg of ["ES256", "EdDSA", "RS256"] as const) {
      const names = Object.keys(toPublicJwk(keyFor(alg)));
      for (const secret of ["d", "p", "q", "dp", "dq", "qi", "k"]) expect(names).not.toContain(secret);
    }
  });

  it("of the public kind are a set, a key or a PEM", () => {
    const jwk = toPublicJwk(keyFor("ES256"));
    expect(parsePublicKeys(JSON.stringify({ keys: [jwk] }), "x")).toEqual([jwk]);
    expect(parsePublicKeys(JSON.stringify(jwk), "x")).toEqual([jwk]);
    const [fromPem] = parsePublicKeys(String(PRIVATE.ES256.export({ format: "pem", type: "pkcs8" })), "x");
    expect(fromPem).toEqual({ kty: "EC", crv: "P-256", x: jwk.x, y: jwk.y, alg: "ES256" });
    expect(() => parsePublicKeys("nothing", "The file x")).toThrow("The file x holds no public key");
  });
});
