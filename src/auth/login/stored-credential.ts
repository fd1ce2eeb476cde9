/** Credentials as they are kept, and as they are shown to an agent. */
import type { AgentCredentials, Grant, OAuthClient, OAuthCredential, StoredCredential } from "./contract.ts";

export interface Presented {
  readonly headers: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
}

/** Names of headers are lower-case, so that two schemes that use one header meet in it. */
export function present(credentials: readonly StoredCredential[]): Presented {
  const headers: Record<string, string> = {};
  const query: Record<string, string> = {};
  for (const credential of credentials) {
    switch (credential.kind) {
      case "bearer":
        headers.authorization = `Bearer ${credential.token}`;
        break;
      case "oauth":
        headers.authorization = `Bearer ${credential.accessToken}`;
        break;
      case "basic": {
        const pair = Buffer.from(`${credential.user}:${credential.password}`, "utf8");
        headers.authorization = `Basic ${pair.toString("base64")}`;
        break;
      }
      case "api-key": {
        const { key, location, parameter } = credential;
        if (location === "query") query[parameter] = key;
        else if (location === "header") headers[parameter.toLowerCase()] = key;
        else {
          const pair = `${parameter}=${encodeURIComponent(key)}`;
          headers.cookie = headers.cookie === undefined ? pair : `${headers.cookie}; ${pair}`;
        }
      }
    }
  }
  return { headers, query };
}

/** All that must never be shown. */
export function secretsOf(credential: StoredCredential): readonly string[] {
  switch (credential.kind) {
    case "bearer":
      return [credential.token];
    case "basic":
      return [credential.password];
    case "api-key":
      return [credential.key];
    case "oauth": {
      const { accessToken, client, refreshToken } = credential;
      return [accessToken, client.secret, refreshToken].filter((secret) => secret !== undefined);
    }
  }
}

type Members = Readonly<Record<string, unknown>>;

/** What a file holds, or undefined for what was not written by us. Schemes that cannot be read are left out. */
export function readAgentCredentials(value: unknown): AgentCredentials | undefined {
  if (!isMembers(value) || !isText(value.agent) || !isMembers(value.schemes)) return undefined;
  const schemes = Object.entries(value.schemes).flatMap(([name, stored]) => {
    const credential = readCredential(stored);
    return credential === undefined ? [] : [[name, credential] as const];
  });
  return { agent: value.agent, origins: textsIn(value.origins), schemes: Object.fromEntries(schemes) };
}

function readCredential(value: unknown): StoredCredential | undefined {
  if (!isMembers(value)) return undefined;
  switch (value.kind) {
    case "bearer":
      return isText(value.token) ? { kind: "bearer", token: value.token } : undefined;
    case "basic":
      return typeof value.user === "string" && typeof value.password === "string"
        ? { kind: "basic", user: value.user, password: value.password }
        : undefined;
    case "api-key": {
      const { key, location, parameter } = value;
      if (!isText(key) || !isText(parameter)) return undefined;
      if (location !== "header" && location !== "query" && location !== "cookie") return undefined;
      return { kind: "api-key", location, parameter, key };
    }
    case "oauth":
      return readOAuth(value);
    default:
      return undefined;
  }
}

const GRANTS: readonly Grant[] = ["authorization-code", "device-code", "client-credentials"];

function readOAuth(value: Members): OAuthCredential | undefined {
  const { accessToken, expiresAt, issuer, refreshToken, resource, revocationEndpoint, tokenEndpoint } = value;
  const grant = GRANTS.find((known) => known === value.grant);
  const client = readClient(value.client);
  if (grant === undefined || client === undefined) return undefined;
  if (!isText(accessToken) || !isText(issuer) || !isText(tokenEndpoint)) return undefined;
  return {
    kind: "oauth",
    grant,
    issuer,
    tokenEndpoint,
    client,
    scopes: textsIn(value.scopes),
    accessToken,
    ...(isText(revocationEndpoint) ? { revocationEndpoint } : {}),
    ...(isText(resource) ? { resource } : {}),
    ...(typeof expiresAt === "number" && Number.isFinite(expiresAt) ? { expiresAt } : {}),
    ...(isText(refreshToken) ? { refreshToken } : {}),
  };
}

function readClient(value: unknown): OAuthClient | undefined {
  if (!isMembers(value) || !isText(value.id)) return undefined;
  const { id, method, secret } = value;
  if (method !== "basic" && method !== "post" && method !== "none") return undefined;
  return { id, method, ...(isText(secret) ? { secret } : {}) };
}

function isMembers(value: unknown): value is Members {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

function textsIn(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter(isText) : [];
}
