/** A real OpenID provider in this process, and the check of its tokens that a server would make. */
import { createPublicKey, type JsonWebKey, verify } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair } from "jose";
import Provider from "oidc-provider";
import { vi } from "vitest";
import type { Caller } from "../../src/core/model/caller.ts";
import { ProtocolError } from "../../src/core/model/errors.ts";

export const SCOPE = "agent:call";
const AUDIENCE = "https://agent.example/";
export const JOB = { id: "job", secret: "planted-client-secret-of-the-job-0123456789" };
export const CLI = { id: "cli" };

export interface IdentityProvider {
  readonly issuer: string;
  /** Grants that were asked of the token endpoint, in order. */
  readonly grants: string[];
  /** Answers of the token endpoint, to look for them where they must not be. */
  readonly secrets: string[];
  /** Seconds the next tokens are good for. */
  lifetime: number;
  /** Changes the documents the provider serves on their way out. */
  tamper: (path: string, document: Record<string, unknown>) => Record<string, unknown>;
  /** The owner a token stands for; throws what a server would answer. */
  check(authorization: string | undefined): Caller;
  close(): Promise<void>;
}

export async function startIdentityProvider(): Promise<IdentityProvider> {
  // It tells at length what it would want in production.
  for (const how of ["info", "warn"] as const) vi.spyOn(console, how).mockImplementation(() => {});
  const { privateKey, publicKey } = await generateKeyPair("RS256", { extractable: true });
  const jwk = { ...(await exportJWK(privateKey)), kid: "test", alg: "RS256", use: "sig" };
  const key = createPublicKey({ key: (await exportJWK(publicKey)) as JsonWebKey, format: "jwk" });
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const identity: IdentityProvider = {
    issuer,
    grants: [],
    secrets: [],
    lifetime: 3600,
    tamper: (_path, document) => document,
    check: (authorization) => callerOf(authorization, issuer, key),
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  const provider = new Provider(
    issuer,
    configuration(jwk, () => identity.lifetime),
  );
  const handle = provider.callback();
  server.on("request", (request, response) => {
    const path = (request.url ?? "").split("?", 1)[0] ?? "";
    if (path.includes("/.well-known/") || path === "/token") {
      const end = response.end.bind(response);
      response.end = ((body?: unknown) => end(note(identity, path, body))) as typeof response.end;
      const setHeader = response.setHeader.bind(response);
      response.setHeader = (name, value) =>
        name.toLowerCase() === "content-length" ? response : setHeader(name, value);
    }
    if (path === "/token") {
      request.on("data", (chunk: Buffer) => {
        const grant = new URLSearchParams(chunk.toString("utf8")).get("grant_type");
        if (grant !== null) identity.grants.push(grant.split(":").at(-1) ?? grant);
      });
    }
    handle(request, response);
  });
  return identity;
}

function note(identity: IdentityProvider, path: string, body: unknown): string {
  const document = JSON.parse(String(body)) as Record<string, unknown>;
  for (const name of ["access_token", "refresh_token", "id_token"]) {
    const secret = document[name];
    if (typeof secret === "string") identity.secrets.push(secret);
  }
  return JSON.stringify(identity.tamper(path, document));
}

function configuration(jwk: unknown, lifetime: () => number): Readonly<Record<string, unknown>> {
  const device = "urn:ietf:params:oauth:grant-type:device_code";
  return {
    jwks: { keys: [jwk] },
    cookies: { keys: ["only for tests"] },
    clients: [
      {
        client_id: CLI.id,
        token_endpoint_auth_method: "none",
        application_type: "native",
        redirect_uris: ["http://127.0.0.1/callback"],
        grant_types: ["authorization_code", "refresh_token", device],
        response_types: ["code"],
      },
      {
        client_id: JOB.id,
        client_secret: JOB.secret,
        grant_types: ["client_credentials"],
        redirect_uris: [],
        response_types: [],
      },
    ],
    scopes: ["openid", "offline_access", SCOPE],
    rotateRefreshToken: true,
    ttl: {
      AccessToken: lifetime,
      ClientCredentials: lifetime,
      IdToken: 3600,
      Interaction: 600,
      Session: 600,
      Grant: 600,
    },
    findAccount: async (_context: unknown, id: string) => ({ accountId: id, claims: async () => ({ sub: id }) }),
    features: {
      devInteractions: { enabled: true },
      clientCredentials: { enabled: true },
      deviceFlow: { enabled: true },
      revocation: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => AUDIENCE,
        useGrantedResource: () => true,
        getResourceServerInfo: () => ({
          scope: SCOPE,
          audience: AUDIENCE,
          accessTokenTTL: lifetime(),
          accessTokenFormat: "jwt",
          jwt: { sign: { alg: "RS256" } },
        }),
      },
    },
  };
}

function callerOf(authorization: string | undefined, issuer: string, key: ReturnType<typeof createPublicKey>): Caller {
  const [, token] = /^Bearer (.+)$/.exec(authorization ?? "") ?? [];
  const [header = "", payload = "", signature = ""] = token?.split(".") ?? [];
  const signed = Buffer.from(`${header}.${payload}`);
  if (token === undefined || !verify("RSA-SHA256", signed, key, Buffer.from(signature, "base64url"))) {
    throw new ProtocolError("UNAUTHENTICATED", "A token is needed.");
  }
  const claims = JSON.parse(Buffer.from(payload, "base64url").toString("utf8")) as Record<string, unknown>;
  const isGood = claims.iss === issuer && claims.aud === AUDIENCE && Number(claims.exp) * 1000 > Date.now();
  if (!isGood) throw new ProtocolError("UNAUTHENTICATED", "The token has expired or is for someone else.");
  return { owner: String(claims.sub ?? claims.client_id), authenticated: true };
}
