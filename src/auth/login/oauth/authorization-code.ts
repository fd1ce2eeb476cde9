/** Logging in by a browser: authorization code with PKCE, the answer comes to a port of this machine. */
import {
  authorizationCodeGrant,
  buildAuthorizationUrl,
  calculatePKCECodeChallenge,
  randomNonce,
  randomPKCECodeVerifier,
  randomState,
} from "openid-client";
import type { OAuthCredential } from "../contract.ts";
import { LoginError } from "../errors.ts";
import type { AuthorizationServer } from "./authorization-server.ts";
import { loginError } from "./failure.ts";
import { listenOnLoopback } from "./loopback.ts";
import { requestParameters, type TokenRequest, toCredential } from "./tokens.ts";

export interface CodeOptions {
  /** The address to open in a browser. */
  readonly onAddress: (url: string) => void;
  readonly port?: number | undefined;
  readonly signal: AbortSignal;
}

export async function logInByCode(
  server: AuthorizationServer,
  request: TokenRequest,
  { onAddress, port, signal }: CodeOptions,
): Promise<OAuthCredential> {
  if (server.metadata.authorization_endpoint === undefined) {
    throw new LoginError("unsupported", `${server.metadata.issuer} has no page to log in at.`);
  }
  const configuration = server.configure(request.client);
  const state = randomState();
  const verifier = randomPKCECodeVerifier();
  const isOpenId = request.scopes.includes("openid");
  const nonce = isOpenId ? randomNonce() : undefined;
  const loopback = await listenOnLoopback({ state, port, signal });
  try {
    const url = buildAuthorizationUrl(configuration, {
      ...requestParameters(request),
      redirect_uri: loopback.redirectUri,
      state,
      code_challenge: await calculatePKCECodeChallenge(verifier),
      code_challenge_method: "S256",
      ...(nonce === undefined ? {} : { nonce }),
      // OpenID Connect 11: without asking, the wish for a refresh token is ignored.
      ...(request.scopes.includes("offline_access") ? { prompt: "consent" } : {}),
    });
    onAddress(url.href);
    const answer = await loopback.answer;
    // RFC 9207 is checked by the library, against an issuer that is known. Elsewhere the redirect address of this one
    // login, which no other server was told, keeps servers apart.
    if (!server.issuerKnown) answer.searchParams.delete("iss");
    const tokens = await authorizationCodeGrant(
      configuration,
      answer,
      {
        pkceCodeVerifier: verifier,
        expectedState: state,
        ...(nonce === undefined ? {} : { expectedNonce: nonce, idTokenExpected: true }),
      },
      request.resource === undefined ? {} : { resource: request.resource },
    );
    return toCredential("authorization-code", server, request, tokens);
  } catch (error) {
    throw loginError(error, server.metadata.issuer);
  } finally {
    await loopback.close();
  }
}
