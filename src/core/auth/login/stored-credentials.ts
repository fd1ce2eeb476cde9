/** Credentials as they are stored, and as they are sent to an agent. */

import { ProtocolError } from "../../model/errors.ts";
import { isObject, type JsonObject } from "../../model/json.ts";
import {
  type AgentCredentials,
  type CredentialProvider,
  type CredentialVault,
  GRANTS,
  KEY_LOCATIONS,
  type OAuthClient,
  type OAuthCredential,
  type Refusal,
  type StoredCredential,
} from "./contract.ts";

interface StoredProviderOptions {
  readonly vault: CredentialVault;
  /** What the vault has for the agent now. */
  readonly known: AgentCredentials;
  /** The schemes to satisfy, by name. */
  readonly schemes: readonly string[];
  readonly now: () => number;
  /** Servers on this machine may be asked without TLS. */
  readonly allowLoopback: boolean;
  readonly fetch?: typeof globalThis.fetch;
  /** Receives every secret before it is used, so that it can be redacted. */
  readonly onSecret?: (secret: string) => void;
  readonly onUnauthorized?: (url: string, challenge: string) => void;
}

/** A token is not used in its last moments: it would expire on the way. */
const RENEW_BEFORE_MS = 30_000;

/** Shows an agent what a login left behind, and renews it in time. */
export function createStoredProvider(options: StoredProviderOptions): CredentialProvider {
  const { allowLoopback, now, onSecret, onUnauthorized, schemes, vault } = options;
  const { agent } = options.known;
  let known = options.known;
  /** One renewal at a time, shared by all requests that need it. */
  const renewing = new Map<string, Promise<void>>();

  function current(): readonly StoredCredential[] {
    const credentials = schemes.flatMap((name) => known.schemes[name] ?? []);
    if (onSecret !== undefined) for (const secret of credentials.flatMap(secretsOf)) onSecret(secret);
    return credentials;
  }

  async function renewAll(isDue: (credential: OAuthCredential) => boolean, refused: boolean): Promise<void> {
    for (const name of schemes) {
      const credential = known.schemes[name];
      if (credential?.kind !== "oauth" || !isDue(credential)) continue;
      let running = renewing.get(name);
      if (running === undefined) {
        running = renewOne(name, credential, refused).finally(() => renewing.delete(name));
        renewing.set(name, running);
      }
      await running;
    }
  }

  async function renewOne(name: string, used: OAuthCredential, refused: boolean): Promise<void> {
    const { isRenewable, renew } = await import("./oauth/tokens.ts");
    const { isFinalRefusal } = await import("./oauth/errors.ts");
    const server = { fetch: options.fetch ?? globalThis.fetch, allowLoopback };
    const usable = !refused && (used.expiresAt ?? Number.POSITIVE_INFINITY) > now();
    let failure: unknown;
    known = await vault.update(agent, async (kept) => {
      const newest = kept.schemes[name];
      // Another process was quicker: its tokens are the ones that count now.
      if (newest?.kind !== "oauth" || newest.accessToken !== used.accessToken || !isRenewable(newest)) return kept;
      try {
        return { ...kept, schemes: { ...kept.schemes, [name]: await renew(newest, server, now) } };
      } catch (error) {
        failure = error;
        if (!isFinalRefusal(error)) return kept;
        const { refreshToken: _, ...spent } = newest;
        return { ...kept, schemes: { ...kept.schemes, [name]: spent } };
      }
    });
    const kept = known.schemes[name];
    if (kept === undefined) throw loginRequired(agent, "was removed");
    if (usable || (kept.kind === "oauth" && kept.accessToken !== used.accessToken)) return;
    if (failure !== undefined && !isFinalRefusal(failure)) {
      throw new ProtocolError("UNAVAILABLE", `The login at ${used.issuer} could not be renewed; try again later.`, {
        cause: failure,
      });
    }
    // Refused, and nothing newer can be obtained: the agent's own error is more useful than ours.
    if (refused && failure === undefined) return;
    throw loginRequired(agent, "has expired and cannot be renewed");
  }

  function wasRefused({ headers }: Refusal): boolean {
    const presented = toRequestParameters(current()).headers;
    return headers === undefined || Object.entries(presented).every(([name, value]) => headers[name] === value);
  }

  return {
    async headersFor(_url, refusal) {
      if (refusal === undefined) await renewAll((credential) => isExpiring(credential, now), false);
      else if (wasRefused(refusal)) await renewAll(() => true, true);
      return toRequestParameters(current()).headers;
    },
    async queryFor() {
      return toRequestParameters(current()).query;
    },
    onUnauthorized,
  };
}

export function isExpiring({ expiresAt }: OAuthCredential, now: () => number): boolean {
  return expiresAt !== undefined && expiresAt - RENEW_BEFORE_MS <= now();
}

function loginRequired(agent: string, what: string): ProtocolError {
  return new ProtocolError("UNAUTHENTICATED", `The login for ${agent} ${what}. Log in again.`);
}

/** Names of headers are lower-case, so that two schemes that use one header meet in it. */
export function toRequestParameters(credentials: readonly StoredCredential[]) {
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
      case "basic":
        headers.authorization = `Basic ${Buffer.from(`${credential.user}:${credential.password}`).toString("base64")}`;
        break;
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

/** What a file holds, or undefined for what was not written by us. Schemes that cannot be read are left out. */
export function readAgentCredentials(value: unknown): AgentCredentials | undefined {
  if (!isObject(value) || !isNonEmptyString(value.agent) || !isObject(value.schemes)) return undefined;
  const schemes = Object.entries(value.schemes).flatMap(([name, stored]) => {
    const credential = readCredential(stored);
    return credential === undefined ? [] : [[name, credential] as const];
  });
  const shared = value.shared === true && { shared: true };
  return { agent: value.agent, ...shared, origins: stringsIn(value.origins), schemes: Object.fromEntries(schemes) };
}

function readCredential(value: unknown): StoredCredential | undefined {
  if (!isObject(value)) return undefined;
  switch (value.kind) {
    case "bearer":
      return isNonEmptyString(value.token) ? { kind: "bearer", token: value.token } : undefined;
    case "basic":
      return typeof value.user === "string" && typeof value.password === "string"
        ? { kind: "basic", user: value.user, password: value.password }
        : undefined;
    case "api-key": {
      const { key, location, parameter } = value;
      if (!isNonEmptyString(key) || !isNonEmptyString(parameter)) return undefined;
      const known = KEY_LOCATIONS.find((one) => one === location);
      return known && { kind: "api-key", location: known, parameter, key };
    }
    case "oauth":
      return readOAuth(value);
    default:
      return undefined;
  }
}

function readOAuth(value: JsonObject): OAuthCredential | undefined {
  const { accessToken, expiresAt, issuer, refreshToken, resource, revocationEndpoint, tokenEndpoint } = value;
  const grant = GRANTS.find((known) => known === value.grant);
  const client = readClient(value.client);
  if (grant === undefined || client === undefined) return undefined;
  if (!isNonEmptyString(accessToken) || !isNonEmptyString(issuer) || !isNonEmptyString(tokenEndpoint)) return undefined;
  return {
    kind: "oauth",
    grant,
    issuer,
    tokenEndpoint,
    client,
    scopes: stringsIn(value.scopes),
    accessToken,
    revocationEndpoint: isNonEmptyString(revocationEndpoint) ? revocationEndpoint : undefined,
    resource: isNonEmptyString(resource) ? resource : undefined,
    expiresAt: typeof expiresAt === "number" && Number.isFinite(expiresAt) ? expiresAt : undefined,
    refreshToken: isNonEmptyString(refreshToken) ? refreshToken : undefined,
  };
}

function readClient(value: unknown): OAuthClient | undefined {
  if (!isObject(value) || !isNonEmptyString(value.id)) return undefined;
  const { id, method, secret } = value;
  if (method !== "basic" && method !== "post" && method !== "none") return undefined;
  return { id, method, secret: isNonEmptyString(secret) ? secret : undefined };
}

function isNonEmptyString(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

function stringsIn(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter(isNonEmptyString) : [];
}
