import { chmod, mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { OAuthCredential, StoredCredential } from "./contract.ts";
import { createFileVault } from "./file-vault.ts";
import { readAgentCredentials, secretsOf, toRequestParameters } from "./stored-credentials.ts";

const AGENT = "https://agent.example.com";
const TOKENS: OAuthCredential = {
  kind: "oauth",
  grant: "authorization-code",
  issuer: "https://id.example.com",
  tokenEndpoint: "https://id.example.com/token",
  client: { id: "cli", method: "none" },
  scopes: ["a"],
  accessToken: "access",
  refreshToken: "refresh",
  expiresAt: 5,
};

let home: string;
let folder: string;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "vault-"));
  folder = join(home, "state", "credentials");
});
afterEach(() => rm(home, { recursive: true, force: true }));

const put = (schemes: Record<string, StoredCredential>, agent = AGENT) =>
  createFileVault({ folder }).update(agent, (kept) => ({ ...kept, schemes: { ...kept.schemes, ...schemes } }));
const modeOf = async (path: string): Promise<string> => ((await stat(path)).mode & 0o777).toString(8);
const files = async (): Promise<string[]> => (await readdir(folder)).map((name) => join(folder, name));

describe("the vault", () => {
  it("keeps one file per agent, for its owner alone, and nothing beside it", async () => {
    await put({ id: TOKENS });
    await put({ key: { kind: "bearer", token: "t" } });
    await put({ key: { kind: "bearer", token: "t" } }, "http://127.0.0.1:4000");
    const [one, ...more] = await files();
    expect(more).toHaveLength(1);
    expect([await modeOf(folder), await modeOf(one as string)]).toEqual(["700", "600"]);
    const vault = createFileVault({ folder });
    expect(await vault.read(AGENT)).toEqual({
      agent: AGENT,
      origins: [],
      schemes: { id: TOKENS, key: { kind: "bearer", token: "t" } },
    });
    expect((await vault.list()).map(({ agent }) => agent)).toEqual(["http://127.0.0.1:4000", AGENT]);
  });

  it("removes the file with the last scheme", async () => {
    await put({ id: TOKENS });
    await createFileVault({ folder }).update(AGENT, (kept) => ({ ...kept, schemes: {} }));
    expect(await files()).toEqual([]);
  });

  it("is empty before anything is kept, and makes no folder to say so", async () => {
    const vault = createFileVault({ folder });
    expect([await vault.read(AGENT), await vault.list()]).toEqual([undefined, []]);
    await expect(stat(folder)).rejects.toThrow();
  });

  it("closes what others could read, and says so", async () => {
    await put({ id: TOKENS });
    const [path = ""] = await files();
    await chmod(path, 0o644);
    await chmod(folder, 0o755);
    const exposed: string[] = [];
    const vault = createFileVault({ folder, onExposed: (one) => exposed.push(one) });
    expect(await vault.read(AGENT)).toBeDefined();
    await vault.update(AGENT, (kept) => kept);
    expect([exposed, await modeOf(path), await modeOf(folder)]).toEqual([[path], "600", "700"]);
  });

  it("takes what it did not write for nothing", async () => {
    await put({ id: TOKENS });
    const [path = ""] = await files();
    const text = await readFile(path, "utf8");
    for (const odd of ["", "{", "null", "[]", '{"agent":1}', text.replaceAll(AGENT, "https://other.example.com")]) {
      await writeFile(path, odd);
      const vault = createFileVault({ folder });
      expect([await vault.read(AGENT), await vault.list()]).toEqual([undefined, []]);
    }
  });

  it("changes one thing at a time, and leaves the old where a change fails", async () => {
    const add = (name: string) => put({ [name]: { kind: "bearer", token: name } });
    await Promise.all(Array.from({ length: 12 }, (_, at) => add(`s${at}`)));
    const vault = createFileVault({ folder });
    const failing = vault.update(AGENT, () => Promise.reject(new Error("no")));
    await expect(failing).rejects.toThrow("no");
    expect(Object.keys((await vault.read(AGENT))?.schemes ?? {})).toHaveLength(12);
    expect(await files()).toHaveLength(1);
  });

  it("does not wait for a process that died while it changed something", async () => {
    await put({ id: TOKENS });
    const [path] = await files();
    const lock = `${path}.lock`;
    await writeFile(lock, "");
    const longAgo = new Date(Date.now() - 120_000);
    await utimes(lock, longAgo, longAgo);
    await put({ key: { kind: "bearer", token: "t" } });
    expect(Object.keys((await createFileVault({ folder }).read(AGENT))?.schemes ?? {})).toEqual(["id", "key"]);
    expect(await files()).toEqual([path]);
  });
});

describe("a stored credential", () => {
  it.each<[StoredCredential, ReturnType<typeof toRequestParameters>]>([
    [
      { kind: "bearer", token: "t" },
      { headers: { authorization: "Bearer t" }, query: {} },
    ],
    [TOKENS, { headers: { authorization: "Bearer access" }, query: {} }],
    [
      { kind: "basic", user: "ä", password: "p:q" },
      { headers: { authorization: "Basic w6Q6cDpx" }, query: {} },
    ],
    [
      { kind: "api-key", location: "header", parameter: "X-Key", key: "k" },
      { headers: { "x-key": "k" }, query: {} },
    ],
    [
      { kind: "api-key", location: "cookie", parameter: "sid", key: "k; v" },
      { headers: { cookie: "sid=k%3B%20v" }, query: {} },
    ],
    [
      { kind: "api-key", location: "query", parameter: "key", key: "k" },
      { headers: {}, query: { key: "k" } },
    ],
  ])("is shown where it belongs: %j", (credential, expected) => {
    expect(toRequestParameters([credential])).toEqual(expected);
  });

  it("is shown together with others that are wanted too", () => {
    const cookie = (parameter: string): StoredCredential => ({
      kind: "api-key",
      location: "cookie",
      parameter,
      key: "k",
    });
    expect(toRequestParameters([cookie("a"), { kind: "bearer", token: "t" }, cookie("b")]).headers).toEqual({
      authorization: "Bearer t",
      cookie: "a=k; b=k",
    });
  });

  it("knows its secrets", () => {
    expect(secretsOf({ ...TOKENS, client: { id: "cli", secret: "s", method: "basic" } })).toEqual([
      "access",
      "s",
      "refresh",
    ]);
  });

  it("is read as it was written, and anything else is left out", () => {
    const text = fc.string({ minLength: 1 });
    const credential: fc.Arbitrary<StoredCredential> = fc.oneof(
      fc.record({ kind: fc.constant("bearer" as const), token: text }),
      fc.record({ kind: fc.constant("basic" as const), user: fc.string(), password: fc.string() }),
      fc.record({
        kind: fc.constant("api-key" as const),
        location: fc.constantFrom("header" as const, "query" as const, "cookie" as const),
        parameter: text,
        key: text,
      }),
      fc.record(
        {
          kind: fc.constant("oauth" as const),
          grant: fc.constantFrom("authorization-code" as const, "device-code" as const, "client-credentials" as const),
          issuer: text,
          tokenEndpoint: text,
          client: fc.record({ id: text, method: fc.constantFrom("basic" as const, "none" as const) }),
          scopes: fc.array(text),
          accessToken: text,
          refreshToken: text,
          expiresAt: fc.integer(),
        },
        { requiredKeys: ["kind", "grant", "issuer", "tokenEndpoint", "client", "scopes", "accessToken"] },
      ),
    );
    const stored = fc.record({ agent: text, origins: fc.array(text), schemes: fc.dictionary(fc.string(), credential) });
    fc.assert(
      fc.property(stored, (value) => {
        expect(readAgentCredentials(JSON.parse(JSON.stringify(value)))).toEqual(value);
      }),
    );
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (schemes) => {
        expect(readAgentCredentials({ agent: "a", schemes })).toEqual({ agent: "a", origins: [], schemes: {} });
      }),
    );
  });
});
