/** Logs in as a program: no person takes part, and a new token can be requested at any time. */

import { ProtocolError } from "../../model/errors.ts";
import { type CredentialProvider, LoginError, type OAuthCredential } from "./contract.ts";
import { isExpiring, toRequestParameters } from "./stored-credentials.ts";

interface ClientCredentialsOptions {
  /** Where tokens are issued: the endpoint itself, or an issuer whose metadata names it. */
  readonly server: { readonly tokenUrl: string } | { readonly issuer: string };
  readonly clientId: string;
  readonly clientSecret: string;
  readonly scopes?: readonly string[] | undefined;
  readonly fetch: typeof globalThis.fetch;
  /** Servers on this machine may be asked without TLS. */
  readonly allowLoopback: boolean;
  readonly now: () => number;
}

/** One token for all requests, renewed before it expires and when it is refused. */
export function createClientCredentialsProvider(options: ClientCredentialsOptions): CredentialProvider {
  let current: OAuthCredential | undefined;
  let requesting: Promise<OAuthCredential> | undefined;

  async function request(): Promise<OAuthCredential> {
    requesting ??= requestToken(options).finally(() => {
      requesting = undefined;
    });
    current = await requesting;
    return current;
  }

  return {
    async headersFor(_url, refusal) {
      const known = current;
      const headers = known && toRequestParameters([known]).headers;
      const isRefused = refusal !== undefined && refusal.headers?.authorization === headers?.authorization;
      if (headers !== undefined && !isRefused && !isExpiring(known as OAuthCredential, options.now)) return headers;
      return toRequestParameters([await request()]).headers;
    },
  };
}

async function requestToken(options: ClientCredentialsOptions): Promise<OAuthCredential> {
  const { allowLoopback, clientId, clientSecret, fetch, now, scopes = [], server } = options;
  const { logIn } = await import("./oauth/log-in.ts");
  const grant = "client-credentials";
  try {
    return await logIn({
      scheme:
        "tokenUrl" in server
          ? { kind: "oauth2", grant, scopes: [], tokenUrl: server.tokenUrl }
          : { kind: "openid", discoveryUrl: `${server.issuer.replace(/\/+$/, "")}/.well-known/openid-configuration` },
      grant,
      clientId,
      clientSecret,
      requiredScopes: scopes,
      signal: new AbortController().signal,
      now,
      fetch,
      allowLoopback,
      onServer() {},
      onAddress() {},
      onCode() {},
    });
  } catch (cause) {
    if (!(cause instanceof LoginError)) throw cause;
    const code = cause.code === "unavailable" ? "UNAVAILABLE" : "UNAUTHENTICATED";
    throw new ProtocolError(code, `No token could be obtained. ${cause.message}`, { cause });
  }
}
