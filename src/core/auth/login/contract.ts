/** Why a login did not succeed. Local: what crosses the wire is a `ProtocolError`. */

export type LoginErrorCode =
  /** The authorization server, or the person, refused. */
  | "refused"
  /** The authorization server cannot be reached or does not behave. */
  | "unavailable"
  /** The server's answer contradicts what is known about it. */
  | "untrusted"
  /** None of the agent's security schemes is supported. */
  | "unsupported"
  /** The card has no scheme of the name that was given. */
  | "unknown-scheme"
  /** Something is needed that was not given. */
  | "incomplete"
  /** Given up before the end. */
  | "aborted";

export class LoginError extends Error {
  override readonly name = "LoginError";
  readonly code: LoginErrorCode;

  constructor(code: LoginErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** Adds credentials to one request at a time. Used only for origins that may receive them. */
export interface CredentialProvider {
  /**
   * Headers for a request to `url`. With a refusal: those given before were not accepted, and a source that can get better
   * ones does so now. The request is repeated once if they differ.
   */
  headersFor(url: string, refusal?: Refusal): Promise<Readonly<Record<string, string>>>;
  /** Query parameters, for agents that expect their key there. gRPC has no query. */
  queryFor?(url: string): Promise<Readonly<Record<string, string>>>;
  /** The agent refused these credentials, also after another look. */
  onUnauthorized?(url: string, challenge: string): void;
}

export interface Refusal {
  /** `WWW-Authenticate` of the answer, where it had one. */
  readonly challenge?: string;
  /** The headers that were refused; others may have been got for another request since. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** By preference. */
export const GRANTS = ["authorization-code", "device-code", "client-credentials"] as const;
export type Grant = (typeof GRANTS)[number];

export const KEY_LOCATIONS = ["header", "query", "cookie"] as const;

/** An API key, without the key itself. */
export interface ApiKeyScheme {
  readonly kind: "api-key";
  readonly location: (typeof KEY_LOCATIONS)[number];
  readonly parameter: string;
}

export interface OAuthClient {
  readonly id: string;
  readonly secret?: string;
  readonly method: "basic" | "post" | "none";
}

/**
 * Tokens, and all that is needed to renew them. The endpoints are those of the login: a card that changes later cannot
 * have a refresh token sent elsewhere.
 */
export interface OAuthCredential {
  readonly kind: "oauth";
  readonly grant: Grant;
  readonly issuer: string;
  readonly tokenEndpoint: string;
  readonly revocationEndpoint?: string;
  readonly client: OAuthClient;
  readonly scopes: readonly string[];
  readonly resource?: string;
  readonly accessToken: string;
  /** Milliseconds since the epoch; absent if the server did not send it. */
  readonly expiresAt?: number;
  readonly refreshToken?: string;
}

export type StoredCredential =
  | (ApiKeyScheme & { readonly key: string })
  | { readonly kind: "bearer"; readonly token: string }
  | { readonly kind: "basic"; readonly user: string; readonly password: string }
  | OAuthCredential;

/** What is known for one agent: a credential for each of its security schemes, by the scheme's name. */
export interface AgentCredentials {
  /** URL of the agent: that of its card, without the well-known path. */
  readonly agent: string;
  /** The person who logged in wants it used for other agents of the same origin that name the same issuer. */
  readonly shared?: boolean;
  /** Further origins the person who logged in allowed. */
  readonly origins: readonly string[];
  readonly schemes: Readonly<Record<string, StoredCredential>>;
}

/** Keeps credentials between runs. */
export interface CredentialVault {
  read(agent: string): Promise<AgentCredentials | undefined>;
  list(): Promise<readonly AgentCredentials[]>;
  /**
   * Replaces what is stored for an agent by what `change` returns; nothing is stored if that has no scheme. One change
   * of one agent at a time, also between processes.
   */
  update(
    agent: string,
    change: (current: AgentCredentials) => AgentCredentials | Promise<AgentCredentials>,
  ): Promise<AgentCredentials>;
}
