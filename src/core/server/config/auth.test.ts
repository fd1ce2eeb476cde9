import { describe, expect, it } from "vitest";
import { ConfigError } from "../../yaml/problems.ts";
import { effectiveConfig } from "./describe.ts";
import { parseConfig } from "./load.ts";

const folder = "/srv/project";
const ECHO = "agents: { echo: { use: echo } }\n";
const parse = (text: string, environment: Record<string, string> = {}) =>
  parseConfig(`${ECHO}${text}`, { source: "dragoman.yaml", folder, environment });

function problemsOf(text: string): readonly string[] {
  try {
    parse(text);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.map(({ path, message }) => `${path}: ${message}`);
    throw error;
  }
  return [];
}

const TLS = "server: { tls: { cert: tls/cert.pem, key: tls/key.pem } }\n";

describe("who may call", () => {
  it("is written as the design has it", () => {
    const { auth } = parse(
      `auth:
  apiKeys: [{ key: "\${ALICE_KEY}", owner: alice }, { key: other, owner: alice, scopes: [write] }]
  apiKey: { query: key }
  basic: [{ user: bob, password: secret }]
  jwt: { issuer: https://id.example.com, audience: dragoman, clockSkew: 5s, algorithms: [ES256] }
`,
      { ALICE_KEY: "k1" },
    );
    expect(auth).toEqual({
      anonymous: false,
      apiKeys: [
        { key: "k1", owner: "alice" },
        { key: "other", owner: "alice", scopes: ["write"] },
      ],
      apiKey: { header: "X-API-Key", query: "key" },
      basic: [{ user: "bob", password: "secret" }],
      jwt: {
        issuer: "https://id.example.com",
        audience: "dragoman",
        ownerClaim: "sub",
        clockSkew: 5_000,
        algorithms: ["ES256"],
      },
    });
  });

  it("has files beside the configuration", () => {
    const { auth, server } = parse(`${TLS}auth: { mtls: { ca: tls/ca.pem, owner: uri } }`);
    expect(auth.mtls).toEqual({ ca: `${folder}/tls/ca.pem`, owner: "uri" });
    expect(server.tls).toEqual({ cert: `${folder}/tls/cert.pem`, key: `${folder}/tls/key.pem` });
  });

  it.each([
    "auth: { apiKeys: [{ key: k, owner: o }] }",
    "auth: { basic: [{ user: u, password: p }] }",
    "auth: { jwt: { issuer: https://id.example.com, audience: a } }",
    "auth: { anonymous: true }",
  ])("may open the server to other machines: %s", (text) => {
    expect(problemsOf(`${text}\nserver: { host: 0.0.0.0 }`)).toEqual([]);
  });

  it.each([
    ["server: { host: 0.0.0.0 }\nauth: { apiKeys: [] }", /^server\.host: "0\.0\.0\.0" can be reached/],
    ["auth: { mtls: { ca: x } }", /^auth\.mtls: needs server\.tls/],
    [`${TLS}auth: { apiKeys: [{ key: k }] }`, /^auth\.apiKeys\[0\]\.owner: is required/],
    ["auth: { apiKeys: [{ key: '', owner: a }] }", /^auth\.apiKeys\[0\]\.key: must not be empty/],
    ["auth: { apiKeys: [{ key: k, owner: anonymous }] }", /^auth\.apiKeys\[0\]\.owner: must be another name/],
    ["auth: { apiKeys: [{ key: kk, owner: a }, { key: kk, owner: b }] }", /^auth\.apiKeys\[1\]\.key: is the same/],
    ["auth: { basic: [{ user: 'a:b', password: p }] }", /^auth\.basic\[0\]\.user: must not have a colon/],
    ["auth: { jwt: { issuer: nowhere, audience: a } }", /^auth\.jwt\.issuer: must be an http/],
    [
      "auth: { jwt: { issuer: https://id.example.com, audience: a, algorithms: [HS256] } }",
      /^auth\.jwt\.algorithms\[0\]: must be one of RS256/,
    ],
    ["auth: { jwt: { issuer: https://id.example.com, audience: a, algorithms: [none] } }", /algorithms\[0\]: must be/],
    ["auth: { jwt: { issuer: https://id.example.com } }", /^auth\.jwt\.audience: is required/],
    ["auth: { apiKeys: [{ key: k, owner: a }], apiKey: { header: 'a b' } }", /^auth\.apiKey\.header: must be letters/],
    ["auth: { apiKey: { header: X-Key } }", /^auth\.apiKey: has a meaning only beside apiKeys/],
    ["auth: { apiKey: { header: X-Key }, apiKeys: [] }", /^auth\.apiKey: has a meaning only beside apiKeys/],
    ...["Authorization", "cookie", "Host", "Content-Type", "A2A-Version", "X-Forwarded-For", "Origin"].map(
      (name): [string, RegExp] => [
        `auth: { apiKeys: [{ key: k, owner: a }], apiKey: { header: ${name} } }`,
        /^auth\.apiKey\.header: must be a header that has no other meaning/,
      ],
    ),
    ['auth: { apiKeys: [{ key: k, owner: "a\\u0000" }] }', /^auth\.apiKeys\[0\]\.owner: .*no control characters/],
    ['auth: { basic: [{ user: "a\\tb", password: p }] }', /^auth\.basic\[0\]\.user: .*no control characters/],
    ["auth: { jwt: { issuer: 'https://u:p@id.example.com', audience: a } }", /^auth\.jwt\.issuer: .* or login$/],
    [
      "auth: { jwt: { issuer: https://id.example.com, audience: a, jwksUrl: 'https://u:p@id.example.com/k?x=1' } }",
      /^auth\.jwt\.jwksUrl: must be an http or https address without login$/,
    ],
    [
      "auth: { jwt: { issuer: https://id.example.com, audience: [] } }",
      /^auth\.jwt\.audience: must name at least one$/,
    ],
    ["server: { tls: { cert: c, key: k, ca: a } }", /^server\.tls\.ca: has a meaning only/],
  ])("is refused where it is wrong: %s", (text, problem) => {
    expect(problemsOf(text)).toEqual([expect.stringMatching(problem)]);
  });

  it("is shown without secrets", () => {
    const config = parse(
      "auth: { apiKeys: [{ key: s3cret-key, owner: a }], basic: [{ user: u, password: s3cret-word }] }",
    );
    const shown = effectiveConfig(config);
    expect(JSON.stringify(shown)).not.toContain("s3cret");
    expect(shown["auth.apiKeys[0].owner"]?.value).toBe("a");
    expect(shown["auth.apiKeys[0].key"]?.value).toBe("***");
  });
});
