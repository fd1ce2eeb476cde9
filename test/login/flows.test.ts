import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { CredentialProvider, CredentialVault, OAuthCredential } from "../../src/core/auth/login/contract.ts";
import { createFileVault } from "../../src/core/auth/login/file-vault.ts";
import { type LogInOptions, logIn } from "../../src/core/auth/login/oauth/log-in.ts";
import { chooseLogin, type OAuthScheme, type OpenIdScheme } from "../../src/core/auth/login/security-schemes.ts";
import { createStoredProvider } from "../../src/core/auth/login/stored-credentials.ts";
import { fetchCard } from "../../src/core/client/card/fetch-card.ts";
import { connect } from "../../src/core/client/connect.ts";
import type { RemoteAgent } from "../../src/core/client/options.ts";
import { createFolder } from "../support/lifecycle.ts";
import { browse } from "./browser.ts";
import { type GuardedAgent, startGuardedAgent } from "./guarded-agent.ts";
import { CLI, type IdentityProvider, JOB, SCOPE, startIdentityProvider } from "./identity-provider.ts";

let identity: IdentityProvider;
let agent: GuardedAgent;
let folder: string;
let vault: CredentialVault;
/** How far the client's clock is ahead of the world's. */
let ahead: number;

const now = (): number => Date.now() + ahead;

beforeEach(async () => {
  ahead = 0;
  identity = await startIdentityProvider();
  const openIdConnectUrl = `${identity.issuer}/.well-known/openid-configuration`;
  agent = await startGuardedAgent({
    authenticate: ({ authorization }) => identity.check(authorization),
    securitySchemes: {
      id: { openIdConnectSecurityScheme: { openIdConnectUrl } },
      program: {
        oauth2SecurityScheme: { flows: { clientCredentials: { tokenUrl: `${identity.issuer}/token`, scopes: {} } } },
      },
      described: {
        oauth2SecurityScheme: {
          flows: { authorizationCode: {} },
          oauth2MetadataUrl: `${identity.issuer}/.well-known/oauth-authorization-server`,
        },
      },
      bare: {
        oauth2SecurityScheme: {
          flows: {
            authorizationCode: {
              authorizationUrl: `${identity.issuer}/auth`,
              // Not the name the server has for itself.
              tokenUrl: `${identity.issuer.replace("127.0.0.1", "localhost")}/token`,
              scopes: { [SCOPE]: "" },
            },
          },
        },
      },
    },
  });
  folder = createFolder();
  vault = createFileVault({ folder: join(folder, "credentials") });
});

afterEach(async () => {
  await agent.close();
  await identity.close();
});

async function logInFor(scheme: string, options: Partial<LogInOptions> = {}): Promise<OAuthCredential> {
  const { card } = await fetchCard(agent.url);
  const [named] = chooseLogin(card, { scheme, grant: options.grant });
  const credential = await logIn({
    scheme: named?.scheme as OAuthScheme | OpenIdScheme,
    requiredScopes: [SCOPE],
    clientId: CLI.id,
    fetch: globalThis.fetch,
    allowLoopback: true,
    signal: new AbortController().signal,
    now,
    onServer: () => {},
    onAddress: (url) => void browse(url),
    onCode: ({ completeUri }) => void browse(completeUri ?? ""),
    ...options,
  });
  await vault.update(agent.url, (kept) => ({ ...kept, schemes: { [scheme]: credential } }));
  return credential;
}

async function providerFor(scheme: string): Promise<CredentialProvider> {
  const known = await vault.read(agent.url);
  if (known === undefined) throw new Error("Nothing is kept.");
  return createStoredProvider({ vault, known, schemes: [scheme], now, allowLoopback: true });
}

async function connected(scheme: string, binding = "JSONRPC"): Promise<RemoteAgent> {
  return connect(agent.url, {
    binding,
    credentials: await providerFor(scheme),
    retry: { attempts: 1, baseMs: 1, capMs: 1 },
  });
}

async function answerOf(remote: RemoteAgent): Promise<string> {
  const outcome = await remote.send("Who am I?");
  return JSON.stringify("task" in outcome ? outcome.task.artifacts : outcome.message);
}

const kept = async (): Promise<OAuthCredential> =>
  Object.values((await vault.read(agent.url))?.schemes ?? {})[0] as OAuthCredential;

describe("logging in", () => {
  it("as a program, with its id and secret; new tokens are had the same way", async () => {
    await logInFor("program", { clientId: JOB.id, clientSecret: JOB.secret });
    expect(await answerOf(await connected("program"))).toContain("You are job.");
    ahead = 4_000_000;
    expect(await answerOf(await connected("program"))).toContain("You are job.");
    expect(identity.grants).toEqual(["client_credentials", "client_credentials"]);
  });

  it("as a person with a browser: code, PKCE, state, issuer and nonce", async () => {
    let address: URL | undefined;
    const credential = await logInFor("id", {
      onAddress: (url) => {
        address = new URL(url);
        void browse(url);
      },
    });
    expect(Object.fromEntries(address?.searchParams ?? [])).toMatchObject({
      code_challenge_method: "S256",
      response_type: "code",
      state: expect.stringMatching(/.{30}/),
      nonce: expect.stringMatching(/.{30}/),
      redirect_uri: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/callback$/),
      scope: `openid ${SCOPE} offline_access`,
    });
    expect(credential).toMatchObject({ grant: "authorization-code", issuer: identity.issuer });
    expect(await answerOf(await connected("id"))).toContain("You are alice.");
    expect(await answerOf(await connected("id", "HTTP+JSON"))).toContain("You are alice.");
  });

  it("by endpoints alone, where nothing says who the issuer is", async () => {
    const credential = await logInFor("bare");
    expect(credential).toMatchObject({ grant: "authorization-code", scopes: [SCOPE] });
    expect(credential.issuer).toContain("localhost");
    expect(await answerOf(await connected("bare"))).toContain("You are alice.");
  });

  it("by the metadata of an OAuth server, also with a flow the card does not mention", async () => {
    expect((await logInFor("described")).issuer).toBe(identity.issuer);
    expect(await answerOf(await connected("described"))).toContain("You are alice.");
    const program = { clientId: JOB.id, clientSecret: JOB.secret, grant: "client-credentials" } as const;
    expect((await logInFor("described", program)).grant).toBe("client-credentials");
  });

  it("as a person on another device", async () => {
    let shown = "";
    const credential = await logInFor("id", {
      grant: "device-code",
      onCode: ({ completeUri, userCode }) => {
        shown = userCode;
        void browse(completeUri ?? "");
      },
    });
    expect(shown).toMatch(/^[A-Z0-9-]{8,}$/);
    expect(credential.grant).toBe("device-code");
    expect(await answerOf(await connected("id"))).toContain("You are alice.");
  });

  it("is refused with the wrong secret, and the secret is not in the error", async () => {
    const wrong = "planted-wrong-secret-0123456789";
    const failure = await logInFor("program", { clientId: JOB.id, clientSecret: wrong }).catch((error) => error);
    expect(failure).toMatchObject({
      name: "LoginError",
      code: "refused",
      message: expect.stringContaining("invalid_client"),
    });
    expect(failure.message).not.toContain(wrong);
  });

  it("is refused when the person says no", async () => {
    const cancel = (url: string): void => {
      const { searchParams } = new URL(url);
      const back = new URL(searchParams.get("redirect_uri") ?? "");
      back.searchParams.set("state", searchParams.get("state") ?? "");
      back.searchParams.set("error", "access_denied");
      back.searchParams.set("iss", identity.issuer);
      void fetch(back);
    };
    await expect(logInFor("id", { onAddress: cancel })).rejects.toMatchObject({ code: "refused" });
  });

  it("ends when it is given up", async () => {
    const stop = new AbortController();
    const giveUp = (): void => stop.abort();
    await expect(logInFor("id", { signal: stop.signal, onAddress: giveUp })).rejects.toMatchObject({ code: "aborted" });
    await expect(
      logInFor("id", { signal: AbortSignal.abort(), grant: "device-code", onCode: () => {} }),
    ).rejects.toMatchObject({ code: "aborted" });
  });
});

describe("an authorization server that cannot be trusted", () => {
  it("calls itself by another name than its address", async () => {
    identity.tamper = (path, document) =>
      path.includes("openid-configuration") ? { ...document, issuer: "https://id.example.com" } : document;
    const shown: string[] = [];
    const login = logInFor("id", { onServer: (issuer) => shown.push(issuer), onAddress: (url) => shown.push(url) });
    await expect(login).rejects.toMatchObject({ code: "untrusted" });
    expect(shown).toEqual([]);
  });

  it("is another than the one the person named", async () => {
    await expect(logInFor("id", { issuer: "https://id.example.com" })).rejects.toMatchObject({ code: "untrusted" });
    await expect(
      logInFor("program", { clientId: JOB.id, clientSecret: JOB.secret, issuer: "https://id.example.com" }),
    ).rejects.toMatchObject({ code: "untrusted" });
    expect(identity.grants).toEqual([]);
  });

  it("answers in the name of another issuer", async () => {
    const mixUp = (url: string): void => {
      const { searchParams } = new URL(url);
      const back = new URL(searchParams.get("redirect_uri") ?? "");
      back.searchParams.set("state", searchParams.get("state") ?? "");
      back.searchParams.set("code", "stolen");
      back.searchParams.set("iss", "https://id.example.com");
      void fetch(back);
    };
    await expect(logInFor("id", { onAddress: mixUp })).rejects.toMatchObject({ code: "untrusted" });
    expect(identity.grants).toEqual([]);
  });

  it("is reached without TLS although the agent is not on this machine", async () => {
    await expect(logInFor("id", { allowLoopback: false })).rejects.toMatchObject({ code: "untrusted" });
    await expect(
      logInFor("program", { clientId: JOB.id, clientSecret: JOB.secret, allowLoopback: false }),
    ).rejects.toMatchObject({ code: "untrusted" });
  });

  it("names endpoints elsewhere that are not encrypted", async () => {
    identity.tamper = (path, document) =>
      path.includes("openid-configuration") ? { ...document, token_endpoint: "http://id.example.com/token" } : document;
    await expect(logInFor("id")).rejects.toMatchObject({ code: "untrusted" });
  });
});

describe("a login", () => {
  it("is renewed before it expires, and the refresh token is exchanged for the next", async () => {
    const first = await logInFor("id");
    const remote = await connected("id");
    ahead = 3_590_000;
    expect(await answerOf(remote)).toContain("You are alice.");
    const second = await kept();
    expect(second.accessToken).not.toBe(first.accessToken);
    expect(second.refreshToken).not.toBe(first.refreshToken);
    ahead = 7_190_000;
    expect(await answerOf(remote)).toContain("You are alice.");
    expect(identity.grants).toEqual(["authorization_code", "refresh_token", "refresh_token"]);
  });

  it("is renewed once for many requests that need it at the same time", async () => {
    await logInFor("id");
    const remote = await connected("id");
    ahead = 3_590_000;
    const answers = await Promise.all(Array.from({ length: 8 }, () => answerOf(remote)));
    expect(answers.every((answer) => answer.includes("alice"))).toBe(true);
    expect(identity.grants).toEqual(["authorization_code", "refresh_token"]);
  });

  it("is renewed once by several processes: each sees what the others got", async () => {
    await logInFor("id");
    const remotes = await Promise.all([connected("id"), connected("id"), connected("id")]);
    ahead = 3_590_000;
    for (const answer of await Promise.all(remotes.map(answerOf))) expect(answer).toContain("alice");
    expect(identity.grants).toEqual(["authorization_code", "refresh_token"]);
  });

  it("is renewed when the agent refuses it, and the request is made again, once", async () => {
    identity.lifetime = 1;
    await logInFor("id");
    const credential = await kept();
    identity.lifetime = 3600;
    // The client believes that there is time; the agent knows better.
    await vault.update(agent.url, (all) => ({
      ...all,
      schemes: { id: { ...credential, expiresAt: Date.now() + 9e6 } },
    }));
    while (isAccepted(credential.accessToken)) await new Promise((resolve) => setTimeout(resolve, 50));
    const remote = await connected("id");
    expect(await answerOf(remote)).toContain("You are alice.");
    expect(agent.requests).toHaveLength(2);
    for await (const { event } of remote.stream("Who am I?")) expect(event).toBeDefined();
    expect(agent.requests).toHaveLength(3);
    expect(identity.grants).toEqual(["authorization_code", "refresh_token"]);
  });

  it("that was revoked has to be made again, and reports that", async () => {
    const { revoke } = await import("../../src/core/auth/login/oauth/tokens.ts");
    const credential = await logInFor("id");
    expect(await revoke(credential, { fetch: globalThis.fetch, allowLoopback: true })).toBe(true);
    ahead = 3_700_000;
    const remote = await connected("id");
    await expect(remote.send("hi")).rejects.toMatchObject({
      code: "UNAUTHENTICATED",
      message: expect.stringContaining("Log in again"),
    });
    expect(agent.requests).toEqual([]);
    expect((await kept()).refreshToken).toBeUndefined();
  });

  it("that cannot be renewed for the moment is used while it lasts", async () => {
    await logInFor("id");
    const remote = await connected("id");
    await identity.close();
    ahead = 3_590_000;
    expect(await answerOf(remote)).toContain("You are alice.");
    ahead = 3_700_000;
    await expect(remote.send("hi")).rejects.toMatchObject({ code: "UNAVAILABLE" });
  });
});

function isAccepted(token: string): boolean {
  try {
    return identity.check(`Bearer ${token}`).authenticated;
  } catch {
    return false;
  }
}
