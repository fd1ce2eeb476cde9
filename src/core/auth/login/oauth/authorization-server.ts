/** The server that issues tokens: found from the card, checked before any secret is sent there. */

import {
  allowInsecureRequests,
  type ClientAuth,
  ClientSecretBasic,
  ClientSecretPost,
  Configuration,
  type CustomFetch,
  customFetch,
  discovery,
  None,
  type ServerMetadata,
} from "openid-client";
import { parseUrl } from "../../../model/url.ts";
import { isLoopback } from "../../../wire/loopback.ts";
import { GuardedFetchError } from "../../guarded-fetch/errors.ts";
import { LoginError, type OAuthClient } from "../contract.ts";
import type { OAuthScheme, OpenIdScheme } from "../security-schemes.ts";
import { toLoginError } from "./errors.ts";

export interface ServerOptions {
  readonly fetch: typeof globalThis.fetch;
  /** Servers on this machine may be asked without TLS: only where the agent itself is on this machine. */
  readonly allowLoopback: boolean;
  /** The only issuer to accept. */
  readonly issuer?: string | undefined;
}

export interface AuthorizationServer {
  readonly metadata: ServerMetadata;
  /** False where the card names bare endpoints: the issuer is then a name of ours, and nothing can be checked by it. */
  readonly issuerKnown: boolean;
  configure(client: OAuthClient): Configuration;
}

const TIMEOUT_SECONDS = 20;
const MAX_ANSWER_BYTES = 1024 * 1024;
const ENDPOINTS = [
  "authorization_endpoint",
  "token_endpoint",
  "device_authorization_endpoint",
  "revocation_endpoint",
  "jwks_uri",
] as const;

export async function findAuthorizationServer(
  scheme: OAuthScheme | OpenIdScheme,
  options: ServerOptions,
): Promise<AuthorizationServer> {
  const url = scheme.kind === "openid" ? scheme.discoveryUrl : scheme.metadataUrl;
  const metadata =
    url === undefined ? endpointsOf(scheme as OAuthScheme) : await discover(url, scheme.kind === "openid", options);
  for (const name of ENDPOINTS) checkEndpoint(name, metadata[name], options);
  const { issuer } = options;
  if (issuer !== undefined && metadata.issuer !== (url === undefined ? new URL(issuer).origin : issuer)) {
    throw new LoginError("untrusted", `The agent's card leads to ${metadata.issuer}, not to ${issuer}.`);
  }
  return {
    metadata,
    issuerKnown: url !== undefined,
    configure: (client) => configure(metadata, client, options),
  };
}

/** The server of an earlier login, as far as it was stored. */
export function configureKnownServer(
  metadata: ServerMetadata,
  client: OAuthClient,
  options: ServerOptions,
): Configuration {
  for (const name of ENDPOINTS) checkEndpoint(name, metadata[name], options);
  return configure(metadata, client, options);
}

function endpointsOf({ authorizationUrl, deviceAuthorizationUrl, tokenUrl }: OAuthScheme): ServerMetadata {
  if (tokenUrl === undefined) throw new LoginError("unsupported", "The card has no token URL.");
  return {
    issuer: new URL(tokenUrl).origin,
    token_endpoint: tokenUrl,
    authorization_endpoint: authorizationUrl,
    device_authorization_endpoint: deviceAuthorizationUrl,
  };
}

async function discover(url: string, openId: boolean, options: ServerOptions): Promise<ServerMetadata> {
  checkEndpoint("metadata URL", url, options);
  let found: ServerMetadata;
  try {
    const configuration = await discovery(new URL(url), "unused", undefined, None(), {
      algorithm: openId ? "oidc" : "oauth2",
      timeout: TIMEOUT_SECONDS,
      [customFetch]: boundedFetch(options.fetch),
      execute: options.allowLoopback ? [allowInsecureRequests] : undefined,
    });
    const { supportsPKCE: _, ...metadata } = configuration.serverMetadata();
    found = metadata;
  } catch (error) {
    throw toLoginError(error, url);
  }
  const expected = expectedIssuer(url);
  if (expected !== undefined && expected !== withoutSlash(found.issuer)) {
    throw new LoginError("untrusted", `The metadata at ${url} names another issuer, ${found.issuer}.`);
  }
  return found;
}

/** OpenID Connect Discovery 4.3, RFC 8414 3.3: the document belongs to the issuer whose name its address is made of. */
function expectedIssuer(url: string): string | undefined {
  const { origin, pathname } = new URL(url);
  const [before = "", after] = pathname.split(/\/\.well-known\/[^/]+/, 2);
  return after === undefined ? undefined : withoutSlash(`${origin}${before}${after}`);
}

function withoutSlash(url: string): string {
  return url.replace(/\/+$/, "");
}

function checkEndpoint(name: string, url: string | undefined, { allowLoopback }: ServerOptions): void {
  if (url === undefined) return;
  const { hostname, protocol } = parseUrl(url) ?? { hostname: "", protocol: "" };
  if (protocol === "https:" || (protocol === "http:" && allowLoopback && isLoopback(hostname))) return;
  throw new LoginError("untrusted", `The ${name} of the authorization server must be https.`);
}

function configure(metadata: ServerMetadata, client: OAuthClient, options: ServerOptions): Configuration {
  const configuration = new Configuration(
    metadata,
    client.id,
    client.secret === undefined ? {} : { client_secret: client.secret },
    authenticationOf(client),
  );
  configuration.timeout = TIMEOUT_SECONDS;
  configuration[customFetch] = boundedFetch(options.fetch);
  if (options.allowLoopback) allowInsecureRequests(configuration);
  return configuration;
}

function authenticationOf({ method, secret }: OAuthClient): ClientAuth {
  if (method === "none" || secret === undefined) return None();
  return method === "basic" ? ClientSecretBasic(secret) : ClientSecretPost(secret);
}

/** RFC 8414: a server that lists no methods supports HTTP Basic. */
export function clientFor(metadata: ServerMetadata, id: string, secret: string | undefined): OAuthClient {
  if (secret === undefined) return { id, method: "none" };
  const methods = metadata.token_endpoint_auth_methods_supported ?? ["client_secret_basic"];
  return { id, secret, method: methods.includes("client_secret_basic") ? "basic" : "post" };
}

/** The card chose the server, so the answer is untrusted. */
function boundedFetch(fetch: typeof globalThis.fetch): CustomFetch {
  return async (url, init) => {
    const { body, headers, method, redirect, signal } = init;
    const response = await fetch(url, {
      headers,
      method,
      redirect,
      body: body ?? undefined,
      signal,
    }).catch((error: unknown) => {
      if (!(error instanceof GuardedFetchError) || error.code !== "forbidden-target") throw error;
      const { host } = new URL(url);
      const where = `The agent's card leads to ${host}, which is in a private network.`;
      throw new LoginError("untrusted", `${where} Only an issuer that you name explicitly may be in one.`);
    });
    if (response.body === null) return response;
    const chunks: Uint8Array[] = [];
    let size = 0;
    for await (const chunk of response.body) {
      size += chunk.byteLength;
      if (size > MAX_ANSWER_BYTES)
        throw new LoginError("unavailable", "The authorization server's answer is too large.");
      chunks.push(chunk);
    }
    return new Response(Buffer.concat(chunks), { status: response.status, headers: response.headers });
  };
}
