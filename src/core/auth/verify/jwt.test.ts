import { exportJWK, generateKeyPair, type JWK, SignJWT, UnsecuredJWT } from "jose";
import { beforeAll, describe, expect, it } from "vitest";
import type { Caller } from "../../model/caller.ts";
import { SILENT_LOG } from "../../model/ports.ts";
import { createJwtCheck, type JwtOptions } from "./jwt.ts";

const ISSUER = "https://id.example.com/realm";
const OPENID = `${ISSUER}/.well-known/openid-configuration`;
const OAUTH = "https://id.example.com/.well-known/oauth-authorization-server/realm";
const KEYS = "https://id.example.com/keys";
const NOW = Date.parse("2026-01-01T00:00:00Z");

type Pair = Awaited<ReturnType<typeof generateKeyPair>>;
let pair: Pair;
let next: Pair;
let rsa: Pair;

beforeAll(async () => {
  [pair, next, rsa] = await Promise.all([generateKeyPair("ES256"), generateKeyPair("ES256"), generateKeyPair("RS256")]);
});

/** An issuer that can be told what to answer, and counts how often it was asked. */
class Issuer {
  now = NOW;
  readonly asked: string[] = [];
  readonly documents = new Map<string, unknown>([[OPENID, { issuer: ISSUER, jwks_uri: KEYS }]]);

  static async with(...keys: readonly (readonly [Pair, string])[]): Promise<Issuer> {
    const issuer = new Issuer();
    await issuer.publish(...keys);
    return issuer;
  }

  async publish(...keys: readonly (readonly [Pair, string])[]): Promise<void> {
    const all = keys.map(async ([{ publicKey }, kid]): Promise<JWK> => ({ ...(await exportJWK(publicKey)), kid }));
    this.documents.set(KEYS, { keys: await Promise.all(all) });
  }

  check(options: Partial<JwtOptions> = {}): (token: string) => Promise<Caller | undefined> {
    const check = createJwtCheck(
      { issuer: ISSUER, audience: "dragoman", ...options },
      {
        fetch: async (url) => {
          this.asked.push(url);
          const document = this.documents.get(url);
          return document === undefined ? new Response("", { status: 404 }) : Response.json(document);
        },
        now: () => this.now,
        log: SILENT_LOG,
      },
    );
    return async (token) => check(token);
  }

  count(url: string): number {
    return this.asked.filter((one) => one === url).length;
  }
}

interface Header {
  readonly alg?: string;
  readonly kid?: string;
  readonly typ?: string;
}

const SECONDS = NOW / 1_000;
type Claims = Readonly<Record<string, unknown>>;

const CLAIMS = { iss: ISSUER, aud: "dragoman", sub: "alice", exp: SECONDS + 300 };

function tokenOf(claims: Claims = {}, header: Header = {}, by: Pair = pair): Promise<string> {
  return new SignJWT({ ...CLAIMS, ...claims })
    .setProtectedHeader({ alg: "ES256", kid: "one", ...header })
    .sign(by.privateKey);
}

const wrong = (message: RegExp) =>
  expect.objectContaining({ code: "UNAUTHENTICATED", problem: "wrong-token", message: expect.stringMatching(message) });

describe("a token", () => {
  it("lets its owner in with its scopes", async () => {
    const check = (await Issuer.with([pair, "one"])).check();
    expect(await check(await tokenOf({ scope: "read write", scp: ["admin", "read"] }))).toEqual({
      owner: "alice",
      authenticated: true,
      scopes: ["read", "write", "admin"],
      expires: (SECONDS + 300) * 1_000 + 30_000,
    });
  });

  it("names its owner in the claim that is looked at", async () => {
    const check = (await Issuer.with([pair, "one"])).check({ ownerClaim: "https://example.com/account" });
    expect(await check(await tokenOf({ "https://example.com/account": "acme" }))).toMatchObject({ owner: "acme" });
    await expect(check(await tokenOf())).rejects.toEqual(wrong(/has no owner in/));
  });

  it.each<[string, Claims, Header, RegExp]>([
    ["of another issuer", { iss: "https://evil.example" }, {}, /"iss" does not fit/],
    ["for someone else", { aud: "other" }, {}, /"aud" does not fit/],
    ["for nobody", { aud: undefined }, {}, /has no "aud"/],
    ["that has expired", { exp: SECONDS - 31 }, {}, /has expired/],
    ["that never expires", { exp: undefined }, {}, /has no "exp"/],
    ["of the future", { nbf: SECONDS + 31 }, {}, /not valid yet/],
    ["of nobody", { sub: undefined }, {}, /has no owner in/],
    ["whose owner is no text", { sub: 7 }, {}, /has no owner in/],
    ["whose owner has control characters", { sub: "alice\u0000" }, {}, /has no owner in/],
    ["of the anonymous", { sub: "anonymous" }, {}, /has no owner in/],
    ["that is a logout token", {}, { typ: "logout+jwt" }, /not an access token/],
    ["of an unknown key", {}, { kid: "two" }, /not valid/],
  ])("%s is refused", async (_what, claims, header, message) => {
    const check = (await Issuer.with([pair, "one"])).check();
    await expect(check(await tokenOf(claims, header))).rejects.toEqual(wrong(message));
  });

  it("may be off by the skew of clocks", async () => {
    const check = (await Issuer.with([pair, "one"])).check();
    expect(await check(await tokenOf({ exp: SECONDS - 29, nbf: SECONDS + 29 }))).toMatchObject({ owner: "alice" });
    const exact = (await Issuer.with([pair, "one"])).check({ clockSkew: 0 });
    await expect(exact(await tokenOf({ exp: SECONDS - 1 }))).rejects.toEqual(wrong(/has expired/));
  });

  it("may be for several, and any of several audiences will do", async () => {
    const check = (await Issuer.with([pair, "one"])).check({ audience: ["dragoman", "https://agents.example.com"] });
    expect(await check(await tokenOf({ aud: ["x", "https://agents.example.com"] }))).toMatchObject({ owner: "alice" });
  });

  it("is refused without a signature, and with one that anyone can make", async () => {
    const check = (await Issuer.with([pair, "one"])).check();
    const unsigned = new UnsecuredJWT(CLAIMS).encode();
    // An empty signature does not even look like a token.
    expect(await check(unsigned)).toBeUndefined();
    await expect(check(`${unsigned}AAAA`)).rejects.toEqual(wrong(/not valid/));
    const known = Buffer.from(JSON.stringify(await exportJWK(pair.publicKey)));
    const hmac = await new SignJWT(CLAIMS).setProtectedHeader({ alg: "HS256", kid: "one" }).sign(known);
    await expect(check(hmac)).rejects.toEqual(wrong(/not valid/));
    const changed = (await tokenOf()).split(".");
    changed[1] = Buffer.from(JSON.stringify({ ...CLAIMS, sub: "bob" })).toString("base64url");
    await expect(check(changed.join("."))).rejects.toEqual(wrong(/not valid/));
  });

  it("is refused by an algorithm that is not on the list", async () => {
    const issuer = await Issuer.with([rsa, "one"]);
    const token = await tokenOf({}, { alg: "RS256" }, rsa);
    expect(await issuer.check({ algorithms: ["RS256"] })(token)).toMatchObject({ owner: "alice" });
    await expect(issuer.check({ algorithms: ["ES256"] })(token)).rejects.toEqual(wrong(/not valid/));
  });

  it("is checked once and then known, until it expires", async () => {
    const issuer = await Issuer.with([pair, "one"]);
    const check = createJwtCheck(
      { issuer: ISSUER, audience: "dragoman", clockSkew: 0 },
      { fetch: async (url) => Response.json(issuer.documents.get(url)), now: () => issuer.now, log: SILENT_LOG },
    );
    const token = await tokenOf({ exp: SECONDS + 30 });
    expect(check(token)).toBeInstanceOf(Promise);
    await check(token);
    expect(check(token)).toMatchObject({ owner: "alice" });
    issuer.now += 30_000;
    await expect(check(token)).rejects.toEqual(wrong(/has expired/));
  });
});

describe("the keys of an issuer", () => {
  it("are found by discovery, in either form, or where the configuration says", async () => {
    const openid = await Issuer.with([pair, "one"]);
    await openid.check()(await tokenOf());
    expect(openid.asked).toEqual([OPENID, KEYS]);

    const oauth = await Issuer.with([pair, "one"]);
    oauth.documents.delete(OPENID);
    oauth.documents.set(OAUTH, { issuer: ISSUER, jwks_uri: KEYS });
    await oauth.check()(await tokenOf());
    expect(oauth.asked).toEqual([OPENID, OAUTH, KEYS]);

    const given = await Issuer.with([pair, "one"]);
    await given.check({ jwksUrl: KEYS })(await tokenOf());
    expect(given.asked).toEqual([KEYS]);
  });

  it.each([
    ["another issuer's metadata", { issuer: "https://evil.example", jwks_uri: KEYS }],
    ["keys in the open", { issuer: ISSUER, jwks_uri: "http://id.example.com/keys" }],
    ["no keys", { issuer: ISSUER }],
    ["no object", []],
  ])("are not taken from %s", async (_what, document) => {
    const issuer = await Issuer.with([pair, "one"]);
    issuer.documents.set(OPENID, document);
    await expect(issuer.check()(await tokenOf())).rejects.toMatchObject({ code: "UNAVAILABLE", retryAfter: 5 });
    expect(issuer.count(KEYS)).toBe(0);
  });

  it("are kept, and read again after a while", async () => {
    const issuer = await Issuer.with([pair, "one"]);
    const check = issuer.check();
    await check(await tokenOf());
    await check(await tokenOf({ jti: "2" }));
    expect(issuer.count(KEYS)).toBe(1);
    issuer.now += 600_001;
    await check(await tokenOf({ exp: SECONDS + 3_600 }));
    expect(issuer.count(KEYS)).toBe(2);
  });

  it("are read once for many who come at the same time", async () => {
    const issuer = await Issuer.with([pair, "one"]);
    const check = issuer.check();
    const tokens = await Promise.all(Array.from({ length: 20 }, (_, at) => tokenOf({ jti: String(at) })));
    await Promise.all(tokens.map(check));
    expect(issuer.count(KEYS)).toBe(1);
  });

  it("are read again for a key that is not among them, but not as often as anyone likes", async () => {
    const issuer = await Issuer.with([pair, "one"]);
    const check = issuer.check();
    await check(await tokenOf());
    await issuer.publish([pair, "one"], [next, "two"]);
    const rotated = await tokenOf({}, { kid: "two" }, next);
    await expect(check(rotated)).rejects.toEqual(wrong(/not valid/));
    issuer.now += 30_000;
    expect(await check(rotated)).toMatchObject({ owner: "alice" });
    expect(issuer.count(KEYS)).toBe(2);
    for (let at = 0; at < 10; at++)
      await expect(check(await tokenOf({}, { kid: `x${at}` }))).rejects.toEqual(wrong(/./));
    expect(issuer.count(KEYS)).toBe(2);
  });

  it("are no longer good once they were withdrawn", async () => {
    const issuer = await Issuer.with([pair, "one"]);
    const check = issuer.check();
    const token = await tokenOf({ exp: SECONDS + 3_600 });
    await check(token);
    await issuer.publish([next, "two"]);
    issuer.now += 600_001;
    await expect(check(token)).rejects.toEqual(wrong(/not valid/));
  });

  it("stay in use while the issuer cannot be reached, which is asked again only now and then", async () => {
    const issuer = await Issuer.with([pair, "one"]);
    const check = issuer.check();
    await check(await tokenOf());
    issuer.documents.clear();
    issuer.now += 600_001;
    const later = { exp: SECONDS + 200_000 };
    expect(await check(await tokenOf(later))).toMatchObject({ owner: "alice" });
    const asked = issuer.asked.length;
    expect(await check(await tokenOf({ ...later, jti: "2" }))).toMatchObject({ owner: "alice" });
    expect(issuer.asked.length).toBe(asked);
    issuer.now += 86_400_000;
    await expect(check(await tokenOf({ ...later, jti: "3" }))).rejects.toMatchObject({ code: "UNAVAILABLE" });
  });

  it("that cannot be had are no fault of the caller", async () => {
    const issuer = new Issuer();
    const check = issuer.check();
    await expect(check(await tokenOf())).rejects.toMatchObject({ code: "UNAVAILABLE" });
    const asked = issuer.asked.length;
    await expect(check(await tokenOf())).rejects.toMatchObject({ code: "UNAVAILABLE" });
    expect(issuer.asked.length).toBe(asked);
    await issuer.publish([pair, "one"]);
    issuer.now += 5_000;
    expect(await check(await tokenOf())).toMatchObject({ owner: "alice" });
  });

  it("are not read without end", async () => {
    const check = createJwtCheck(
      { issuer: ISSUER, audience: "dragoman", jwksUrl: KEYS },
      { fetch: async () => new Response(new Uint8Array(1024 * 1024 + 1)), now: () => NOW, log: SILENT_LOG },
    );
    await expect(check(await tokenOf())).rejects.toMatchObject({ code: "UNAVAILABLE" });
  });
});

describe("forged tokens while the issuer is slow", () => {
  it("wait in a bounded number, and not at the cost of tokens that were good before", async () => {
    let now = NOW;
    let isSlow = false;
    const { publicKey } = pair;
    const keys = { keys: [{ ...(await exportJWK(publicKey)), kid: "one" }] };
    const check = createJwtCheck(
      { issuer: ISSUER, audience: "dragoman", jwksUrl: KEYS },
      {
        fetch: async () => (isSlow ? new Promise<Response>(() => {}) : Response.json(keys)),
        now: () => now,
        log: SILENT_LOG,
      },
    );
    const good = await tokenOf();
    expect(await check(good)).toMatchObject({ owner: "alice" });
    // The token has to be checked again, and tokens of unknown keys wait for the issuer.
    now += 120_000;
    isSlow = true;
    const forged = await tokenOf({}, { kid: "two" });
    const waiting: unknown[] = [];
    const flood = () => {
      for (let sent = 0; sent < 1_000; sent++) waiting.push(check(forged));
    };
    expect(flood).toThrow(expect.objectContaining({ code: "RESOURCE_EXHAUSTED" }));
    expect(waiting.length).toBeLessThan(500);
    expect(await check(good)).toMatchObject({ owner: "alice" });
  });
});
