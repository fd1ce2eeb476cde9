/** Tokens: taken, renewed and given back. */
import {
  clientCredentialsGrant,
  refreshTokenGrant,
  type ServerMetadata,
  type TokenEndpointResponse,
  tokenRevocation,
} from "openid-client";
import { TOKEN_ALGORITHMS } from "../../verify/jwt.ts";
import type { Grant, OAuthClient, OAuthCredential } from "../contract.ts";
import { type AuthorizationServer, configureKnownServer, type ServerOptions } from "./authorization-server.ts";
import { isIrrevocable, toLoginError } from "./errors.ts";

/** What a login requests. */
export interface TokenRequest {
  readonly client: OAuthClient;
  readonly scopes: readonly string[];
  /** RFC 8707: the resource the token is for, with servers that require it. */
  readonly resource?: string | undefined;
  readonly now: () => number;
}

export function requestParameters({
  resource,
  scopes,
}: Pick<TokenRequest, "resource" | "scopes">): Record<string, string> {
  return {
    ...(scopes.length === 0 ? {} : { scope: scopes.join(" ") }),
    ...(resource === undefined ? {} : { resource }),
  };
}

export function toCredential(
  grant: Grant,
  server: AuthorizationServer,
  request: TokenRequest,
  answer: TokenEndpointResponse,
): OAuthCredential {
  const { issuer, revocation_endpoint: revocationEndpoint, token_endpoint: tokenEndpoint = "" } = server.metadata;
  return {
    kind: "oauth",
    grant,
    issuer,
    tokenEndpoint,
    revocationEndpoint,
    client: request.client,
    resource: request.resource,
    ...tokensOf(answer, request.scopes, request.now()),
  };
}

type Tokens = Pick<OAuthCredential, "accessToken" | "expiresAt" | "refreshToken" | "scopes">;

function tokensOf(answer: TokenEndpointResponse, asked: readonly string[], now: number): Tokens {
  const { access_token: accessToken, expires_in: expiresIn, refresh_token: refreshToken, scope } = answer;
  return {
    accessToken,
    scopes: scope === undefined ? asked : scope.split(" ").filter((one) => one !== ""),
    expiresAt: expiresIn === undefined ? undefined : now + expiresIn * 1000,
    refreshToken,
  };
}

export async function logInByClientCredentials(
  server: AuthorizationServer,
  request: TokenRequest,
): Promise<OAuthCredential> {
  const answer = await clientCredentialsGrant(server.configure(request.client), requestParameters(request));
  return toCredential("client-credentials", server, request, answer);
}

/** Whether new tokens can be had without a person. */
export function isRenewable({ grant, refreshToken }: OAuthCredential): boolean {
  return grant === "client-credentials" || refreshToken !== undefined;
}

/** Rejects as the library does, so that the caller can distinguish a final refusal from a temporary failure. */
export async function renew(
  credential: OAuthCredential,
  options: ServerOptions,
  now: () => number,
): Promise<OAuthCredential> {
  const configuration = configureKnownServer(serverOf(credential), credential.client, options);
  const { refreshToken, resource, scopes } = credential;
  const parameters = requestParameters({ resource, scopes });
  const answer =
    credential.grant === "client-credentials" || refreshToken === undefined
      ? await clientCredentialsGrant(configuration, parameters)
      : await refreshTokenGrant(configuration, refreshToken, resource === undefined ? {} : { resource });
  const { expiresAt: _, ...kept } = credential;
  // A server that does not rotate refresh tokens sends none: the old one stays good.
  const tokens = tokensOf(answer, scopes, now());
  return { ...kept, ...tokens, refreshToken: tokens.refreshToken ?? refreshToken };
}

/** Revokes the tokens; false where the server has no revocation endpoint. */
export async function revoke(credential: OAuthCredential, options: ServerOptions): Promise<boolean> {
  const { accessToken, refreshToken, revocationEndpoint } = credential;
  if (revocationEndpoint === undefined) return false;
  try {
    const configuration = configureKnownServer(serverOf(credential), credential.client, options);
    // By RFC 7009 the access tokens of a refresh token go with it; not all servers do that.
    if (refreshToken !== undefined) {
      await tokenRevocation(configuration, refreshToken, { token_type_hint: "refresh_token" });
    }
    await tokenRevocation(configuration, accessToken, { token_type_hint: "access_token" }).catch((error: unknown) => {
      if (!isIrrevocable(error)) throw error;
    });
    return true;
  } catch (error) {
    throw toLoginError(error, credential.issuer);
  }
}

function serverOf({ issuer, revocationEndpoint, tokenEndpoint }: OAuthCredential): ServerMetadata {
  return {
    issuer,
    token_endpoint: tokenEndpoint,
    // An ID token that comes with a renewal is not used for anything, so that its signature may be of any kind.
    id_token_signing_alg_values_supported: [...TOKEN_ALGORITHMS],
    revocation_endpoint: revocationEndpoint,
  };
}
