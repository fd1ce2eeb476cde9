/** Logging in for a scheme that gives tokens: finds the server, takes the flow, returns what to store. */

import { initiateDeviceAuthorization, pollDeviceAuthorizationGrant } from "openid-client";
import { type Grant, LoginError, type OAuthCredential } from "../contract.ts";
import type { OAuthScheme, OpenIdScheme } from "../security-schemes.ts";
import { logInWithBrowser } from "./authorization-code.ts";
import {
  type AuthorizationServer,
  clientFor,
  findAuthorizationServer,
  type ServerOptions,
} from "./authorization-server.ts";
import { toLoginError } from "./errors.ts";
import { logInByClientCredentials, requestParameters, type TokenRequest, toCredential } from "./tokens.ts";

interface DeviceCode {
  readonly userCode: string;
  readonly verificationUri: string;
  /** With the code in it, where the server offers that. */
  readonly completeUri: string | undefined;
  readonly expiresInSeconds: number;
}

/** RFC 8628. */
async function logInOnOtherDevice(
  server: AuthorizationServer,
  request: TokenRequest,
  { onCode, signal }: Pick<LogInOptions, "onCode" | "signal">,
): Promise<OAuthCredential> {
  if (server.metadata.device_authorization_endpoint === undefined) {
    throw new LoginError("unsupported", `${server.metadata.issuer} does not support the device authorization flow.`);
  }
  const configuration = server.configure(request.client);
  const begun = await initiateDeviceAuthorization(configuration, requestParameters(request));
  onCode({
    userCode: begun.user_code,
    verificationUri: begun.verification_uri,
    completeUri: begun.verification_uri_complete,
    expiresInSeconds: begun.expires_in,
  });
  const resource: Record<string, string> = request.resource === undefined ? {} : { resource: request.resource };
  const tokens = await pollDeviceAuthorizationGrant(configuration, begun, resource, { signal });
  return toCredential("device-code", server, request, tokens);
}

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
  const { clientId, clientSecret, now, onServer, resource, scheme } = options;
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
  try {
    return await FLOWS[grant](server, request, options);
  } catch (error) {
    throw toLoginError(error, server.metadata.issuer);
  }
}

const FLOWS = {
  "client-credentials": logInByClientCredentials,
  "device-code": logInOnOtherDevice,
  "authorization-code": logInWithBrowser,
} as const satisfies Record<Grant, unknown>;

function scopesFor(options: LogInOptions, grant: Grant, server: AuthorizationServer): readonly string[] {
  const { requiredScopes, scheme, scopes } = options;
  const asked = scopes ?? requiredScopes;
  if (grant === "client-credentials") return [...new Set(asked)];
  const openId = scheme.kind === "openid" ? ["openid"] : [];
  // Users who did not choose scopes expect a login to outlive its first token.
  const offersRefresh = scopes === undefined && server.metadata.scopes_supported?.includes("offline_access") === true;
  return [...new Set([...openId, ...asked, ...(offersRefresh ? ["offline_access"] : [])])];
}
