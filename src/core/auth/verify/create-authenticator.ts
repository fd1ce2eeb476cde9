import { ANONYMOUS, type Caller, toNetworkPrefix } from "../../model/caller.ts";
import type { SecurityRequirement } from "../../model/card.ts";
import { ProtocolError } from "../../model/errors.ts";
import type { JsonObject } from "../../model/json.ts";
import type { Log } from "../../model/ports.ts";
import {
  type Challenge,
  CredentialsError,
  isOwnerName,
  isPromise,
  PendingChecks,
  type RequestCredentials,
  requireSameCaller,
  type TokenCheck,
  type Verification,
  type Verifier,
} from "./contract.ts";
import { createIssuerFetch, type Fetch, openIdConnectUrl } from "./issuer-keys.ts";
import { createJwtCheck, hasUserInfo, type JwtOptions } from "./jwt.ts";
import {
  type ApiKeyEntry,
  type ApiKeyPlaces,
  type BasicEntry,
  type CertificateName,
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
  /** Where API keys are accepted in addition to `Authorization: Bearer`: `{ header?, query?, cookie? }`. Default: `X-API-Key`. */
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
  readonly customVerifier?: Verifier | undefined;
  /** For the documents of an issuer. Default: one that reaches what the operator named and what is public. */
  readonly fetch?: Fetch;
  readonly now: () => number;
  readonly log: Log;
  /** Per minute and address. */
  readonly failedLogins: number;
}

/** Whether callers can show who they are by any of these. */
export function identifiesCallers({ apiKeys = [], basic = [], jwt, mtls }: AuthOptions): boolean {
  return apiKeys.length > 0 || basic.length > 0 || jwt !== undefined || mtls !== undefined;
}

/** Decides who calls; describes on cards and in refusals how to authenticate. All three come from the same verifiers. */
export function createAuthenticator(options: AuthOptions, tools: AuthenticatorTools) {
  validateOptions(options);
  const customVerifier = tools.customVerifier && limitPending(tools.customVerifier);
  const configured = verifiersOf(options, tools);
  // With a custom check and nothing else, callers that the check does not know are anonymous.
  const anonymous = configured.length === 0 || options.anonymous === true;
  /** The first for which a request carries something decides, if no other `perRequest` disagrees. */
  const verifiers = customVerifier === undefined ? configured : [customVerifier, ...configured];
  const challenges = verifiers.flatMap(({ challenge }) => challenge ?? []);
  const schemes: Readonly<Record<string, JsonObject>> = Object.assign({}, ...verifiers.map((one) => one.schemes));
  const alternatives: SecurityRequirement[] = Object.keys(schemes).map((name) => ({
    schemes: { [name]: { list: [] } },
  }));
  const failedLogins = createFailedLoginLimiter(tools.failedLogins, tools.now);

  function ask(presented: RequestCredentials, first: number, known?: Caller): Caller | Promise<Caller> {
    let caller = known;
    for (let at = first; at < verifiers.length; at++) {
      const verifier = verifiers[at] as Verifier;
      if (caller !== undefined && verifier.perRequest !== true) continue;
      const found: Verification = verifier.verify(presented);
      if (isPromise(found)) {
        const before = caller;
        return found.then((one) => {
          const agreed = one === undefined ? before : requireSameCaller(before, one);
          return agreed !== undefined && verifier.perRequest !== true ? agreed : ask(presented, at + 1, agreed);
        });
      }
      if (found === undefined) continue;
      caller = requireSameCaller(caller, found);
      if (verifier.perRequest !== true) return caller;
    }
    if (caller !== undefined) return caller;
    if (presented.headers.authorization !== undefined && challenges.length > 0) {
      throw new CredentialsError("wrong", "This kind of authorization is not accepted here.");
    }
    if (anonymous) return ANONYMOUS;
    throw new CredentialsError("missing", "Credentials are needed.");
  }

  /** A custom check refuses with an error of its own. */
  function refuse(error: unknown, address: string | undefined): never {
    const isMissing = error instanceof CredentialsError && error.problem === "missing";
    if (ProtocolError.is(error) && error.code === "UNAUTHENTICATED" && !isMissing) failedLogins.count(address);
    throw error;
  }

  return {
    /** For the card: what is accepted, by name. */
    schemes,
    /** For the card: any one of these is enough. An empty one among others means that none of them has to be met. */
    requirements: anonymous && alternatives.length > 0 ? [...alternatives, { schemes: {} }] : alternatives,
    /** Throws a ProtocolError for callers that are refused. Waits only where a check has to. */
    authenticate(presented: RequestCredentials): Caller | Promise<Caller> {
      const { remoteAddress } = presented;
      try {
        const caller = ask(presented, 0);
        return isPromise(caller) ? caller.catch((error: unknown) => refuse(error, remoteAddress)) : caller;
      } catch (error) {
        return refuse(error, remoteAddress);
      }
    },
    /** The value of `WWW-Authenticate` for a refusal, if there is one. */
    challenge(error: ProtocolError, resourceMetadata: string): string | undefined {
      if (error.code !== "UNAUTHENTICATED" && error.code !== "PERMISSION_DENIED") return undefined;
      const fitting = challenges.filter(({ scheme }) => error.code === "UNAUTHENTICATED" || scheme === "Bearer");
      if (fitting.length === 0) return undefined;
      return fitting.map((challenge) => formatChallenge(challenge, error, resourceMetadata)).join(", ");
    },
  };
}

/** Only checks that wait are counted; a custom check is not known to wait before it has begun. */
function limitPending(verifier: Verifier): Verifier {
  const pending = new PendingChecks();
  return { ...verifier, verify: (presented) => pending.run(presented.remoteAddress, () => verifier.verify(presented)) };
}

function formatChallenge({ scheme, parameters }: Challenge, error: ProtocolError, resourceMetadata: string): string {
  const all = {
    realm: "dragoman",
    ...parameters,
    ...(scheme === "Bearer" && { ...bearerError(error), resource_metadata: resourceMetadata }),
  };
  const list = Object.entries(all).map(([name, value]) => `${name}="${toQuotable(value)}"`);
  return `${scheme} ${list.join(", ")}`;
}

/** RFC 6750 §3.1: nothing is wrong with a request that shows nothing. */
function bearerError(error: ProtocolError): Readonly<Record<string, string>> {
  if (error.code === "PERMISSION_DENIED") {
    const { scopes } = error.metadata ?? {};
    return { error: "insufficient_scope", ...(scopes !== undefined && { scope: scopes }) };
  }
  const isWrongToken = error instanceof CredentialsError && error.problem === "wrong-token";
  return isWrongToken ? { error: "invalid_token", error_description: error.message } : {};
}

/** What may stand between quotes without being escaped. */
function toQuotable(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, "?").replace(/["\\]/g, "'");
}

const WINDOW_MS = 60_000;
/** Addresses that are remembered; of more, those that have been quiet longest are forgotten. */
const MAX_ADDRESSES = 10_000;

/**
 * Tells addresses that guess credentials to wait. Valid credentials are accepted from there all the same: others may
 * have the same address, and one that guesses must not lock them out.
 */
function createFailedLoginLimiter(maxPerMinute: number, now: () => number) {
  /** Addresses that failed last stand last. */
  const failures = new Map<string, { readonly count: number; readonly until: number }>();
  return {
    /** Counts a failed login. Throws RESOURCE_EXHAUSTED if there were too many. */
    count(address: string | undefined): void {
      if (address === undefined) return;
      const key = toNetworkPrefix(address);
      const known = failures.get(key);
      const leftMs = (known?.until ?? 0) - now();
      const isRecent = known !== undefined && leftMs > 0;
      if (isRecent && known.count >= maxPerMinute) {
        throw new ProtocolError("RESOURCE_EXHAUSTED", "Too many failed logins from this address.", {
          retryAfter: Math.ceil(leftMs / 1_000),
        });
      }
      failures.delete(key);
      failures.set(key, isRecent ? { ...known, count: known.count + 1 } : { count: 1, until: now() + WINDOW_MS });
      const [oldest] = failures.keys();
      if (oldest !== undefined && failures.size > MAX_ADDRESSES) failures.delete(oldest);
    },
  };
}

function verifiersOf(options: AuthOptions, tools: AuthenticatorTools): readonly Verifier[] {
  const { apiKeys: entries = [], apiKey, basic = [], jwt, mtls } = options;
  const apiKeys = entries.length === 0 ? undefined : toApiKeys(entries);
  const checks: TokenCheck[] = [];
  if (apiKeys !== undefined) checks.push((token) => apiKeys.find(token));
  if (jwt !== undefined) checks.push(createJwtCheck(jwt, { ...tools, fetch: tools.fetch ?? createIssuerFetch(jwt) }));
  return [
    ...(apiKeys === undefined ? [] : [createApiKeyVerifier(apiKeys, apiKey)]),
    ...(checks.length === 0 ? [] : [createBearerVerifier(checks, bearerSchemes(jwt, apiKeys !== undefined))]),
    ...(basic.length === 0 ? [] : [createBasicVerifier(basic)]),
    ...(mtls === undefined ? [] : [createCertificateVerifier(mtls.owner, tools.now)]),
  ];
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
