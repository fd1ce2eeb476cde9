/** Logging in for a scheme that gives tokens: finds the server, takes the flow, returns what is to be kept. */
import type { Grant, OAuthCredential } from "./contract.ts";
import { LoginError } from "./errors.ts";
import { logInByCode } from "./oauth/authorization-code.ts";
import {
  type AuthorizationServer,
  clientFor,
  findAuthorizationServer,
  type ServerOptions,
} from "./oauth/authorization-server.ts";
import { type DeviceCode, logInByDevice } from "./oauth/device-code.ts";
import { logInByClientCredentials, type TokenRequest } from "./oauth/tokens.ts";
import type { OAuthScheme, OpenIdScheme } from "./scheme.ts";

export interface LogInOptions extends ServerOptions {
  readonly scheme: OAuthScheme | OpenIdScheme;
  /** Default: the one of the scheme; with OpenID Connect, a browser. */
  readonly grant?: Grant | undefined;
  readonly clientId: string;
  readonly clientSecret?: string | undefined;
  /** Scopes the person asked for, instead of `requiredScopes`. */
  readonly scopes?: readonly string[] | undefined;
  readonly requiredScopes: readonly string[];
  readonly resource?: string | undefined;
  readonly redirectPort?: number | undefined;
  readonly signal: AbortSignal;
  readonly now: () => number;
  /** Who will be asked, before anything is sent there. */
  readonly onServer: (issuer: string) => void;
  readonly onAddress: (url: string) => void;
  readonly onCode: (code: DeviceCode) => void;
}

export async function logIn(options: LogInOptions): Promise<OAuthCredential> {
  const { clientId, clientSecret, now, onAddress, onCode, onServer, redirectPort, resource, scheme, signal } = options;
  const grant = options.grant ?? (scheme.kind === "oauth2" ? scheme.grant : "authorization-code");
  if (grant === "client-credentials" && clientSecret === undefined) {
    throw new LoginError("incomplete", "Client credentials are a client's id and its secret; the secret is missing.");
  }
  const server = await findAuthorizationServer(scheme, options);
  onServer(server.metadata.issuer);
  const request: TokenRequest = {
    client: clientFor(server.metadata, clientId, clientSecret),
    scopes: scopesFor(options, grant, server),
    resource,
    now,
  };
  switch (grant) {
    case "client-credentials":
      return logInByClientCredentials(server, request);
    case "device-code":
      return logInByDevice(server, request, { onCode, signal });
    case "authorization-code":
      return logInByCode(server, request, { onAddress, port: redirectPort, signal });
  }
}

function scopesFor(options: LogInOptions, grant: Grant, server: AuthorizationServer): readonly string[] {
  const { requiredScopes, scheme, scopes } = options;
  const asked = scopes ?? requiredScopes;
  if (grant === "client-credentials") return [...new Set(asked)];
  const openId = scheme.kind === "openid" ? ["openid"] : [];
  // A login that outlives its first token is what a person expects who did not choose scopes.
  const offersRefresh = scopes === undefined && server.metadata.scopes_supported?.includes("offline_access") === true;
  return [...new Set([...openId, ...asked, ...(offersRefresh ? ["offline_access"] : [])])];
}
