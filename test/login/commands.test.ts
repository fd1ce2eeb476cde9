import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type Finished, finished, runCli, startCli, stopAll } from "../../src/core/cli/testing/run-cli.ts";
import { runInProcess } from "../../src/core/cli/testing/run-in-process.ts";
import { ProtocolError } from "../../src/core/model/errors.ts";
import { createFolder } from "../support/lifecycle.ts";
import { browse } from "./browser.ts";
import { type GuardedAgent, startGuardedAgent } from "./guarded-agent.ts";
import { CLI, type IdentityProvider, JOB, SCOPE, startIdentityProvider } from "./identity-provider.ts";

const KEY = "planted-api-key-9876543210";
const PASSWORD = "planted-password-9876543210";

let identity: IdentityProvider;
let agent: GuardedAgent;
let state: string;
/** All that any command said, to look for secrets in. */
let said: string;

beforeEach(async () => {
  said = "";
  state = createFolder();
  vi.stubEnv("HOME", "/nonexistent");
  vi.stubEnv("XDG_STATE_HOME", state);
  identity = await startIdentityProvider();
  const openIdConnectUrl = `${identity.issuer}/.well-known/openid-configuration`;
  agent = await startGuardedAgent({
    authenticate: ({ authorization, cookie, "x-agent-key": header }, query) => {
      if ([header, query.get("agent-key")].includes(KEY)) return { owner: "key", authenticated: true };
      if (cookie === `agent-key=${KEY}`) return { owner: "cookie", authenticated: true };
      const basic = `Basic ${Buffer.from(`bob:${PASSWORD}`).toString("base64")}`;
      if (authorization === basic) return { owner: "bob", authenticated: true };
      if (authorization === undefined) throw new ProtocolError("UNAUTHENTICATED", "Who are you?");
      return identity.check(authorization);
    },
    securitySchemes: {
      certificate: { mtlsSecurityScheme: {} },
      id: { openIdConnectSecurityScheme: { openIdConnectUrl } },
      header: { apiKeySecurityScheme: { location: "header", name: "X-Agent-Key" } },
      query: { apiKeySecurityScheme: { location: "query", name: "agent-key" } },
      cookie: { apiKeySecurityScheme: { location: "cookie", name: "agent-key" } },
      basic: { httpAuthSecurityScheme: { scheme: "Basic" } },
      token: { httpAuthSecurityScheme: { scheme: "Bearer" } },
    },
  });
});

afterEach(async () => {
  vi.unstubAllEnvs();
  await agent.close();
  await identity.close();
});
afterAll(stopAll);

/** In this process unless it reads something or has an environment of its own. */
async function cli(words: readonly string[], stdin?: string, more: Record<string, string> = {}): Promise<Finished> {
  if (stdin === undefined) return noted(await runInProcess(...words));
  return noted(await runCli(words, { stdin, environment: { XDG_STATE_HOME: state, ...more } }));
}

function noted(result: Finished): Finished {
  said += result.stdout + result.stderr;
  return result;
}

/** Runs until a line of talk matches, does something about it, and waits for the end. */
async function cliWithPerson(words: readonly string[], pattern: RegExp, act: (match: string) => Promise<unknown>) {
  const child = startCli(words, { environment: { XDG_STATE_HOME: state } });
  child.stdin.end();
  let talk = "";
  let acting: Promise<unknown> | undefined;
  child.stderr.on("data", (chunk: Buffer) => {
    talk += chunk.toString("utf8");
    const found = pattern.exec(talk)?.[1];
    if (found !== undefined) acting ??= act(found);
  });
  const result = noted(await finished(child));
  await acting;
  return result;
}

const who = (): Promise<Finished> => cli(["send", "-a", agent.url, "--text", "Who am I?"]);
const filesOf = (): string[] => readdirSync(join(state, "dragoman", "credentials"));

describe("auth login", () => {
  it("[A2ACLI_AUTH_006, A2ACLI_AUTH_007, A2ACLI_CONFIG_001] with client credentials from standard input; later commands use it, status shows it, logout ends it", async () => {
    expect(await who()).toMatchObject({
      code: 4,
      stderr: expect.stringContaining(`dragoman auth login -a ${agent.url}`),
    });
    expect(await cli(["auth", "status", "-a", agent.url, "-o", "json"])).toMatchObject({ code: 4, stdout: "[]\n" });
    const login = ["auth", "login", "-a", agent.url, "--client-id", JOB.id, "--flow", "client-credentials"];
    const done = await cli([...login, "--client-secret-stdin", "--scopes", SCOPE, "-o", "json"], `${JOB.secret}\n`);
    expect(done).toMatchObject({ code: 0, stderr: expect.stringContaining(`Logging in at ${identity.issuer}`) });
    const shown = {
      agent: agent.url,
      scheme: "id",
      kind: "oauth",
      flow: "client-credentials",
      state: "renewable",
      issuer: identity.issuer,
      clientId: "job",
      scopes: [SCOPE],
      expiresAt: expect.stringMatching(/^\d{4}-/),
    };
    expect(JSON.parse(done.stdout)).toEqual([shown]);
    expect((await who()).stdout).toContain("You are job.");
    expect((await cli(["send", "-a", agent.url, "--text", "x", "--stream", "--debug"])).stdout).toContain(
      "You are job.",
    );
    expect((await cli(["task", "list", "-a", agent.url, "-o", "json"])).code).toBe(0);
    expect(JSON.parse((await cli(["auth", "status", "-o", "json"])).stdout)).toEqual([shown]);
    expect((await cli(["config", "show"])).stdout).toContain(
      `\nlogin: ${agent.url} id (folder ${join(state, "dragoman", "credentials")})\n`,
    );
    const [file = "", ...others] = filesOf();
    const folder = join(state, "dragoman", "credentials");
    const modes = [statSync(folder), statSync(join(folder, file))].map(({ mode }) => (mode & 0o777).toString(8));
    expect([modes, others]).toEqual([["700", "600"], []]);
    expect(readFileSync(join(folder, file), "utf8")).toContain(JOB.secret);
    expect(await cli(["auth", "logout", "-a", agent.url])).toMatchObject({
      code: 0,
      stdout: `Logged Out: ${agent.url} id\n`,
    });
    expect(filesOf()).toEqual([]);
    expect((await who()).code).toBe(4);
    expect((await cli(["auth", "logout", "-a", agent.url])).code).toBe(4);
    for (const secret of [JOB.secret, ...identity.secrets]) expect(said).not.toContain(secret);
    expect(identity.secrets).not.toEqual([]);
  });

  it("[A2ACLI_AUTH_010] in a browser, whose address is printed", async () => {
    const words = [
      "auth",
      "login",
      "-a",
      agent.url,
      "--client-id",
      CLI.id,
      "--scopes",
      `openid,offline_access ${SCOPE}`,
    ];
    const done = await cliWithPerson(words, /^(http:\S+)$/m, browse);
    expect(done).toMatchObject({ code: 0, stdout: expect.stringContaining("Kind: oauth (authorization-code)\n") });
    expect((await who()).stdout).toContain("You are alice.");
    expect(await cli(["auth", "logout", "--all", "-o", "json"])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('"revoked": true'),
    });
    for (const secret of identity.secrets) expect(said).not.toContain(secret);
  });

  it("[A2ACLI_AUTH_005] with a code on another device", async () => {
    const words = ["auth", "login", "-a", agent.url, "--client-id", CLI.id, "--device"];
    const done = await cliWithPerson(words, /or open (\S+)/, browse);
    expect(done).toMatchObject({ code: 0, stdout: expect.stringContaining("Kind: oauth (device-code)\n") });
    expect(done.stderr).toMatch(/enter the code [A-Z0-9-]+/);
    expect((await who()).stdout).toContain("You are alice.");
  });

  it.each([
    ["header", "You are key."],
    ["query", "You are key."],
    ["cookie", "You are cookie."],
  ])("with an API key for the %s", async (scheme, answer) => {
    const done = await cli(["auth", "login", "-a", agent.url, "--scheme", scheme, "--secret-stdin"], `${KEY}\n`);
    expect(done).toMatchObject({ code: 0, stdout: expect.stringContaining("Kind: api-key\n") });
    expect((await who()).stdout).toContain(answer);
    expect((await cli(["send", "-a", agent.url, "--text", "x", "--debug"])).stderr).toContain(
      `Using the login for ${scheme}`,
    );
    expect(said).not.toContain(KEY);
  });

  it("with a name and a password, and with a token from the environment", async () => {
    const basic = ["auth", "login", "-a", agent.url, "--user", "bob"];
    expect((await cli(basic, "", { A2ACLI_PASSWORD: PASSWORD })).stdout).toContain(
      "Scheme: basic\nKind: basic\nUser: bob\n",
    );
    expect((await who()).stdout).toContain("You are bob.");
    await cli(["auth", "logout", "-a", agent.url]);
    const bearer = { A2ACLI_BEARER: "planted-bad-token" };
    expect((await cli(["auth", "login", "-a", agent.url], "", bearer)).stdout).toContain(
      "Scheme: token\nKind: bearer\n",
    );
    expect(await who()).toMatchObject({ code: 4, stderr: expect.stringContaining("A2ACLI_ERR_AUTH_FAILED") });
    expect(said).not.toContain(PASSWORD);
    expect(said).not.toContain("planted-bad-token");
  });

  it("keeps nothing where it fails, and says what is missing", async () => {
    const login = ["auth", "login", "-a", agent.url];
    const wrong = [...login, "--client-id", JOB.id, "--flow", "client-credentials", "--client-secret-stdin"];
    expect(await cli(wrong, "planted-wrong-secret")).toMatchObject({
      code: 4,
      stderr: expect.stringContaining("A2ACLI_ERR_AUTH_FAILED"),
    });
    const missing = { code: 4, stderr: expect.stringContaining("A2ACLI_ERR_CREDENTIALS_MISSING") };
    expect(await cli(login)).toMatchObject(missing);
    expect(await cli([...login, "--scheme", "header"])).toMatchObject(missing);
    expect(await cli([...login, "--scheme", "basic", "--secret-stdin"], PASSWORD)).toMatchObject(missing);
    expect((await cli([...login, "--scheme", "certificate"])).stderr).toContain("it requires a client certificate");
    expect((await cli([...login, "--scheme", "nothing"])).code).toBe(2);
    expect((await cli([...login, "--scheme", "header", "--secret-stdin"], "two\nlines")).code).toBe(2);
    expect((await cli([...login, "--device", "--flow", "client-credentials"])).code).toBe(2);
    const pinned = [...wrong, "--issuer", "https://id.example.com"];
    expect(await cli(pinned, JOB.secret)).toMatchObject({
      code: 4,
      stderr: expect.stringContaining("not to https://id"),
    });
    expect(() => filesOf()).toThrow();
    expect(said).not.toContain("planted-wrong-secret");
  });

  it("does not follow a card into a private network, unless the issuer there was named", async () => {
    const folder = createFolder();
    const card = JSON.parse((await cli(["card", "get", "-a", agent.url, "-o", "json"])).stdout);
    const openIdConnectUrl = `https://localhost:${new URL(identity.issuer).port}/.well-known/openid-configuration`;
    const file = join(folder, "card.json");
    const elsewhere = card.supportedInterfaces.map((entry: object) => ({ ...entry, url: "https://agent.example" }));
    const securitySchemes = { id: { openIdConnectSecurityScheme: { openIdConnectUrl } } };
    writeFileSync(file, JSON.stringify({ ...card, supportedInterfaces: elsewhere, securitySchemes }));
    const words = ["auth", "login", "-a", file, "--scheme", "id", "--client-id", CLI.id, "--device"];
    expect(await cli(words)).toMatchObject({
      code: 4,
      stderr: expect.stringMatching(/localhost:\d+.*private network/),
    });
    // It is asked then, and does not speak TLS.
    const named = await cli([...words, "--issuer", new URL(openIdConnectUrl).origin]);
    expect(named).toMatchObject({ code: 3, stderr: expect.not.stringContaining("private network") });
  });

  it("is for one agent of a host, and for others only if it is shared and their issuer is the same", async () => {
    const other = `${agent.url}/agents/who`;
    const whoElse = () => cli(["send", "-a", other, "hello"]);
    await cli(["auth", "login", "-a", agent.url, "--scheme", "header", "--secret-stdin"], KEY);
    expect((await who()).stdout).toContain("You are key.");
    expect(await whoElse()).toMatchObject({ code: 4, stderr: expect.stringContaining(`auth login -a ${other}`) });
    const share = ["auth", "login", "-a", agent.url, "--share"];
    expect(await cli([...share, "--scheme", "header"])).toMatchObject({ code: 2 });
    const tokens = ["--client-id", JOB.id, "--flow", "client-credentials", "--client-secret-stdin", "--scopes", SCOPE];
    await cli([...share, ...tokens], JOB.secret);
    expect((await whoElse()).stdout).toContain(`You are ${JOB.id}`);
    const openIdConnectUrl = "https://elsewhere.example/.well-known/openid-configuration";
    agent.card = { securitySchemes: { id: { openIdConnectSecurityScheme: { openIdConnectUrl } } } };
    expect(await whoElse()).toMatchObject({ code: 4 });
  });

  it("gives the credentials to no other origin than the card's, unless that is configured", async () => {
    const other = await startGuardedAgent({
      authenticate: ({ "x-agent-key": key }) => {
        if (key !== KEY) throw new ProtocolError("UNAUTHENTICATED", "Who are you?");
        return { owner: "elsewhere", authenticated: true };
      },
      securitySchemes: {},
    });
    agent.card = { supportedInterfaces: [{ url: other.url, protocolBinding: "JSONRPC", protocolVersion: "1.0" }] };
    const login = ["auth", "login", "-a", agent.url, "--scheme", "header", "--secret-stdin"];
    expect((await cli(login, KEY)).stderr).toContain(`The card also names ${other.url}`);
    expect(await who()).toMatchObject({
      code: 4,
      stderr: expect.stringMatching(
        /the credentials will not be sent there\. Name that origin with --credential-origin/,
      ),
    });
    expect((await cli([...login, "--credential-origin", other.url], KEY)).stderr).not.toContain("also names");
    expect((await who()).stdout).toContain("You are elsewhere.");
    await other.close();
  });
});
