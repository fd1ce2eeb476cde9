import type { JsonObject } from "../../model/json.ts";
import type { Log } from "../../model/ports.ts";
import { Authenticator } from "./authenticator.ts";
import { isOwnerName, type TokenCheck, type Verifier } from "./contract.ts";
import { createIssuerFetch, type Fetch, openIdConnectUrl } from "./issuer-keys.ts";
import { createJwtCheck, hasUserInfo, type JwtOptions } from "./jwt.ts";
import {
  type ApiKeyEntry,
  type ApiKeyPlaces,
  type BasicEntry,
  type CertificateName,
  createApiKeyTokenCheck,
  createApiKeyVerifier,
  createBasicVerifier,
  createBearerVerifier,
  createCertificateVerifier,
  isKeyHeader,
  toApiKeys,
} from "./verifiers.ts";

/** Who may call. */
export interface AuthOptions {
  /** Accept callers without credentials, also from other machines. Default: false. */
  readonly anonymous?: boolean;
  /** Valid API keys: `{ key, owner, scopes? }`, any number. */
  readonly apiKeys?: readonly ApiKeyEntry[];
  /** Where API keys are sent besides `Authorization: Bearer`: `{ header?, query?, cookie? }`. Default: `X-API-Key`. */
  readonly apiKey?: ApiKeyPlaces;
  /** Users for HTTP Basic: `{ user, password, owner?, scopes? }`. */
  readonly basic?: readonly BasicEntry[];
  /** Tokens of an OAuth or OpenID Connect issuer: `{ issuer, audience, … }`. */
  readonly jwt?: JwtOptions;
  /** `ca`: file of the authorities whose client certificates are trusted. `owner`: where in them the owner stands. */
  readonly mtls?: { readonly ca: string; readonly owner?: CertificateName };
}

interface AuthenticatorTools {
  /** Asked before all others. */
  readonly customVerifier?: Verifier;
  /** For the documents of an issuer. Default: one that reaches what the operator named and what is public. */
  readonly fetch?: Fetch;
  readonly now: () => number;
  readonly log: Log;
  readonly failedLogins: number;
}

/** Whether callers can show who they are by any of these. */
export function identifiesCallers({ apiKeys = [], basic = [], jwt, mtls }: AuthOptions): boolean {
  return apiKeys.length > 0 || basic.length > 0 || jwt !== undefined || mtls !== undefined;
}

export function createAuthenticator(options: AuthOptions, tools: AuthenticatorTools): Authenticator {
  validateOptions(options);
  const { now, failedLogins, customVerifier } = tools;
  const verifiers = verifiersOf(options, tools);
  // With a custom check and nothing else, callers that the check does not know are anonymous.
  const anonymous = verifiers.length === 0 || options.anonymous === true;
  const all = customVerifier === undefined ? verifiers : [customVerifier, ...verifiers];
  return new Authenticator({ verifiers: all, anonymous, failedLogins, now });
}

function verifiersOf(options: AuthOptions, tools: AuthenticatorTools): readonly Verifier[] {
  const { apiKeys: entries = [], apiKey, basic = [], jwt, mtls } = options;
  const apiKeys = entries.length === 0 ? undefined : toApiKeys(entries);
  const checks: TokenCheck[] = [];
  if (apiKeys !== undefined) checks.push(createApiKeyTokenCheck(apiKeys));
  if (jwt !== undefined) checks.push(createJwtCheck(jwt, { ...tools, fetch: tools.fetch ?? issuerFetch(jwt) }));
  return [
    ...(apiKeys === undefined ? [] : [createApiKeyVerifier(apiKeys, apiKey)]),
    ...(checks.length === 0 ? [] : [createBearerVerifier(checks, bearerSchemes(jwt, apiKeys !== undefined))]),
    ...(basic.length === 0 ? [] : [createBasicVerifier(basic)]),
    ...(mtls === undefined ? [] : [createCertificateVerifier(mtls.owner, tools.now)]),
  ];
}

function issuerFetch({ issuer, jwksUrl }: JwtOptions): Fetch {
  return createIssuerFetch(jwksUrl === undefined ? [issuer] : [issuer, jwksUrl]);
}

function bearerSchemes(jwt: JwtOptions | undefined, takesKeys: boolean): Readonly<Record<string, JsonObject>> {
  const format = takesKeys ? {} : { bearerFormat: "JWT" };
  return {
    ...(jwt !== undefined &&
      jwt.jwksUrl === undefined && {
        oidc: { openIdConnectSecurityScheme: { openIdConnectUrl: openIdConnectUrl(jwt.issuer) } },
      }),
    bearer: { httpAuthSecurityScheme: { scheme: "Bearer", ...format } },
  };
}

/** Options also come from untyped programs. Errors never include a secret. */
function validateOptions({ apiKeys = [], apiKey, basic = [], jwt }: AuthOptions): void {
  if (apiKey !== undefined && apiKeys.length === 0) throw new TypeError("auth.apiKey needs auth.apiKeys.");
  if (apiKey?.header !== undefined && !isKeyHeader(apiKey.header)) {
    throw new TypeError(`auth.apiKey.header must be a header that has no other meaning, not "${apiKey.header}".`);
  }
  if ([jwt?.issuer, jwt?.jwksUrl].some((url) => url !== undefined && hasUserInfo(url))) {
    throw new TypeError("auth.jwt.issuer and auth.jwt.jwksUrl must not have a login in them.");
  }
  const keys = new Set<string>();
  for (const [at, { key, owner }] of apiKeys.entries()) {
    if (typeof key !== "string" || key === "") throw new TypeError(`auth.apiKeys[${at}].key must not be empty.`);
    if (keys.has(key)) throw new TypeError(`auth.apiKeys[${at}].key is there twice.`);
    if (!isOwnerName(owner)) throw new TypeError(`auth.apiKeys[${at}].owner must be a name, and not "anonymous".`);
    keys.add(key);
  }
  for (const [at, { user, password, owner = user }] of basic.entries()) {
    if (typeof user !== "string" || user === "" || user.includes(":")) {
      throw new TypeError(`auth.basic[${at}].user must not be empty or have a colon in it.`);
    }
    if (typeof password !== "string" || password === "") {
      throw new TypeError(`auth.basic[${at}].password must not be empty.`);
    }
    if (!isOwnerName(owner)) throw new TypeError(`auth.basic[${at}].owner must be a name, and not "anonymous".`);
  }
}

/** What must not be written anywhere. */
export function secretsOf({ apiKeys = [], basic = [] }: AuthOptions): readonly string[] {
  return [...apiKeys.map(({ key }) => key), ...basic.map(({ password }) => password)];
}
