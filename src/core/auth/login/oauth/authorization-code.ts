/** Logging in by a browser: authorization code with PKCE, the answer comes to a port of this machine. */

import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import {
  authorizationCodeGrant,
  buildAuthorizationUrl,
  calculatePKCECodeChallenge,
  randomNonce,
  randomPKCECodeVerifier,
  randomState,
} from "openid-client";
import { canParseUrl } from "../../../model/url.ts";
import { LoginError, type OAuthCredential } from "../contract.ts";
import type { AuthorizationServer } from "./authorization-server.ts";
import { requestParameters, type TokenRequest, toCredential } from "./tokens.ts";

interface LoopbackOptions {
  /** Known only to the server that was asked: a request without it comes from someone else and is ignored. */
  readonly state: string;
  /** For servers that only redirect to an address they know; any free one otherwise. */
  readonly port?: number | undefined;
  readonly signal: AbortSignal;
}

const HOST = "127.0.0.1";
const PATH = "/callback";

/** Where a browser brings the answer of an authorization server: RFC 8252, section 7.3. */
export async function listenOnLoopback({ port = 0, signal, state }: LoopbackOptions) {
  let arrive: (url: URL) => void = () => {};
  let giveUp: (error: Error) => void = () => {};
  const answer = new Promise<URL>((resolve, reject) => {
    arrive = resolve;
    giveUp = reject;
  });
  // A login that is given up early may not have a waiter yet.
  answer.catch(() => {});
  const server = createServer((request, response) => {
    const base = `http://${HOST}:${(server.address() as AddressInfo).port}`;
    const url = new URL(canParseUrl(request.url ?? "", base) ? (request.url ?? "") : "/", base);
    if (request.method !== "GET" || url.pathname !== PATH) return respond(response, 404, "Not found.");
    if (url.searchParams.get("state") !== state) return respond(response, 400, "This login was not started here.");
    const failed = url.searchParams.has("error");
    respond(response, 200, failed ? "The login was refused." : "You are logged in. You can close this window.");
    arrive(url);
  });
  const onAbort = (): void => giveUp(new LoginError("aborted", "The login was cancelled before it was complete."));
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error) => {
      reject(
        new LoginError("unavailable", `Cannot listen on port ${port} for the redirect of the login.`, { cause: error }),
      );
    });
    server.listen(port, HOST, resolve);
  });
  if (signal.aborted) onAbort();
  else signal.addEventListener("abort", onAbort, { once: true });
  return {
    redirectUri: `http://${HOST}:${(server.address() as AddressInfo).port}${PATH}`,
    /** The address the browser came back to, with what the server added to it. */
    answer,
    async close(): Promise<void> {
      signal.removeEventListener("abort", onAbort);
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeIdleConnections();
      });
    },
  };
}

/** The connection ends with the answer, so that an idle browser does not keep the listener open. */
function respond(response: ServerResponse, status: number, text: string): void {
  response
    .writeHead(status, {
      "content-type": "text/plain; charset=utf-8",
      "cache-control": "no-store",
      "referrer-policy": "no-referrer",
      connection: "close",
    })
    .end(`${text}\n`);
}

interface CodeOptions {
  /** The address to open in a browser. */
  readonly onAddress: (url: string) => void;
  readonly redirectPort?: number | undefined;
  readonly signal: AbortSignal;
}

export async function logInWithBrowser(
  server: AuthorizationServer,
  request: TokenRequest,
  { onAddress, redirectPort: port, signal }: CodeOptions,
): Promise<OAuthCredential> {
  if (server.metadata.authorization_endpoint === undefined) {
    throw new LoginError("unsupported", `${server.metadata.issuer} has no authorization endpoint.`);
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
      // OpenID Connect 11: without a prompt, a request for a refresh token is ignored.
      ...(request.scopes.includes("offline_access") ? { prompt: "consent" } : {}),
    });
    onAddress(url.href);
    const answer = await loopback.answer;
    // RFC 9207 is checked by the library, against an issuer that is known. Elsewhere the redirect address of this one
    // login, which no other server knows, keeps servers apart.
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
  } finally {
    await loopback.close();
  }
}
