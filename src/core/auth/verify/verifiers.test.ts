import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Caller } from "../../model/caller.ts";
import { SILENT_LOG } from "../../model/ports.ts";
import type { PeerCertificate } from "../../wire/tls.ts";
import type { CredentialsError, RequestCredentials, Verifier } from "./contract.ts";
import { type AuthOptions, createAuthenticator } from "./create-authenticator.ts";
import { SecretMap } from "./verifiers.ts";

const NOW = Date.parse("2026-01-01T00:00:00Z");

const ALICE: Caller = { owner: "alice", authenticated: true };

function authenticatorOf(options: AuthOptions, failedLogins = 1_000, customVerifier?: Verifier) {
  let now = NOW;
  const authenticator = createAuthenticator(options, {
    fetch: () => Promise.reject(new Error("nothing is fetched here")),
    now: () => now,
    log: SILENT_LOG,
    failedLogins,
    customVerifier,
  });
  return Object.assign(authenticator, {
    pass(milliseconds: number) {
      now += milliseconds;
    },
  });
}

const presented = (
  headers: Record<string, string> = {},
  more: Partial<RequestCredentials> = {},
): RequestCredentials => ({
  headers,
  query: "",
  remoteAddress: "192.0.2.1",
  ...more,
});
const basic = (text: string) => ({ authorization: `Basic ${Buffer.from(text).toString("base64")}` });
const refusal = (problem: CredentialsError["problem"]) => expect.objectContaining({ code: "UNAUTHENTICATED", problem });

describe("API keys", () => {
  const options: AuthOptions = {
    apiKeys: [
      { key: "alice-old", owner: "alice" },
      { key: "alice-new", owner: "alice", scopes: ["write"] },
      { key: "bob-key", owner: "bob" },
    ],
    apiKey: { header: "X-Key", query: "key", cookie: "session" },
  };
  const authenticator = authenticatorOf(options);

  it.each([
    ["header", presented({ "x-key": "alice-old" }), "alice"],
    ["token", presented({ authorization: "Bearer bob-key" }), "bob"],
    ["token, the word in other case", presented({ authorization: "bearer  bob-key" }), "bob"],
    ["query", presented({}, { query: "a=1&key=bob-key" }), "bob"],
    ["cookie", presented({ cookie: 'other=1; session="bob-key"' }), "bob"],
  ])("as %s", (_where, request, owner) => {
    expect(authenticator.authenticate(request)).toMatchObject({ owner, authenticated: true });
  });

  it("may be several of one owner, of which the first counts", () => {
    const request = presented({ "x-key": "alice-new", authorization: "Bearer alice-old" }, { query: "key=alice-old" });
    expect(authenticator.authenticate(request)).toMatchObject({ owner: "alice", scopes: ["write"] });
  });

  it("have scopes, and those without have none", () => {
    expect(authenticator.authenticate(presented({ "x-key": "alice-new" }))).toMatchObject({ scopes: ["write"] });
    expect(authenticator.authenticate(presented({ "x-key": "alice-old" }))).toEqual({
      owner: "alice",
      authenticated: true,
    });
  });

  it.each([
    ["wrong", presented({ "x-key": "alice-ol" })],
    ["wrong", presented({ "x-key": "" })],
    ["wrong", presented({ "x-key": "alice-old, bob-key" })],
    ["wrong-token", presented({ authorization: "Bearer nobody" })],
    ["wrong-token", presented({ authorization: "Bearer" })],
    ["wrong", presented(basic("alice:x"))],
    ["wrong", presented({}, { query: "key=" })],
    ["wrong", presented({ "x-key": "alice-old", authorization: "Bearer bob-key" })],
    ["wrong", presented({ "x-key": "alice-old" }, { query: "key=bob-key" })],
    ["wrong", presented({}, { query: "key=alice-old&key=bob-key" })],
    ["wrong", presented({ cookie: "session=alice-old; session=bob-key" })],
    ["wrong-token", presented({ "x-key": "alice-old", authorization: "Bearer nobody" })],
    ["missing", presented({ "x-api-key": "alice-old" })],
    ["missing", presented({}, { query: "other=bob-key" })],
    ["missing", presented()],
  ] as const)("%s: %j", (problem, request) => {
    expect(() => authenticator.authenticate(request)).toThrow(refusal(problem));
  });

  it("are found whatever they are made of, and nothing else is", () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.string({ minLength: 1 }), { minLength: 1 }), fc.string(), (keys, other) => {
        const secrets = new SecretMap(keys.map((key, at) => [key, at]));
        for (const [at, key] of keys.entries()) expect(secrets.find(key)).toBe(at);
        if (!keys.includes(other)) expect(secrets.find(other)).toBeUndefined();
      }),
    );
  });

  it("are refused as configured when they say nothing or say it twice", () => {
    expect(() => authenticatorOf({ apiKeys: [{ key: "", owner: "a" }] })).toThrow(/must not be empty/);
    const twice = {
      apiKeys: [
        { key: "s3cret", owner: "a" },
        { key: "s3cret", owner: "b" },
      ],
    };
    expect(() => authenticatorOf(twice)).toThrow(/^(?!.*s3cret).*there twice/);
    expect(() => authenticatorOf({ apiKeys: [{ key: "k", owner: "anonymous" }] })).toThrow(/not "anonymous"/);
  });
});

describe("Basic", () => {
  const authenticator = authenticatorOf({
    basic: [
      { user: "bob", password: "pass:word" },
      { user: "zoë", password: "größe", owner: "z" },
    ],
  });

  it("takes colons in passwords and text beyond ASCII", () => {
    expect(authenticator.authenticate(presented(basic("bob:pass:word")))).toMatchObject({ owner: "bob" });
    expect(authenticator.authenticate(presented(basic("zoë:größe")))).toMatchObject({ owner: "z" });
  });

  it.each([basic("bob:pass"), basic("bob"), basic(""), { authorization: "Basic" }, { authorization: "Basic !!!" }])(
    "refuses %j",
    (headers) => {
      expect(() => authenticator.authenticate(presented(headers))).toThrow(refusal("wrong"));
    },
  );
});

describe("client certificates", () => {
  const certificate: PeerCertificate = {
    verified: true,
    commonName: "worker",
    uris: ["spiffe://example.com/worker"],
    dnsNames: ["worker.example.com"],
    emails: [],
    expires: NOW + 1_000,
  };
  const by = (owner?: "uri" | "email" | "dns" | "cn") =>
    authenticatorOf({ mtls: { ca: "ca.pem", ...(owner && { owner }) } });
  const shown = (more: Partial<PeerCertificate> = {}) => presented({}, { certificate: { ...certificate, ...more } });

  it("name their owner where that is looked for", () => {
    expect(by().authenticate(shown())).toMatchObject({ owner: "spiffe://example.com/worker" });
    expect(by("dns").authenticate(shown())).toMatchObject({ owner: "worker.example.com" });
    expect(by("cn").authenticate(shown())).toMatchObject({ owner: "worker" });
    expect(by().authenticate(shown({ uris: [], dnsNames: [] }))).toMatchObject({ owner: "worker" });
  });

  it.each([
    ["of an authority that is not trusted", shown({ verified: false })],
    ["that has expired since the connection was made", shown({ expires: NOW })],
    ["without a date", shown({ expires: Number.NaN })],
  ])("are refused %s", (_what, request) => {
    expect(() => by().authenticate(request)).toThrow(refusal("wrong"));
  });

  it("are refused when they lack the name that is looked for", () => {
    expect(() => by("email").authenticate(shown())).toThrow(refusal("wrong"));
    expect(() => by("cn").authenticate(shown({ commonName: "anonymous" }))).toThrow(refusal("wrong"));
  });

  it("are not needed by who shows something else", () => {
    const both = authenticatorOf({ mtls: { ca: "ca.pem" }, apiKeys: [{ key: "k", owner: "alice" }] });
    expect(both.authenticate(presented({ "x-api-key": "k" }))).toMatchObject({ owner: "alice" });
  });

  it("belong to the connection, so that what a request shows counts more", () => {
    const both = authenticatorOf({ mtls: { ca: "ca.pem" }, apiKeys: [{ key: "k", owner: "alice" }] });
    expect(both.authenticate(presented({ "x-api-key": "k" }, { certificate }))).toMatchObject({ owner: "alice" });
  });
});

describe("several ways at once", () => {
  const options: AuthOptions = {
    apiKeys: [{ key: "k", owner: "alice" }],
    basic: [{ user: "bob", password: "p" }],
    jwt: { issuer: "https://id.example.com/", audience: "a" },
    mtls: { ca: "ca.pem" },
  };

  it("declare what they enforce", () => {
    const { schemes, requirements } = authenticatorOf(options);
    expect(schemes).toEqual({
      apiKey: { apiKeySecurityScheme: { location: "header", name: "X-API-Key" } },
      oidc: {
        openIdConnectSecurityScheme: {
          openIdConnectUrl: "https://id.example.com/.well-known/openid-configuration",
        },
      },
      bearer: { httpAuthSecurityScheme: { scheme: "Bearer" } },
      basic: { httpAuthSecurityScheme: { scheme: "Basic" } },
      mtls: { mtlsSecurityScheme: {} },
    });
    expect(requirements.map((requirement) => Object.keys(requirement.schemes))).toEqual([
      ["apiKey"],
      ["oidc"],
      ["bearer"],
      ["basic"],
      ["mtls"],
    ]);
  });

  it("declare that nothing is needed where that is so", () => {
    const open = authenticatorOf({ ...options, anonymous: true });
    expect(open.requirements.at(-1)).toEqual({ schemes: {} });
    expect(open.authenticate(presented())).toEqual({ owner: "anonymous", authenticated: false });
    expect(() => open.authenticate(presented({ authorization: "Digest x" }))).toThrow(refusal("wrong"));
    expect(() => open.authenticate(presented({ "x-api-key": "wrong" }))).toThrow(refusal("wrong"));
  });

  it("challenge by all that can be, and say what is wrong with a token", () => {
    const authenticator = authenticatorOf(options);
    const metadata = "https://a.example/.well-known/oauth-protected-resource";
    const challengeFor = (headers: Record<string, string>) => {
      try {
        void authenticator.authenticate(presented(headers));
      } catch (error) {
        return authenticator.challenge(error as CredentialsError, metadata);
      }
      return undefined;
    };
    const rest = 'Basic realm="dragoman", charset="UTF-8", ClientCertificate realm="dragoman"';
    expect(challengeFor({})).toBe(`Bearer realm="dragoman", resource_metadata="${metadata}", ${rest}`);
    expect(challengeFor({ authorization: "Bearer nobody" })).toBe(
      `Bearer realm="dragoman", error="invalid_token", error_description="The token is not valid.", resource_metadata="${metadata}", ${rest}`,
    );
  });
});

describe("a check of one's own that waits", () => {
  it("is pending in a bounded number, of which other addresses have their part", async () => {
    const finish: (() => void)[] = [];
    const verify = () => new Promise<Caller>((resolve) => finish.push(() => resolve(ALICE)));
    const { authenticate } = authenticatorOf({}, 1_000, { verify, schemes: {} });
    const from = (remoteAddress: string | undefined) => authenticate(presented({}, { remoteAddress }));
    const refused = expect.objectContaining({ code: "RESOURCE_EXHAUSTED", retryAfter: 1 });
    const pending: unknown[] = [];
    const fill = (address: string) => () => {
      for (;;) pending.push(from(address));
    };
    expect(fill("192.0.2.1")).toThrow(refused);
    expect(pending).toHaveLength(128);
    for (const other of ["192.0.2.2", "192.0.2.3", "192.0.2.4"]) expect(fill(other)).toThrow(refused);
    expect(pending).toHaveLength(128 + 64 + 32 + 16);
    pending.push(from("192.0.2.5"));
    for (const one of finish.splice(0)) one();
    expect(await Promise.all(pending)).toContainEqual(ALICE);
    pending.push(from("192.0.2.1"));
    expect(finish).toHaveLength(1);
  });
});

describe("guessing", () => {
  const options: AuthOptions = { apiKeys: [{ key: "k", owner: "alice" }] };
  const guess = (address: string) => presented({ "x-api-key": "guess" }, { remoteAddress: address });
  const right = (address: string) => presented({ "x-api-key": "k" }, { remoteAddress: address });

  it("is refused after so many times in a minute, for that address and that minute", () => {
    const authenticator = authenticatorOf(options, 3);
    for (let at = 0; at < 3; at++)
      expect(() => authenticator.authenticate(guess("192.0.2.1"))).toThrow(refusal("wrong"));
    authenticator.pass(20_000);
    const exhausted = expect.objectContaining({ code: "RESOURCE_EXHAUSTED", retryAfter: 40 });
    expect(() => authenticator.authenticate(guess("192.0.2.1"))).toThrow(exhausted);
    expect(() => authenticator.authenticate(guess("::ffff:192.0.2.1"))).toThrow(exhausted);
    // Others may have the same address, and one that guesses must not lock them out.
    expect(authenticator.authenticate(right("192.0.2.1"))).toMatchObject({ owner: "alice" });
    expect(() => authenticator.authenticate(guess("192.0.2.2"))).toThrow(refusal("wrong"));
    authenticator.pass(40_000);
    expect(() => authenticator.authenticate(guess("192.0.2.1"))).toThrow(refusal("wrong"));
  });

  it("from many addresses of one IPv6 network is guessing from one", () => {
    const authenticator = authenticatorOf(options, 2);
    for (const address of ["2001:db8::1", "2001:db8:0:0:ffff::2"]) {
      expect(() => authenticator.authenticate(guess(address))).toThrow(refusal("wrong"));
    }
    expect(() => authenticator.authenticate(guess("2001:DB8::3"))).toThrow(/Too many/);
    expect(() => authenticator.authenticate(guess("2001:db8:0:1::3"))).toThrow(refusal("wrong"));
  });

  it("is not what those do who show nothing", () => {
    const authenticator = authenticatorOf(options, 1);
    for (let at = 0; at < 5; at++) expect(() => authenticator.authenticate(presented())).toThrow(refusal("missing"));
    expect(authenticator.authenticate(right("192.0.2.1"))).toMatchObject({ owner: "alice" });
  });

  it("from any number of addresses takes a bounded room", () => {
    const authenticator = authenticatorOf(options, 1);
    const address = (at: number) => `10.${at >> 16}.${(at >> 8) & 255}.${at & 255}`;
    for (let at = 0; at < 10_001; at++) expect(() => authenticator.authenticate(guess(address(at)))).toThrow();
    expect(() => authenticator.authenticate(guess(address(0)))).toThrow(refusal("wrong"));
    expect(() => authenticator.authenticate(guess(address(10_000)))).toThrow(/Too many/);
  });
});
