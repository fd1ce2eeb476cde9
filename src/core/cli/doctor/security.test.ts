import { chmod, mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parseConfig } from "../../server/config/load.ts";
import { checkSecurity, findWeakness, type SecurityConfig } from "./security.ts";

const STRONG = "Zk3vQ8rT1yLw6XnB0sHdPq";

/** One that nothing can be said against. */
const SAFE: SecurityConfig = {
  server: {
    host: "0.0.0.0",
    publicUrl: "https://agents.example.com",
    cors: { origins: [] },
    tls: { key: "/none/key.pem" },
  },
  auth: { apiKeys: [{ key: STRONG, owner: "alice" }] },
  limits: { ratePerAddress: 100, storedBytesPerOwner: 1_000_000 },
  times: {},
  store: "memory:",
  audit: { file: "/none/audit.jsonl" },
  findOrigins: () => new Map(),
};

async function found(change: Partial<SecurityConfig>, file = "/none/dragoman.yaml"): Promise<readonly string[]> {
  const checks = await checkSecurity({ ...SAFE, ...change }, file);
  return checks.map(({ name, status }) => `${status} ${name}`);
}

describe("doctor on security", () => {
  it("finds nothing wrong with what is safe", async () => {
    expect(await found({})).toEqual(["ok security"]);
    const local = { ...SAFE.server, host: "127.0.0.1", publicUrl: undefined, tls: undefined };
    const nothing = { server: local, auth: {}, limits: {}, audit: undefined };
    const pruned = { limits: { ratePerOwner: 1 }, times: { pruneAfterMs: 1 } };
    expect(await found(pruned)).toEqual(["ok security"]);
    expect(await found(nothing)).toEqual(["ok security"]);
  });

  const { server } = SAFE;
  it.each<[string, Partial<SecurityConfig>, readonly string[]]>([
    ["anonymous callers", { auth: { anonymous: true } }, ["warning security: callers"]],
    ["anonymous callers beside others", { auth: { ...SAFE.auth, anonymous: true } }, ["warning security: callers"]],
    ["nobody in auth behind a proxy", { auth: {}, server: { ...server, host: "::1" } }, ["failed security: callers"]],
    [
      "keys over plain text",
      { server: { ...server, tls: undefined, publicUrl: undefined } },
      ["failed security: transport"],
    ],
    [
      "an http address on cards",
      { server: { ...server, publicUrl: "http://a.example" } },
      ["failed security: transport"],
    ],
    ["a port beside its proxy", { server: { ...server, tls: undefined } }, ["warning security: transport"]],
    [
      "a short key",
      {
        auth: {
          apiKeys: [
            { key: STRONG, owner: "a" },
            { key: "short", owner: "b" },
          ],
        },
      },
      ["failed security: auth.apiKeys[1].key"],
    ],
    [
      "an example's password",
      { auth: { basic: [{ user: "u", password: "please-change-me-now" }] } },
      ["failed security: auth.basic[0].password"],
    ],
    [
      "an example's secret",
      { push: { hmac: { secret: "a-secret-for-all-of-them" } } },
      ["failed security: push.hmac.secret"],
    ],
    ["webhooks into the inside", { push: { allowPrivateTargets: true } }, ["warning security: push"]],
    ["any page", { server: { ...server, cors: { origins: ["*"] } } }, ["warning security: cors"]],
    ["no rates", { limits: { storedBytesPerOwner: 1 } }, ["warning security: limits"]],
    ["a store without bounds", { limits: { ratePerOwner: 1 } }, ["warning security: store"]],
    [
      "any page with what browsers add",
      { server: { ...server, cors: { origins: ["*"] } }, auth: { ...SAFE.auth, apiKey: { cookie: "key" } } },
      ["failed security: cors"],
    ],
    [
      "keys in addresses",
      { auth: { ...SAFE.auth, apiKey: { query: "key" } } },
      ["warning security: auth.apiKey.query"],
    ],
    [
      "an issuer in plain text",
      { auth: { jwt: { issuer: "http://a.example" } } },
      ["failed security: auth.jwt.issuer"],
    ],
    [
      "keys of an issuer in plain text",
      { auth: { jwt: { issuer: "http://localhost:8080", jwksUrl: "http://10.0.0.1/keys" } } },
      ["failed security: auth.jwt.jwksUrl"],
    ],
    [
      "much patience with clocks",
      { auth: { jwt: { issuer: "https://a.example", clockSkew: 300_001 } } },
      ["warning security: auth.jwt.clockSkew"],
    ],
    [
      "names from two hands",
      { auth: { ...SAFE.auth, jwt: { issuer: "https://a.example" } } },
      ["warning security: owners"],
    ],
    [
      "no way to log in",
      { auth: { apiKeys: [] }, findOrigins: () => new Map([["auth", { variables: [] }]]) },
      ["failed security: callers"],
    ],
    ["no record", { audit: undefined }, ["warning security: audit"]],
  ])("warns of %s", async (_, change, expected) => {
    expect(await found(change)).toEqual(expected);
  });

  it("looks at who may read files", async () => {
    const folder = await mkdtemp(join(tmpdir(), "doctor-"));
    const file = async (name: string, mode: number) => {
      const path = join(folder, name);
      await writeFile(path, "");
      await chmod(path, mode);
      return path;
    };
    const key = await file("key.pem", 0o644);
    expect(await found({ server: { ...server, tls: { key } } })).toEqual(["failed security: server.tls.key"]);
    await chmod(key, 0o640);
    expect(await found({ server: { ...server, tls: { key } } })).toEqual(["warning security: server.tls.key"]);
    await chmod(key, 0o600);
    expect(await found({ server: { ...server, tls: { key } } })).toEqual(["ok security"]);
    const signing = { keyFile: await file("sign.pem", 0o604) };
    expect(await found({ signing })).toEqual(["failed security: signing.keyFile"]);
    const push = { jwt: { keyFile: await file("push.pem", 0o604) } };
    expect(await found({ push })).toEqual(["failed security: push.jwt.keyFile"]);
    const [store, audit] = [`sqlite:${await file("data.db", 0o644)}`, { file: await file("audit.jsonl", 0o644) }];
    expect(await found({ store, audit })).toEqual(["warning security: store", "warning security: audit.file"]);
    const config = await file("dragoman.yaml", 0o644);
    expect(await found({}, config)).toEqual(["ok security"]);
    const written = new Map([["auth.apiKeys[0].key", { variables: [] }]]);
    expect(await found({ findOrigins: () => written }, config)).toEqual(["warning security: the configuration"]);
    const fromEnvironment = new Map([["auth.apiKeys[0].key", { variables: ["ALICE_KEY"] }]]);
    expect(await found({ findOrigins: () => fromEnvironment }, config)).toEqual(["ok security"]);
  });

  it("reads what a configuration file says", async () => {
    const text = "agents: { echo: { use: echo } }\nserver: { host: 0.0.0.0 }\nauth: { anonymous: true }\n";
    const config = parseConfig(text, { source: "dragoman.yaml", folder: "/none", environment: {} });
    const checks = await checkSecurity(config, "/none/dragoman.yaml");
    expect(checks.map(({ name }) => name)).toEqual([
      "security: callers",
      "security: transport",
      "security: limits",
      "security: store",
      "security: audit",
    ]);
    const safe = `agents: { a: { exec: [x], env: { TOKEN: "\${TOKEN}", MODE: fast } } }
server: { host: 0.0.0.0, publicUrl: https://a.example, tls: { cert: c.pem, key: k.pem } }
auth: { apiKeys: [{ key: "\${KEY}", owner: alice }] }
limits: { ratePerOwner: 5, storedBytesPerOwner: 1GiB }
push: { hmac: { secret: "\${KEY}" } }
signing: { keyFile: s.pem, kid: k }
audit: { file: audit.jsonl }
`;
    const environment = { TOKEN: STRONG, KEY: STRONG };
    const folder = await mkdtemp(join(tmpdir(), "doctor-"));
    const file = join(folder, "dragoman.yaml");
    const look = async (written: string) => {
      await writeFile(file, written, { mode: 0o644 });
      const parsed = parseConfig(written, { source: "dragoman.yaml", folder, environment });
      return (await checkSecurity(parsed, file)).map(({ name, status }) => `${status} ${name}`);
    };
    expect(await look(safe)).toEqual(["ok security"]);
    for (const variable of ["TOKEN", "KEY"]) {
      expect(await look(safe.replace(`\${${variable}}`, STRONG))).toEqual(["warning security: the configuration"]);
    }
  });

  it("tells weak secrets from strong ones, and shows neither", () => {
    for (const weak of ["", "hunter2", "aaaaaaaaaaaaaaaaaaaaaaaa", "your-api-key-goes-here", "my-secret-password-1"]) {
      expect(findWeakness(weak), weak).toBeDefined();
      if (weak !== "") expect(findWeakness(weak)).not.toContain(weak);
    }
    expect(findWeakness(STRONG)).toBeUndefined();
    expect(findWeakness("c0ffee1d5eed4b1e9a77f00dbaadc0de")).toBeUndefined();
  });
});
